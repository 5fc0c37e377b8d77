import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import type { Readable } from "node:stream";
import { StringDecoder } from "node:string_decoder";
import { LineSplitter } from "./lines.js";
import { endProcessGroup } from "./process-group.js";

export interface CommandOptions {
  /** The program and its arguments, handed over as they are: there is no shell. */
  readonly command: readonly [string, ...string[]];
  readonly cwd: string;
  /** The whole environment; nothing of the service's own is added. PATH in it finds the program. */
  readonly env: Readonly<Record<string, string>>;
  /** The mode bits that the program's new files lack; without it the service's own. */
  readonly umask?: number;
  /** What the program reads on stdin, to its end. It need not read it. */
  readonly message: string;
  /** Milliseconds until the run is ended as `timed_out`. */
  readonly timeLimitMs: number;
  /** Milliseconds between SIGTERM and SIGKILL for what does not end by itself. */
  readonly killGraceMs: number;
  /**
   * Takes the lines that came together, as `LineSplitter` makes them, in order. Stdout is not read on before the promise
   * resolves, so that a program that floods waits. When it rejects, the run is ended and `finished` rejects alike.
   */
  onLines(lines: readonly string[]): Promise<void>;
  /** Told at once when there is a process: the leader of its group. */
  onStarted?(pid: number): void;
  /** Takes stderr as text, as it comes; it is for the log, unfiltered but well-formed. */
  onStderr(text: string): void;
}

/** How a command ended. Exactly `exited` with code 0 is a completed run (contract section 10). */
export type CommandEnd =
  | { readonly kind: "exited"; readonly code: number }
  | { readonly kind: "signalled"; readonly signal: NodeJS.Signals }
  | { readonly kind: "timed_out" }
  | { readonly kind: "cancelled" }
  /** `code` is the system's: ENOENT (also for a missing `cwd`), EACCES, E2BIG, … or Node's for what it refuses. */
  | { readonly kind: "not_started"; readonly code: string };

export interface CommandProcess {
  /**
   * Resolves once the command has ended, its whole process group with it, and all lines were taken; afterwards no
   * callback is called. Rejects only with what `onLines` rejected with.
   */
  readonly finished: Promise<CommandEnd>;
  /** Ends the run as `cancelled`. Has no effect on a command that has ended or never started. */
  cancel(): void;
}

/** Milliseconds that output may take to end after its program has, before what holds it open is killed. */
const drainMs = 200;

/** Bytes of stdout that are still read after all of the group has ended, if a process outside of it goes on writing. */
const lateOutputLimit = 1_048_576;

/** setTimeout takes no longer one, and would fire at once. */
const longestTimerMs = 2_147_483_647;

/** Starts a command as the leader of its own process group (contract section 10). Never throws. */
export function startCommand(options: CommandOptions): CommandProcess {
  let cancel = (): void => {};
  const cancelled = new Promise<CommandEnd>((resolve) => {
    cancel = () => resolve({ kind: "cancelled" });
  });
  return { finished: run(options, cancelled), cancel };
}

async function run(options: CommandOptions, cancelled: Promise<CommandEnd>): Promise<CommandEnd> {
  const [program, ...args] = options.command;
  let child: ChildProcessWithoutNullStreams;
  try {
    child = withUmask(options.umask, () =>
      spawn(program, args, { cwd: options.cwd, env: options.env, stdio: "pipe", detached: true }),
    );
  } catch (error) {
    return { kind: "not_started", code: codeOf(error) };
  }
  const group = child.pid;
  if (group === undefined) {
    // Its streams may be missing too: there is only the error to wait for.
    return new Promise((resolve) => {
      child.once("error", (error) => resolve({ kind: "not_started", code: codeOf(error) }));
    });
  }
  options.onStarted?.(group);

  const exited = new Promise<CommandEnd>((resolve) => {
    child.once("exit", (code, signal) => {
      resolve(signal === null ? { kind: "exited", code: code ?? 0 } : { kind: "signalled", signal });
    });
  });
  let limit: NodeJS.Timeout | undefined;
  const timedOut = new Promise<CommandEnd>((resolve) => {
    limit = setTimeout(() => resolve({ kind: "timed_out" }), Math.min(options.timeLimitMs, longestTimerMs));
  });
  const stdout = new LinePump(child.stdout, options.onLines);
  const stderrEnded = passText(child.stderr, options.onStderr);
  child.stdin.on("error", () => {}); // EPIPE: it did not want to read
  child.stdin.end(options.message);

  try {
    let end: CommandEnd;
    try {
      end = await Promise.race([exited, timedOut, cancelled, stdout.failed]);
      const outputEnded = Promise.all([stdout.ended, stderrEnded]);
      await settlesWithin(Promise.race([outputEnded, timedOut, cancelled]), drainMs);
    } finally {
      await endProcessGroup(group, options.killGraceMs);
    }
    await stdout.finish();
    await settlesWithin(stderrEnded, drainMs);
    return end;
  } finally {
    clearTimeout(limit);
    child.stdin.destroy();
    child.stdout.destroy();
    child.stderr.removeAllListeners("data").destroy();
  }
}

