import { EventEmitter } from "node:events";
import type { Readable, Writable } from "node:stream";
import { StringDecoder } from "node:string_decoder";
import type { ReadStream, WriteStream } from "node:tty";
import termkit from "terminal-kit";
import { DECODER, decode, flush, PASTE_OFF, PASTE_ON, type Token } from "./keys.js";
import type { Line, Tone } from "./layout.js";
import type { Frame, Piece } from "./view.js";

/** What the terminal tells. */
export interface TerminalListener {
  key(name: string): void;
  text(text: string): void;
  paste(text: string): void;
  resize(columns: number, rows: number): void;
}

export interface TerminalOptions {
  readonly stdin: ReadStream;
  readonly stdout: WriteStream;
  readonly title: boolean;
  readonly colour: boolean;
}

type Kit = ReturnType<typeof termkit.createTerminal>;

/** A lone Escape is the key when nothing follows it for so long, in milliseconds. */
const ESCAPE_MS = 50;

// what terminal-kit has no name for: xterm's title stack, automatic wrapping, output drawn in one go
const TITLE_PUSH = "\x1b[22;2t";
const TITLE_POP = "\x1b[23;2t";
const WRAP_OFF = "\x1b[?7l";
const WRAP_ON = "\x1b[?7h";
const FRAME_START = "\x1b[?2026h";
const FRAME_END = "\x1b[?2026l";

