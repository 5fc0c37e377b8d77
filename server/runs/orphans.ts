import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { readdir, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import typia from "typia";
import { parsed } from "../json.js";
import { endProcessGroup } from "./process-group.js";

/** What is noted of a live run: enough to know its processes again, and never to take others for them. */
interface Note {
  readonly runId: string;
  /** The boot of the machine in which it ran: process ids and start times mean nothing in another. */
  readonly bootId: string;
  /** The leader of its process group, and when that process started, in ticks since the boot; once it is known. */
  readonly leader?: { readonly pid: number; readonly startTime: string };
}

const isNote = typia.createIs<Note>();
const GRACE_MS = 3_000;

/**
 * A small file for each run whose command may be running, so that a service which was killed ends at its next start what
 * it left behind: its agents' tokens are gone, and nobody waits for them any more. Contract sections 8 and 10.
 *
 * The file is there before the command is. Where there is no /proc, nothing is noted and nothing is ended.
 */
export class LiveRuns {
  readonly #directory: string;
  readonly #bootId: string | null;

  constructor(directory: string) {
    this.#directory = directory;
    this.#bootId = bootId();
    mkdirSync(directory, { recursive: true, mode: 0o700 });
  }

  /** Before the command is started. */
  starting(runId: string): void {
    if (this.#bootId !== null) this.#note({ runId, bootId: this.#bootId });
  }

  /** As soon as there is a process: `pid` leads the group. */
  started(runId: string, pid: number): void {
    if (this.#bootId === null) return;
    const startTime = statOf(readText(`/proc/${pid}/stat`))?.startTime;
    if (startTime !== undefined) this.#note({ runId, bootId: this.#bootId, leader: { pid, startTime } });
  }

  /** When its process group has ended. */
  ended(runId: string): void {
    rmSync(this.#file(runId), { force: true });
  }

  /** Ends the process groups that an earlier life of the service left, and returns the runs they belonged to. */
  async endOrphans(): Promise<readonly string[]> {
    const files = await readdir(this.#directory);
    if (files.length === 0) return [];
    const notes = (await Promise.all(files.map((file) => this.#read(file)))).filter((note) => note !== null);
    const groups = new Map<number, string>();
    if (notes.length > 0) {
      for (const { group, runId } of await this.#processesOf(notes)) groups.set(group, runId);
    }
    await Promise.all([...groups.keys()].map((group) => endProcessGroup(group, GRACE_MS)));
    await Promise.all(files.map((file) => rm(join(this.#directory, file), { force: true })));
    return [...new Set(groups.values())];
  }

  /**
   * The groups in which a process of these runs lives. A process is known by the run's id in its environment, which only
   * what the run's command started has, or as the noted leader itself, where that cannot be read.
   */
  async #processesOf(notes: readonly Note[]): Promise<readonly { readonly group: number; readonly runId: string }[]> {
    const byMark = new Map(notes.map(({ runId }) => [`CLANKIE_RUN=${runId}`, runId]));
    const byLeader = new Map(
      notes.flatMap(({ leader, runId }) => (leader ? [[leader.pid, { ...leader, runId }]] : [])),
    );
    const pids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name)).map(Number);
    const found = await Promise.all(
      pids.map(async (pid) => {
        const stat = statOf(await readFile(`/proc/${pid}/stat`, "utf8").catch(() => ""));
        if (stat === undefined || stat.group <= 1) return [];
        const environment = await readFile(`/proc/${pid}/environ`, "utf8").catch(() => "");
        const marked = environment.split("\0").flatMap((variable) => byMark.get(variable) ?? [])[0];
        const leader = byLeader.get(pid);
        const isLeader = leader?.startTime === stat.startTime && stat.group === pid;
        const runId = marked ?? (isLeader ? leader?.runId : undefined);
        return runId === undefined ? [] : [{ group: stat.group, runId }];
      }),
    );
    const own = statOf(readText("/proc/self/stat"))?.group;
    return found.flat().filter(({ group }) => group !== own);
  }

  async #read(file: string): Promise<Note | null> {
    const note = parsed(await readFile(join(this.#directory, file)).catch(() => new Uint8Array()));
    return isNote(note) && note.bootId === this.#bootId ? note : null;
  }

  #note(note: Note): void {
    writeFileSync(this.#file(note.runId), JSON.stringify(note), { mode: 0o600 });
  }

  #file(runId: string): string {
    return join(this.#directory, `${runId}.json`);
  }
}

/** Of /proc/PID/stat: the fields after the command, which may hold anything; the third of all is the state. */
function statOf(stat: string): { readonly group: number; readonly startTime: string } | undefined {
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const [state, , group] = fields;
  const startTime = fields[19];
  if (startTime === undefined || state === "Z" || state === "X") return undefined;
  return { group: Number(group), startTime };
}

const bootId = (): string | null => readText("/proc/sys/kernel/random/boot_id").trim() || null;

function readText(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return "";
  }
}