/** A process inherits the umask of the moment it is made: the service's is for the service's own files. */
function withUmask<T>(umask: number | undefined, make: () => T): T {
  if (umask === undefined) return make();
  const own = process.umask(umask);
  try {
    return make();
  } finally {
    process.umask(own);
  }
}

/** Hands stdout over as lines, and reads no further while they are being taken. */
class LinePump {
  /** Settles when the output has ended and all of it was taken; rejects with what `onLines` rejected with. */
  readonly ended: Promise<void>;
  /** Never resolves; rejects as `ended` does. */
  readonly failed: Promise<never>;
  readonly #stdout: Readable;
  readonly #onLines: CommandOptions["onLines"];
  #taking = false;
  #bytes = 0;

  constructor(stdout: Readable, onLines: CommandOptions["onLines"]) {
    this.#stdout = stdout;
    this.#onLines = onLines;
    this.ended = this.#pump();
    this.failed = new Promise((_, reject) => {
      this.ended.catch(reject);
    });
    this.failed.catch(() => {}); // whoever waits for `ended` hears of it
  }

  /**
   * Waits for the end of the output once nobody of the group is left to write. All that was written comes, unless a
   * process outside of the group holds the output open: then what is there already is read, and no more.
   */
  async finish(): Promise<void> {
    const limit = this.#bytes + lateOutputLimit;
    let before = -1;
    while (!(await settlesWithin(this.ended, drainMs / 2))) {
      await new Promise((resolve) => setImmediate(resolve)); // after a stall, what has come is read before it is judged
      if (this.#bytes > limit || (!this.#taking && this.#bytes === before)) {
        this.#stdout.destroy();
        break;
      }
      before = this.#bytes;
    }
    await this.ended;
  }

  async #pump(): Promise<void> {
    const splitter = new LineSplitter();
    const chunks: AsyncIterator<unknown> = this.#stdout[Symbol.asyncIterator]();
    for (;;) {
      // A stream that was destroyed, or fails, has ended.
      const next = await chunks.next().catch(() => undefined);
      if (!(next?.value instanceof Uint8Array)) break;
      this.#bytes += next.value.length;
      await this.#pass(splitter.push(next.value));
    }
    await this.#pass(splitter.end());
  }

  async #pass(lines: readonly string[]): Promise<void> {
    if (lines.length === 0) return;
    this.#taking = true;
    await this.#onLines(lines);
    this.#taking = false;
  }
}

function passText(stream: Readable, onText: (text: string) => void): Promise<void> {
  const decoder = new StringDecoder("utf8");
  const pass = (text: string): void => {
    if (text !== "") onText(text);
  };
  stream.on("data", (chunk: Buffer) => pass(decoder.write(chunk)));
  stream.on("error", () => {}); // it closes then, and that is all there is to know
  return new Promise((resolve) => {
    stream.once("end", () => pass(decoder.end()));
    stream.once("close", resolve);
  });
}

/** Whether a promise settles, in either way, within `limitMs` milliseconds. */
async function settlesWithin(promise: Promise<unknown>, limitMs: number): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<boolean>((resolve) => {
    timer = setTimeout(() => resolve(false), limitMs);
  });
  const settled = promise.then(
    () => true,
    () => true,
  );
  const inTime = await Promise.race([settled, late]);
  clearTimeout(timer);
  return inTime;
}

function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : "EUNKNOWN";
}
