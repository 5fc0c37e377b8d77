import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, readFile, rm } from "node:fs/promises";
import { connect, createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import * as pty from "@lydell/node-pty";
import xterm from "@xterm/headless";
import { nodeConnector } from "../../clients/link/node.js";
import { type Link, openLink } from "../../clients/link.js";
import type { QuestionDraft, QuestionResult } from "../../protocol/question.js";

/** The program as it is installed. */
const BIN = fileURLToPath(new URL("../../clients/cli/bin.js", import.meta.url));
const DEADLINE_MS = 30_000;

/** Waits for something that an event can bring about, and says what it waited for when it does not come. */
function until(
  what: string,
  holds: () => boolean,
  subscribe: (look: () => void) => () => void,
  show: () => string,
): Promise<void> {
  return new Promise((resolve, reject) => {
    let stop = (): void => {};
    const timer = setTimeout(() => {
      stop();
      reject(new Error(`${what} did not come within ${DEADLINE_MS / 1000} s; the screen:\n${show()}`));
    }, DEADLINE_MS);
    const look = (): void => {
      if (!holds()) return;
      clearTimeout(timer);
      stop();
      resolve();
    };
    stop = subscribe(look);
    look();
  });
}

/** A real service in a process of its own, with a data directory of its own. */
export class ServedWorld {
  readonly home: string;
  readonly directory: string;
  #child: ChildProcess | undefined;
  #screens: Screen[] = [];
  #links: Link[] = [];
  url = "";
  token = "";

  private constructor(home: string) {
    this.home = home;
    this.directory = join(home, "project");
  }

  static async start(): Promise<ServedWorld> {
    const world = new ServedWorld(await mkdtemp(join(tmpdir(), "clankie-tui-")));
    await mkdir(world.directory);
    await world.serve();
    return world;
  }

  /** Starts the service, on the port it had where it had one. */
  async serve(): Promise<void> {
    const port = this.url === "" ? "0" : new URL(this.url).port;
    const child = spawn(
      process.execPath,
      [BIN, "serve", "--json", "--log-level", "silent", "--port", port, "--data", join(this.home, "data")],
      {
        env: { ...process.env, HOME: this.home },
        stdio: ["ignore", "pipe", "ignore"],
      },
    );
    this.#child = child;
    const [line] = (await once(createInterface({ input: child.stdout }), "line")) as [string];
    const ready = JSON.parse(line) as { readonly url: string; readonly operatorTokenFile: string };
    this.url = ready.url;
    this.token = (await readFile(ready.operatorTokenFile, "utf8")).trim();
  }

  async kill(signal: NodeJS.Signals = "SIGKILL"): Promise<void> {
    const child = this.#child;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, "exit");
    child.kill(signal);
    await ended;
  }

  /** A client of the same service, with the operator's token or another. */
  async link(token = this.token): Promise<Link> {
    const link = openLink({ url: this.url, token, connector: nodeConnector });
    this.#links.push(link);
    await link.ready();
    return link;
  }

  async conversation(link: Link, title = "Project"): Promise<string> {
    const { conversation } = await link.call("conversation_create", {
      scope: { kind: "workspace", workspaceId: this.directory },
      title,
    });
    return conversation.conversationId;
  }

  tui(args: readonly string[] = [], options: ScreenOptions = {}): Screen {
    const screen = new Screen(
      args,
      { HOME: this.home, CLANKIE_URL: this.url, CLANKIE_TOKEN: options.token ?? this.token, ...options.env },
      options,
    );
    this.#screens.push(screen);
    return screen;
  }

  /** Runs the program without a terminal. */
  async without(
    args: readonly string[],
  ): Promise<{ readonly code: number | null; readonly stdout: string; readonly stderr: string }> {
    const child = spawn(process.execPath, [BIN, ...args], {
      env: { ...process.env, HOME: this.home, CLANKIE_URL: this.url, CLANKIE_TOKEN: this.token },
      stdio: ["ignore", "pipe", "pipe"],
    });
    const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, "close")]);
    return { code: code as number | null, stdout, stderr };
  }

  /** Ends every screen and every link, and leaves the service running. */
  async left(): Promise<void> {
    for (const screen of this.#screens.splice(0)) screen.kill();
    for (const link of this.#links.splice(0, this.#links.length - 1)) link.close();
    if (this.#child?.exitCode !== null || this.#child.signalCode !== null) await this.serve();
  }

  async end(): Promise<void> {
    for (const link of this.#links) link.close();
    for (const screen of this.#screens) screen.kill();
    await this.kill();
    await rm(this.home, { recursive: true, force: true });
  }
}

/** A way to the service that can be cut between a request and its reply. */
export class Cuttable {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  #state: "open" | "armed" | "cut" = "open";

  private constructor(url: URL) {
    this.#server = createServer((near) => {
      if (this.#state === "cut") return void near.destroy();
      const far = connect(Number(url.port), url.hostname);
      for (const socket of [near, far]) {
        this.#sockets.add(socket);
        socket.on("error", () => undefined);
        socket.on("close", () => [near, far].forEach((end) => void end.destroy()));
      }
      near.on("data", (data) => far.write(data));
      far.on("data", (data) => {
        if (this.#state === "open") near.write(data);
        else this.#cut();
      });
    });
  }

  static async to(url: string): Promise<Cuttable> {
    const proxy = new Cuttable(new URL(url));
    proxy.#server.listen(0, "127.0.0.1");
    await once(proxy.#server, "listening");
    return proxy;
  }

  get url(): string {
    const address = this.#server.address();
    return `http://127.0.0.1:${typeof address === "object" ? address?.port : ""}`;
  }

  /** The next reply is lost, and the connection with it. */
  arm(): void {
    this.#state = "armed";
  }

  mend(): void {
    this.#state = "open";
  }

  close(): void {
    this.#cut();
    this.#server.close();
  }

  #cut(): void {
    this.#state = "cut";
    for (const socket of this.#sockets) socket.destroy();
    this.#sockets.clear();
  }
}

export interface ScreenOptions {
  readonly columns?: number;
  readonly rows?: number;
  readonly token?: string;
  readonly env?: Readonly<Record<string, string>>;
  /** Run by a shell that then prints the terminal's settings. */
  readonly shell?: boolean;
}

const TOO_EARLY = "you began to type";
const OUTCOME = /you began to type|Sending your answer|Sent and stored|Not stored|since you read|✔ Answered/;

/** The terminal in a real pseudo-terminal, and what a terminal emulator makes of it. */
export class Screen {
  readonly emulator: xterm.Terminal;
  readonly process: pty.IPty;
  readonly titles: string[] = [];
  bells = 0;
  exit: { readonly exitCode: number; readonly signal?: number | undefined } | undefined;
  #listeners = new Set<() => void>();

  constructor(args: readonly string[], env: Readonly<Record<string, string>>, options: ScreenOptions) {
    const { columns = 80, rows = 24 } = options;
    this.emulator = new xterm.Terminal({
      cols: columns,
      rows,
      allowProposedApi: true,
      windowOptions: { pushTitle: true, popTitle: true },
    });
    this.emulator.onTitleChange((title) => this.titles.push(title));
    this.emulator.onBell(() => {
      this.bells += 1;
    });
    const command = [process.execPath, BIN, "tui", ...args];
    const [file = "", ...rest] =
      options.shell === true
        ? ["/bin/sh", "-c", `trap : TERM INT HUP USR2; "$@"; echo "status $?"; stty -a; echo END`, "sh", ...command]
        : command;
    this.process = pty.spawn(file, rest, {
      name: "xterm-256color",
      cols: columns,
      rows,
      env: { PATH: process.env["PATH"] ?? "", TERM: "xterm-256color", LANG: "C.UTF-8", TZ: "UTC", ...env },
    });
    this.process.onData((data) => this.emulator.write(data, () => this.#look()));
    this.process.onExit((exit) => {
      this.exit = exit;
      this.#look();
    });
  }

  get text(): string {
    const { active } = this.emulator.buffer;
    return Array.from(
      { length: this.emulator.rows },
      (_, row) => active.getLine(active.baseY + row)?.translateToString(true) ?? "",
    ).join("\n");
  }

  /** Waits until the screen shows it. */
  shows(what: RegExp | string): Promise<void> {
    return this.until(`“${what}”`, () => (typeof what === "string" ? this.text.includes(what) : what.test(this.text)));
  }

  until(what: string, holds: () => boolean): Promise<void> {
    const subscribe = (look: () => void) => {
      this.#listeners.add(look);
      return () => this.#listeners.delete(look);
    };
    return until(what, holds, subscribe as (look: () => void) => () => void, () => this.text);
  }

  ended(): Promise<void> {
    return this.until("the end", () => this.exit !== undefined);
  }

  send(keys: string): void {
    this.process.write(keys);
  }

  /** Types a line as a person does: waits until it is in the input, then Enter. */
  async line(text: string): Promise<void> {
    this.send(text);
    await this.until(`“${text}” in the input`, () =>
      this.text.replaceAll(/\s/g, "").includes(`›${text.replaceAll(/\s/g, "")}`),
    );
    this.send("\r");
  }

  /** Reads the question that waits. */
  async read(): Promise<void> {
    await this.shows("A question waits");
    await this.line("/question");
    await this.shows("cancel · Esc hides");
  }

  /** Sends what is in the input. A test types faster than a person: what falls into the grace is brought back and sent. */
  async submit(outcome = OUTCOME): Promise<void> {
    this.send("\r");
    for (;;) {
      await this.shows(outcome);
      if (!this.text.includes(TOO_EARLY)) return;
      this.send("\u001b[A");
      await this.shows(/› \/question/);
      this.send("\r");
      await this.until("what comes of it", () => !/› \/question/.test(this.text));
    }
  }

  async answer(line: string): Promise<void> {
    this.send(line);
    await this.shows(`› ${line}`);
    await this.submit();
  }

  resize(columns: number, rows: number): void {
    this.emulator.resize(columns, rows);
    this.process.resize(columns, rows);
  }

  /** To the program and the shell around it, which traps it. */
  signal(name: NodeJS.Signals): void {
    process.kill(-this.process.pid, name);
  }

  kill(): void {
    if (this.exit === undefined) this.process.kill("SIGKILL");
  }

  #look(): void {
    for (const listener of [...this.#listeners]) listener();
  }
}

export const CHOICE: QuestionDraft = {
  kind: "choice",
  prompt: "Which file should I describe first?",
  options: [{ label: "README.md", description: "what it is for" }, { label: "package.json" }],
  allowFreeform: true,
};

export const ask = (link: Link, conversationId: string, draft: QuestionDraft = CHOICE): Promise<QuestionResult> =>
  link.call("request_user_input", { conversationId, ...draft });
