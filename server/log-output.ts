import { constants, fstatSync, openSync, write, writeSync } from "node:fs";
import { codeOf } from "./store/errors.js";

/** How long a full pipe is left alone before it is tried again, in milliseconds. */
const TRY_AGAIN_MS = 50;

/** What is written of bytes to a file descriptor; as `fs.write`. */
type Write = (fd: number, bytes: Uint8Array, done: (error: Error | null, written: number) => void) => void;

/**
 * Log lines on their way out. Whoever started the service may stop reading its stderr, or its disk may be full: then lines
 * are dropped beyond a bound, and the service neither waits nor grows nor ends. Every line is written whole or not at all,
 * as long as its write does not fail half way.
 */
export class LogOutput {
  readonly #fd: number;
  readonly #limit: number;
  readonly #write: Write;
  #waiting: Buffer[] = [];
  #bytes = 0;
  #dropped = 0;
  #writing = false;
  /** The first of what waits is being written at this moment. */
  #inFlight = false;

  /** `limit`: bytes that wait for their reader. */
  constructor(fd: number, limit: number, writer: Write = write) {
    this.#fd = fd;
    this.#limit = limit;
    this.#write = writer;
  }

  write(line: string): void {
    const bytes = Buffer.from(line);
    if (this.#bytes + bytes.length > this.#limit) {
      this.#dropped += 1;
      return;
    }
    if (this.#dropped > 0 && this.#bytes === 0) {
      const told = Buffer.from(
        `${JSON.stringify({ level: "warn", dropped: this.#dropped, msg: "log lines were dropped" })}\n`,
      );
      this.#dropped = 0;
      this.#push(told);
    }
    this.#push(bytes);
    if (!this.#writing) this.#next();
  }

  /** Writes what still waits, as far as that goes without waiting. For the end of the process. */
  flushNow(): void {
    if (this.#inFlight) this.#waiting.shift();
    try {
      for (let chunk = this.#waiting.shift(); chunk !== undefined; chunk = this.#waiting.shift()) {
        for (let at = 0; at < chunk.length; ) at += writeSync(this.#fd, chunk, at);
      }
    } catch {
      // nobody reads, or there is no room: these are the lines that are lost
    }
  }

  #push(bytes: Buffer): void {
    this.#waiting.push(bytes);
    this.#bytes += bytes.length;
  }

  #next(): void {
    if (this.#waiting.length === 0) return;
    const chunk = Buffer.concat(this.#waiting);
    this.#waiting = [chunk];
    this.#writing = true;
    this.#inFlight = true;
    this.#write(this.#fd, chunk, (error, written) => {
      this.#inFlight = false;
      if (error !== null && codeOf(error) === "EAGAIN") {
        setTimeout(() => this.#wrote(0), TRY_AGAIN_MS).unref();
        return;
      }
      // Anything else will not get better by trying: a closed reader, a full disk.
      this.#wrote(error === null ? written : chunk.length);
    });
  }

  #wrote(count: number): void {
    this.#writing = false;
    const [first, ...more] = this.#waiting;
    if (first === undefined) return;
    const rest = first.subarray(count);
    this.#waiting = rest.length > 0 ? [rest, ...more] : more;
    this.#bytes -= Math.min(count, first.length);
    this.#next();
  }
}

/**
 * A descriptor of stderr that a full pipe does not block. The pipe is opened once more for that: made not to block as it
 * is, it would be so for everybody who shares it. A file, a terminal or a socket is used as it is.
 */
export function stderrWithoutWaiting(): number {
  try {
    if (fstatSync(2).isFIFO()) return openSync("/proc/self/fd/2", constants.O_WRONLY | constants.O_NONBLOCK);
  } catch {
    // no /proc here, or nobody reads already
  }
  return 2;
}
