import { type ChildProcess, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { ServeOptions } from "../../../server/main.js";

const program = fileURLToPath(new URL("serve.js", import.meta.url));

export interface StartOptions extends Partial<Omit<ServeOptions, "dataDirectory" | "host" | "port">> {
  readonly data: string;
  /** Runs the service under another program: `["strace", "-f", …]`. */
  readonly under?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

/** It did not start; `stderr` says why. */
export class DidNotStart extends Error {
  constructor(
    readonly stderr: string,
    readonly code: number | null,
  ) {
    super(`the service did not start (exit status ${code}): ${stderr.slice(-2_000)}`);
  }
}

/** One life of the real service. */
export class ServiceProcess {
  stderr = "";
  readonly ended: Promise<{ readonly code: number | null; readonly signal: NodeJS.Signals | null }>;
  #ready: { url: string; operatorTokenFile: string; damage: readonly string[] } | undefined;

  private constructor(
    readonly child: ChildProcess,
    readonly data: string,
  ) {
    child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      this.stderr = (this.stderr + text).slice(-4_000_000);
    });
    this.ended = new Promise((resolve) => child.once("close", (code, signal) => resolve({ code, signal })));
  }

  static async start({ data, under = [], env = {}, ...options }: StartOptions): Promise<ServiceProcess> {
    const [command = process.execPath, ...args] = [
      ...under,
      process.execPath,
      program,
      JSON.stringify({ dataDirectory: data, ...options }),
    ];
    const child = spawn(command, args, {
      stdio: ["ignore", "pipe", "pipe"],
      detached: true,
      env: { ...process.env, ...env },
    });
    const service = new ServiceProcess(child, data);
    const line = new Promise<string>((resolve) => {
      let text = "";
      child.stdout?.setEncoding("utf8").on("data", (more: string) => {
        text += more;
        if (text.includes("\n")) resolve(text.slice(0, text.indexOf("\n")));
      });
    });
    const first = await Promise.race([line, service.ended]);
    if (typeof first !== "string") throw new DidNotStart(service.stderr, first.code);
    service.#ready = JSON.parse(first);
    return service;
  }

  get url(): string {
    return this.#ready?.url ?? "";
  }

  get damage(): readonly string[] {
    return this.#ready?.damage ?? [];
  }

  get operatorToken(): string {
    return readFileSync(this.#ready?.operatorTokenFile ?? "", "utf8").trim();
  }

  token(name: string): string {
    return readFileSync(join(this.data, `${name}.token`), "utf8").trim();
  }

  /** The service's own process, also where it runs under another program. */
  get pid(): number {
    return (JSON.parse(readFileSync(join(this.data, "service.json"), "utf8")) as { pid: number }).pid;
  }

  /** Bytes that it has in memory. */
  get residentBytes(): number {
    const kilobytes = /^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${this.pid}/status`, "utf8"))?.[1];
    return Number(kilobytes ?? 0) * 1_024;
  }

  /** The log so far, a document a line. */
  get log(): readonly Record<string, unknown>[] {
    return this.stderr
      .split("\n")
      .filter((line) => line.startsWith("{"))
      .map((line) => JSON.parse(line) as Record<string, unknown>);
  }

  /** Kills it, and whatever it runs under, without a warning. */
  async kill(): Promise<void> {
    signalGroup(this.child, "SIGKILL");
    await this.ended;
  }

  /** Asks it to stop and waits. */
  async stop(signal: NodeJS.Signals = "SIGTERM"): Promise<number | null> {
    if (this.child.exitCode === null && this.child.signalCode === null) {
      if (this.child.spawnfile === process.execPath) this.child.kill(signal);
      else process.kill(this.pid, signal);
    }
    return (await this.ended).code;
  }
}

function signalGroup({ pid }: ChildProcess, signal: NodeJS.Signals): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, signal);
  } catch {
    // it has ended
  }
}

/** Runs `task` with a directory of its own and ends whatever it started there. */
export async function withDirectory<T>(task: (directory: string) => Promise<T>, parent = tmpdir()): Promise<T> {
  const directory = await mkdtemp(join(parent, "clankie-crash-"));
  try {
    return await task(directory);
  } finally {
    await rm(directory, { recursive: true, force: true, maxRetries: 5 });
  }
}

/** Waits until something holds, without a fixed pause for being right. */
export async function until(what: string, holds: () => boolean | Promise<boolean>, withinMs = 20_000): Promise<void> {
  const deadline = performance.now() + withinMs;
  while (!(await holds())) {
    if (performance.now() > deadline) throw new Error(`waited in vain: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
