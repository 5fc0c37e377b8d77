import type { ReadStream, WriteStream } from "node:tty";
import { nodeConnector } from "../link/node.js";
import { openLink } from "../link.js";
import { type Happening, Session } from "./session.js";
import { type Command, type ConnectionState, cardKey, type Event, initial, shownCard } from "./state.js";
import { Terminal } from "./terminal.js";
import { update } from "./update.js";
import { titleOf, view } from "./view.js";

export interface TuiOptions {
  /** `http://HOST:PORT` of the service. */
  readonly url: string;
  readonly token: string;
  /** The number, id or title of the conversation to open. */
  readonly conversation?: string;
  /** Ring the bell when a question arrives. Default true. */
  readonly bell?: boolean;
  /** Mark the terminal's title. Default true. */
  readonly title?: boolean;
  readonly stdin?: NodeJS.ReadStream;
  readonly stdout?: NodeJS.WriteStream;
  readonly stderr?: NodeJS.WritableStream;
}

const SIGNALS = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 } as const;
const TICK_MS = 1_000;

/** 0 left, 2 not a terminal, 8 the service refuses the token or the address, 128 and the signal's number for a signal. */
export type TuiExit = 0 | 2 | 8 | 129 | 130 | 143;

/** Why the terminal cannot run here, or null where it can. */
export function terminalRefusal(stdin: { isTTY?: boolean }, stdout: { isTTY?: boolean }): string | null {
  if (stdin.isTTY === true && stdout.isTTY === true && process.env["TERM"] !== "dumb") return null;
  return "clankie tui needs a terminal for its input and its output";
}

/**
 * Runs the terminal until it is left, and resolves with the exit status. The terminal is given back in every case, also
 * when something in this process throws; then the process ends with 1.
 */
export async function runTui(options: TuiOptions): Promise<TuiExit> {
  const { stdin = process.stdin, stdout = process.stdout, stderr = process.stderr } = options;
  const refusal = terminalRefusal(stdin, stdout);
  if (refusal !== null) {
    stderr.write(`${refusal}\n`);
    return 2;
  }
  return new Promise((resolve) => new Shell(options, stdin as ReadStream, stdout as WriteStream, resolve).start());
}

/** Turns the handle: events in, state, commands out, frames drawn. */
class Shell {
  readonly #terminal: Terminal;
  readonly #session: Session;
  readonly #resolve: (code: TuiExit) => void;
  readonly #undo: (() => void)[] = [];
  #state;
  #queue: Event[] = [];
  #busy = false;
  #drawing = false;
  #ended = false;
  #wasConnected = false;

  constructor(options: TuiOptions, stdin: ReadStream, stdout: WriteStream, resolve: (code: TuiExit) => void) {
    this.#resolve = resolve;
    const tell = (happening: Happening): void => this.#tell(happening);
    const colour = (process.env["NO_COLOR"] ?? "") === "";
    this.#terminal = new Terminal(
      { stdin, stdout, title: options.title ?? true, colour },
      {
        key: (name) => (name === "CTRL_Z" ? this.#suspend() : tell({ type: "key", name })),
        text: (text) => tell({ type: "text", text }),
        paste: (text) => tell({ type: "paste", text }),
        resize: (columns, rows) => tell({ type: "resize", columns, rows }),
      },
    );
    this.#session = new Session(
      openLink({ url: options.url, token: options.token, connector: nodeConnector }),
      options.token,
      tell,
    );
    this.#state = initial({
      now: Date.now(),
      columns: this.#terminal.columns,
      rows: this.#terminal.rows,
      bell: options.bell ?? true,
      conversation: options.conversation ?? null,
    });
  }

  start(): void {
    for (const [name, code] of Object.entries(SIGNALS) as [keyof typeof SIGNALS, TuiExit][]) {
      this.#on(name, () => this.#end(code));
    }
    this.#on("SIGCONT", () => this.#resume());
    this.#on("uncaughtException", (error) => this.#crash(error));
    this.#on("unhandledRejection", (error) => this.#crash(error));
    this.#on("exit", () => this.#terminal.restore());
    const timer = setInterval(() => this.#tell({ type: "tick" }), TICK_MS);
    this.#undo.push(() => clearInterval(timer));
    this.#terminal.take();
    this.#session.start();
    this.#draw();
  }

  #on(name: NodeJS.Signals | "uncaughtException" | "unhandledRejection" | "exit", listener: (what: unknown) => void) {
    process.on(name as "uncaughtException", listener);
    this.#undo.push(() => process.off(name, listener));
  }

  #tell(happening: Happening): void {
    if (this.#ended) return;
    if (happening.type === "link") this.#linked(happening.connection);
    this.#queue.push({ ...happening, at: Date.now() } as Event);
    if (this.#busy) return;
    this.#busy = true;
    try {
      for (let event = this.#queue.shift(); event !== undefined; event = this.#queue.shift()) {
        const { state, commands } = update(this.#state, event);
        this.#state = state;
        for (const command of commands) this.#perform(command);
      }
    } finally {
      this.#busy = false;
    }
    this.#draw();
  }

  /** A token that was never good is a matter of the command line, not of a screen. */
  #linked(connection: ConnectionState): void {
    if (connection.kind === "connected") this.#wasConnected = true;
    if (connection.kind !== "closed" || this.#wasConnected) return;
    this.#end(8);
    process.stderr.write(`clankie tui: ${connection.say}\n`);
  }

  #perform(command: Command): void {
    if (command.type === "bell") this.#terminal.bell();
    else if (command.type === "redraw") this.#terminal.redraw();
    else if (command.type === "quit") this.#end(0);
    else this.#session.perform(command);
  }

  /** One frame for everything that happened in this turn of the loop. */
  #draw(): void {
    if (this.#drawing || this.#ended) return;
    this.#drawing = true;
    setImmediate(() => {
      this.#drawing = false;
      if (this.#ended) return;
      const card = shownCard(this.#state);
      const key = card !== null && card.paintedAt === null ? cardKey(card) : null;
      this.#terminal.title(titleOf(this.#state));
      this.#terminal.draw(view(this.#state), () => {
        if (key !== null) this.#tell({ type: "painted", cardKey: key });
      });
    });
  }

  #suspend(): void {
    this.#terminal.restore();
    process.kill(process.pid, "SIGTSTP");
  }

  #resume(): void {
    this.#terminal.take();
    this.#terminal.redraw();
    this.#tell({ type: "resize", columns: this.#terminal.columns, rows: this.#terminal.rows });
  }

  #crash(error: unknown): void {
    this.#terminal.restore();
    const words = error instanceof Error ? (error.stack ?? error.message) : String(error);
    process.stderr.write(`clankie tui stopped: this is a fault of clankie.\n${words}\n`);
    process.exit(1);
  }

  #end(code: TuiExit): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#terminal.restore();
    this.#session.close();
    for (const undo of this.#undo) undo();
    this.#resolve(code);
  }
}
