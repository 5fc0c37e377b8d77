import { stripVTControlCharacters } from "node:util";

/** How much of a run's stderr reaches the log, in UTF-16 code units; an agent that floods does not fill the disk. */
const RUN_LIMIT = 65_536;
/** The longest line that is logged whole. */
const LINE_LIMIT = 2_000;
/** What is held of an unfinished line: more than a line, so that a secret across its end is still recognized. */
const HELD_LIMIT = 2 * LINE_LIMIT;

/** Whatever looks like one of the service's tokens: 256 bits in base64url. */
const TOKEN = /(?<![\w-])[\w-]{43}(?![\w-])/g;
/** Shorter lines of an answer are words that any log has; masking them would only spoil it. */
const SHORTEST_SECRET = 4;

/**
 * Turns an agent's stderr into lines for the log: bounded, without terminal escapes, with tokens and what the run was told in
 * confidence masked. Contract section 10; no secret and no answer is in a log.
 */
export class AgentStderr {
  readonly #secrets: readonly string[];
  readonly #write: (line: string) => void;
  #held = "";
  /** The rest of a line that was cut is left out up to its end. */
  #skipping = false;
  #logged = 0;
  #leftOut = 0;

  /** `secrets`: texts whose lines are masked wherever they appear. `write` takes one line without its end. */
  constructor(secrets: readonly string[], write: (line: string) => void) {
    this.#secrets = secrets
      .flatMap((text) => text.split("\n"))
      .map((line) => line.trim())
      .filter((line) => line.length >= SHORTEST_SECRET)
      .flatMap((line) => [line, JSON.stringify(line).slice(1, -1)])
      .sort((one, other) => other.length - one.length);
    this.#write = write;
  }

  push(text: string): void {
    if (this.#logged >= RUN_LIMIT) {
      this.#leftOut += text.length;
      return;
    }
    for (const [index, part] of text.split("\n").entries()) {
      if (index > 0) this.#lineEnds();
      if (this.#skipping) this.#leftOut += part.length;
      else this.#held += part;
      if (this.#held.length > HELD_LIMIT) {
        this.#leftOut += this.#held.length - HELD_LIMIT;
        this.#held = this.#held.slice(0, HELD_LIMIT);
        this.#skipping = true;
      }
    }
  }

  /** What is left of the last line, and how much was not logged. */
  end(): void {
    this.#lineEnds();
    if (this.#leftOut > 0) this.#write(`[${this.#leftOut} characters of stderr were left out]`);
  }

  #lineEnds(): void {
    const line = this.#held.trimEnd();
    this.#held = "";
    this.#skipping = false;
    if (line === "") return;
    if (this.#logged >= RUN_LIMIT) {
      this.#leftOut += line.length;
      return;
    }
    const masked = this.#masked(stripVTControlCharacters(line));
    this.#leftOut += Math.max(0, masked.length - LINE_LIMIT);
    this.#logged += Math.min(masked.length, LINE_LIMIT);
    this.#write(masked.length > LINE_LIMIT ? `${masked.slice(0, LINE_LIMIT)}…` : masked);
  }

  #masked(line: string): string {
    let text = line;
    for (const secret of this.#secrets) text = text.replaceAll(secret, "[masked]");
    return text.replace(TOKEN, "[token]");
  }
}
