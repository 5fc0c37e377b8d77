import { StringDecoder } from "node:string_decoder";
import { stripVTControlCharacters } from "node:util";

/** The longest line that is passed on whole, in UTF-16 code units: the bound of a message (contract section 3). */
export const lineLimit = 16_384;

/**
 * Turns the bytes of a process's output into lines that are fit for an event: well-formed Unicode (what is not UTF-8
 * becomes U+FFFD), without terminal escape sequences, and with U+FFFD for each control character that is left, but for
 * tabs. A longer line comes in pieces of at most `lineLimit`, none of which begins or ends within a character. Lines end
 * with `\n` or `\r\n`; empty ones are lines too. How the bytes were cut makes no difference to the lines, and what is held
 * between two calls is bounded by `lineLimit`.
 */
export class LineSplitter {
  readonly #decoder = new StringDecoder("utf8");
  #rest = "";

  /** The lines, and pieces of a long line, that these bytes complete. */
  push(bytes: Uint8Array): readonly string[] {
    return this.#take(this.#decoder.write(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)));
  }

  /** What is left at the end of the output: a last line without a line end counts. */
  end(): readonly string[] {
    const lines = this.#take(this.#decoder.end());
    const rest = this.#rest;
    this.#rest = "";
    return rest === "" ? lines : [...lines, ...pieces(withoutReturn(rest)).map(clean)];
  }

  #take(text: string): readonly string[] {
    const ended = (this.#rest + text).split("\n");
    const open = ended.pop() ?? "";
    const whole = ended.flatMap((line) => pieces(withoutReturn(line)));
    // A last `\r` may turn out to belong to the line end: it does not make the line longer yet.
    const begun = pieces(withoutReturn(open));
    const rest = begun.pop() ?? "";
    this.#rest = open.endsWith("\r") ? `${rest}\r` : rest;
    return [...whole, ...begun].map(clean);
  }
}

function withoutReturn(line: string): string {
  return line.endsWith("\r") ? line.slice(0, -1) : line;
}

/** Cuts into pieces of at most `lineLimit`, at least one; a surrogate pair stays whole. */
function pieces(line: string): string[] {
  const cut: string[] = [];
  let from = 0;
  while (line.length - from > lineLimit) {
    const last = line.charCodeAt(from + lineLimit - 1);
    const length = last >= 0xd800 && last <= 0xdbff ? lineLimit - 1 : lineLimit;
    cut.push(line.slice(from, from + length));
    from += length;
  }
  cut.push(line.slice(from));
  return cut;
}

function clean(line: string): string {
  return stripVTControlCharacters(line).replace(/[\u0000-\u0008\u000a-\u001f\u007f-\u009f]/g, "\ufffd");
}
