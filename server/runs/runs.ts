import type { Run } from "../../machines/context.js";
import { continuationMessage } from "../../machines/continuation.js";
import type { Caller } from "../../machines/facts.js";
import type { RunEventBody } from "../../protocol/events.js";
import type { WorkspaceFacts } from "../../protocol/operations.js";
import type { RunReason } from "../../protocol/refusals.js";
import { Fault } from "../fault.js";
import type { CommandEnd, CommandOptions, CommandProcess } from "./command.js";
import type { LiveRuns } from "./orphans.js";
import { AgentStderr } from "./stderr.js";

/** What a run says to its agent. Contract section 6, last paragraph. */
export function messageOf(run: Run): string {
  switch (run.origin.kind) {
    case "message":
      return run.origin.text;
    case "continuation":
      return continuationMessage(run.origin.question, run.origin.answer);
    default:
      return run.origin satisfies never;
  }
}

export interface CommandRun {
  readonly run: Run;
  readonly conversationId: string;
  readonly command: readonly string[];
  readonly directory: string;
}

/** How a command run ended, as `run.settle` says it. Contract section 10. */
export interface RunEnd {
  readonly state: "completed" | "failed";
  readonly reasonCode?: string;
  readonly summary?: string;
}

export interface RunsHost {
  readonly url: string;
  readonly timeLimitMs: number;
  /** The variables of the service's own environment that an agent gets. */
  readonly environment: Readonly<Record<string, string>>;
  startCommand(options: CommandOptions): CommandProcess;
  openToken(runId: string, conversationId: string): string;
  closeToken(runId: string): void;
  facts(directory: string): Promise<WorkspaceFacts>;
  report(conversationId: string, caller: Caller, runId: string, bodies: readonly RunEventBody[]): Promise<void>;
  settle(conversationId: string, caller: Caller, runId: string, end: RunEnd): Promise<void>;
  /** Notes which runs have processes, for a start after a crash. */
  readonly live?: LiveRuns;
  /** Runs `task` after `ms` milliseconds. */
  after(ms: number, task: () => void): void;
  log(message: string, fields: Readonly<Record<string, unknown>>): void;
}

const KILL_GRACE_MS = 3_000;
/** When the end of a run that the store did not take is stored again, in milliseconds. */
const SETTLE_AGAIN_MS = 1_000;
/** The pause doubles up to this many milliseconds. */
const LONGEST_PAUSE_MS = 60_000;
/** Faults of the store, which may pass: a run keeps its place until its end is stored. */
const MAY_PASS: ReadonlySet<string> = new Set(["storage_unavailable", "question_state_unavailable"]);
/** So many agent lines are stored with one commit. */
const LINES_A_COMMIT = 100;

interface Live {
  process: CommandProcess | null;
  stopped: boolean;
  /** Ends a pause between two tries to store the end. */
  wake: () => void;
  done: Promise<void>;
}

/** The command runs that are going on: each a process group, with a token that ends with it. Contract section 10. */
export class Runs {
  readonly #host: RunsHost;
  readonly #live = new Map<string, Live>();

  constructor(host: RunsHost) {
    this.#host = host;
  }

  get count(): number {
    return this.#live.size;
  }

