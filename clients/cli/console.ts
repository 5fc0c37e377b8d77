import type { Writable } from "node:stream";
import { safeJson, safeLine, safeText } from "../text.js";
import type { Exit, Failure } from "./exit.js";

/** Where a command's output goes, and how. */
export interface ConsoleOptions {
  readonly stdout: Writable;
  readonly stderr: Writable;
  readonly json: boolean;
  /** Bold and dim text on stdout. */
  readonly color: boolean;
}

/**
 * What a command says: its result on stdout, for people or as JSON; everything else on stderr. A reader that has gone
 * (EPIPE) is no failure: the rest is dropped.
 */
export class Console {
  readonly #options: ConsoleOptions;
  #gone = false;
  readonly #whenGone: (() => void)[] = [];

  constructor(options: ConsoleOptions) {
    this.#options = options;
    options.stdout.on("error", (error: NodeJS.ErrnoException) => {
      if (error.code !== "EPIPE") throw error;
      this.#gone = true;
      for (const tell of this.#whenGone) tell();
    });
    options.stderr.on("error", () => {}); // nobody is left to be told
  }

  get json(): boolean {
    return this.#options.json;
  }

  /** Calls `tell` once nobody reads stdout any more. */
  onGone(tell: () => void): void {
    if (this.#gone) tell();
    else this.#whenGone.push(tell);
  }

  /** The result of a command: `text` for people, or `value` as one JSON document. */
  result(value: unknown, text: (style: Style) => string): void {
    if (this.json) this.#out(safeJson(JSON.stringify(value, null, 2)));
    else this.#out(text(this.style));
  }

  /** One of many results that follow each other: a line of JSON each. */
  item(value: unknown, text: (style: Style) => string): void {
    if (this.json) this.#out(safeJson(JSON.stringify(value)));
    else this.#out(text(this.style));
  }

  /** Progress and hints. */
  note(text: string): void {
    this.#options.stderr.write(`${safeText(text)}\n`);
  }

  /** Why the command failed: a sentence and what to do next on stderr and, with `--json`, one document on stdout. */
  failure({ code, message, hints, data, exit }: Failure): Exit {
    if (this.json) this.result({ error: { code, message, ...(data === undefined ? {} : { data }) } }, () => "");
    this.note([`clankie: ${message}`, ...hints.map((hint) => `  ${hint}`)].join("\n"));
    return exit;
  }

  get style(): Style {
    return this.#options.color ? ANSI : PLAIN;
  }

  #out(text: string): void {
    if (!this.#gone) this.#options.stdout.write(text.endsWith("\n") || text === "" ? text : `${text}\n`);
  }
}

/** Emphasis; what is passed is made safe first. */
export interface Style {
  /** Text of one line. */
  bold(text: string): string;
  dim(text: string): string;
  plain(text: string): string;
}

const PLAIN: Style = { bold: safeLine, dim: safeLine, plain: safeLine };

const ANSI: Style = {
  bold: (text) => `\u001b[1m${safeLine(text)}\u001b[22m`,
  dim: (text) => `\u001b[2m${safeLine(text)}\u001b[22m`,
  plain: safeLine,
};

/** Colour only on a terminal that has it, and never with `NO_COLOR`. */
export function wantsColor(env: NodeJS.ProcessEnv, isTerminal: boolean): boolean {
  return isTerminal && (env["NO_COLOR"] ?? "") === "" && env["TERM"] !== "dumb";
}