/** The real terminal: takes it over, draws frames, names keys, gives it back. */
export class Terminal {
  readonly #options: TerminalOptions;
  readonly #listener: TerminalListener;
  readonly #kit: Kit;
  /** terminal-kit's own input: it gets one whole sequence at a time, and only those. */
  readonly #keys: EventEmitter;
  readonly #utf8 = new StringDecoder("utf8");
  readonly #onData = (chunk: Buffer): void => this.#data(chunk);
  readonly #onResize = (): void => {
    this.#drawn = [];
    this.#listener.resize(this.columns, this.rows);
  };
  readonly #onError = (): void => {}; // the terminal is gone: SIGHUP follows, and nothing can be shown to anybody
  #decoder = DECODER;
  #escapeTimer: NodeJS.Timeout | undefined;
  #drawn: string[] = [];
  #titleShown: string | undefined;
  #taken = false;

  constructor(options: TerminalOptions, listener: TerminalListener) {
    this.#options = options;
    this.#listener = listener;
    const { stdin, stdout } = options;
    const keys = Object.assign(new EventEmitter(), {
      setRawMode: (on: boolean) => stdin.setRawMode(on),
      resume: () => stdin.resume(),
      pause: () => stdin.pause(),
    });
    this.#keys = keys;
    const guessed = guessTerminal();
    this.#kit = termkit.createTerminal({
      // it uses no more of a stream than these three methods and the `data` event
      stdin: keys as unknown as Readable,
      stdout: stdout as Writable,
      generic: guessed,
      appId: guessed,
      appName: guessed,
      isTTY: true,
    });
    this.#kit.on("key", (name: string, _matches: unknown, data: { readonly isCharacter: boolean }) => {
      if (!data.isCharacter) this.#named.push(name);
    });
  }

  get columns(): number {
    return Math.max(1, this.#options.stdout.columns || 80);
  }

  get rows(): number {
    return Math.max(1, this.#options.stdout.rows || 24);
  }

  /** Takes the terminal over. */
  take(): void {
    if (this.#taken) return;
    this.#taken = true;
    const { stdin, stdout, title } = this.#options;
    stdout.on("resize", this.#onResize);
    stdout.on("error", this.#onError);
    stdin.on("error", this.#onError);
    stdin.on("data", this.#onData);
    this.#kit.grabInput(true);
    if (title) stdout.write(TITLE_PUSH);
    this.#kit.alternateScreenBuffer(true);
    stdout.write(PASTE_ON + WRAP_OFF);
    this.redraw();
  }

  /** Gives the terminal back as it was. Does nothing when it has been given back. */
  restore(): void {
    if (!this.#taken) return;
    this.#taken = false;
    clearTimeout(this.#escapeTimer);
    const { stdin, stdout, title } = this.#options;
    stdout.off("resize", this.#onResize);
    stdin.off("data", this.#onData);
    try {
      stdout.write(FRAME_END + PASTE_OFF + WRAP_ON);
      this.#kit.styleReset();
      this.#kit.alternateScreenBuffer(false);
      this.#kit.hideCursor(false);
      if (title) stdout.write(TITLE_POP);
    } finally {
      this.#titleShown = undefined;
      this.#kit.grabInput(false);
      stdin.unref?.();
    }
  }

  /** Everything is drawn anew with the next frame. */
  redraw(): void {
    this.#drawn = [];
    if (this.#taken) this.#options.stdout.write(this.#kit.str.clear() as unknown as string);
  }

  bell(): void {
    this.#options.stdout.write("\x07");
  }

  /** `text` went through `safeText`. */
  title(text: string): void {
    if (!this.#options.title || !this.#taken || text === this.#titleShown) return;
    this.#titleShown = text;
    this.#options.stdout.write(`\x1b]2;${text}\x07`);
  }

  /** Draws what differs from the screen; `done` is called when it has been written. */
  draw({ rows, cursor }: Frame, done: () => void): void {
    if (!this.#taken) return;
    const { str } = this.#kit;
    const changed = rows.map((pieces, index) => {
      const text = this.#row(pieces, index + 1);
      return text === this.#drawn[index] ? "" : text;
    });
    this.#drawn = rows.map((pieces, index) => this.#row(pieces, index + 1));
    const place = str.moveTo(cursor.at + 1, cursor.row + 1) as unknown as string;
    const hide = str.hideCursor() as unknown as string;
    const show = str.hideCursor(false) as unknown as string;
    const beside = cursor.at > 0 ? this.#line([{ text: "", tone: "plain" }]) : "";
    this.#options.stdout.write(
      FRAME_START + hide + changed.join("") + place + beside + this.#line(cursor.before) + show + FRAME_END,
      done,
    );
  }

  #row(pieces: readonly Piece[], row: number): string {
    const { str } = this.#kit;
    const start = `${str.moveTo(1, row)}${str.eraseLine()}`;
    return start + pieces.map(({ at, line }) => `${str.moveTo(at + 1, row)}${this.#line(line)}`).join("");
  }

  #line(line: Line): string {
    return line.map(({ text, tone }) => this.#styled(text, tone)).join("");
  }

  /** `noFormat`: no character of the text means anything to terminal-kit. */
  #styled(text: string, tone: Tone): string {
    const { str } = this.#kit;
    const { colour } = this.#options;
    const written = (styled: { noFormat: (text: string) => unknown }): string => String(styled.noFormat(text));
    switch (tone) {
      case "plain":
        return text;
      case "dim":
        return written(str.dim);
      case "strong":
        return written(str.bold);
      case "accent":
        return written(colour ? str.cyan : str.bold);
      case "good":
        return colour ? written(str.green) : text;
      case "warn":
        return written(colour ? str.yellow : str.bold);
      case "bad":
        return written(colour ? str.bold.red : str.bold);
      case "bar":
        return written(str.inverse);
      default:
        return tone satisfies never;
    }
  }

  #named: string[] = [];

  #data(chunk: Buffer): void {
    clearTimeout(this.#escapeTimer);
    const { decoder, tokens } = decode(this.#decoder, this.#utf8.write(chunk));
    this.#decoder = decoder;
    if (decoder.rest !== "" && decoder.paste === null) {
      this.#escapeTimer = setTimeout(() => {
        const ended = flush(this.#decoder);
        this.#decoder = ended.decoder;
        this.#tell(ended.tokens);
      }, ESCAPE_MS);
    }
    this.#tell(tokens);
  }

  #tell(tokens: readonly Token[]): void {
    for (const token of tokens) {
      switch (token.kind) {
        case "text":
          this.#listener.text(token.text);
          break;
        case "paste":
          this.#listener.paste(token.text);
          break;
        case "sequence":
          this.#sequence(token.code);
          break;
        default:
          token satisfies never;
      }
    }
  }

  #sequence(code: string): void {
    this.#named = [];
    this.#keys.emit("data", Buffer.from(code));
    const [name] = this.#named;
    // terminal-kit reads a sequence it does not know as Escape and the characters behind it
    if (name === undefined || (name === "ESCAPE" && code.length > 1)) return;
    this.#listener.key(name);
  }
}

/** terminal-kit's guess, without its list of programs: what every terminal of that kind can do. */
function guessTerminal(): string {
  const { TERM = "" } = process.env;
  return /^(linux|rxvt|eterm|konsole|gnome|kitty|xfce)/.exec(TERM)?.[0] === "linux" ? "linux" : "xterm-256color";
}