  /** Starts a run whose beginning is durable. Never called twice for one run: the machine begins a run once. */
  start(given: CommandRun): void {
    const { runId } = given.run;
    if (this.#live.has(runId)) return;
    const entry: Live = { process: null, stopped: false, wake: () => undefined, done: Promise.resolve() };
    this.#live.set(runId, entry);
    entry.done = this.#go(given, entry).finally(() => this.#live.delete(runId));
  }

  /** Ends a run's process group; its token is gone at once. */
  stop(runId: string): void {
    this.#host.closeToken(runId);
    const entry = this.#live.get(runId);
    if (entry === undefined) return;
    entry.stopped = true;
    entry.process?.cancel();
    entry.wake();
  }

  /** Ends everything and waits for it. */
  async close(): Promise<void> {
    const all = [...this.#live.entries()];
    for (const [runId] of all) this.stop(runId);
    await Promise.all(all.map(([, { done }]) => done));
  }

  async #go(given: CommandRun, entry: Live): Promise<void> {
    const { runId } = given.run;
    const caller: Caller = {
      stamp: { kind: "agent", id: `run:${runId}`, generation: 1 },
      standing: "good",
      conversationId: given.conversationId,
      runId,
    };
    try {
      const end = await this.#process(given, caller, entry);
      this.#host.live?.ended(runId);
      if (end !== null) await this.#settle(given, caller, entry, end);
    } finally {
      this.#host.closeToken(runId);
      this.#host.live?.ended(runId);
    }
  }

  /** Starts the command and waits for its end; null where the run was stopped before it started. */
  async #process(given: CommandRun, caller: Caller, entry: Live): Promise<RunEnd | null> {
    const { run, conversationId, command, directory } = given;
    const { runId } = run;
    const host = this.#host;
    const fields = { conversationId, runId };
    try {
      const facts = await host.facts(directory);
      if (entry.stopped) return null;
      const [program, ...rest] = command;
      if (program === undefined) throw new Error("a run without a command");
      const token = host.openToken(runId, conversationId);
      const stderr = new AgentStderr([token, ...confided(run)], (text) =>
        host.log("agent stderr", { ...fields, text }),
      );
      host.live?.starting(runId);
      const process = host.startCommand({
        command: [program, ...rest],
        cwd: directory,
        env: {
          ...host.environment,
          // as a shell would set it: some agents (opencode) believe it rather than their working directory
          PWD: directory,
          CLANKIE_URL: host.url,
          CLANKIE_TOKEN: token,
          CLANKIE_CONVERSATION: conversationId,
          CLANKIE_RUN: runId,
          CLANKIE_CONTEXT: JSON.stringify(facts),
        },
        message: messageOf(run),
        timeLimitMs: host.timeLimitMs,
        killGraceMs: KILL_GRACE_MS,
        onLines: async (lines) => {
          const spoken = lines.filter((line) => line.trim() !== "");
          for (let from = 0; from < spoken.length; from += LINES_A_COMMIT) {
            if (entry.stopped) return;
            const bodies = spoken
              .slice(from, from + LINES_A_COMMIT)
              .map((text): RunEventBody => ({ type: "message", text, streaming: false }));
            await host.report(conversationId, caller, runId, bodies);
          }
        },
        onStarted: (pid) => host.live?.started(runId, pid),
        onStderr: (text) => stderr.push(text),
      });
      entry.process = process;
      return endOf(await process.finished.finally(() => stderr.end()));
    } catch (error) {
      entry.process?.cancel();
      host.log("a run's output could not be stored", { ...fields, error: String(error) });
      return { state: "failed", reasonCode: "output_not_stored" satisfies RunReason };
    }
  }

  /** Stores how a run ended. While the store is away the run keeps its place, and is settled when the store is back. */
  async #settle(
    { run: { runId }, conversationId }: CommandRun,
    caller: Caller,
    entry: Live,
    end: RunEnd,
  ): Promise<void> {
    for (let pause = SETTLE_AGAIN_MS; !entry.stopped; pause = Math.min(2 * pause, LONGEST_PAUSE_MS)) {
      try {
        await this.#host.settle(conversationId, caller, runId, end);
        return;
      } catch (error) {
        this.#host.log("the end of a run could not be stored", { conversationId, runId, error: String(error) });
        if (!(error instanceof Fault) || !MAY_PASS.has(error.data.code)) return;
      }
      await new Promise<void>((resolve) => {
        entry.wake = resolve;
        this.#host.after(pause, resolve);
      });
    }
  }
}

/** What a run was told that is not for the log, wherever its agent repeats it. */
const confided = ({ origin }: Run): readonly string[] =>
  origin.kind === "continuation" && origin.answer.kind === "text" ? [origin.answer.text] : [];

function endOf(end: CommandEnd): RunEnd {
  switch (end.kind) {
    case "exited":
      return end.code === 0
        ? { state: "completed" }
        : {
            state: "failed",
            reasonCode: `exit_${end.code}`,
            summary: `the agent's command ended with exit status ${end.code}`,
          };
    case "signalled":
      return {
        state: "failed",
        reasonCode: `signal_${end.signal}`,
        summary: `the agent's command was ended by ${end.signal}`,
      };
    case "timed_out":
      return {
        state: "failed",
        reasonCode: "timed_out" satisfies RunReason,
        summary: "the agent's command took too long",
      };
    case "cancelled":
      return { state: "failed", reasonCode: "run_cancelled" satisfies RunReason };
    case "not_started":
      return {
        state: "failed",
        reasonCode: "not_started" satisfies RunReason,
        summary: `the agent's command could not be started (${end.code}); is it installed and executable?`,
      };
    default:
      return end satisfies never;
  }
}
