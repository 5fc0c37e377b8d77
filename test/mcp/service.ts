import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, readFile, realpath, rm } from "node:fs/promises";
import { connect, createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { nodeConnector } from "../../clients/link/node.js";
import { type Link, openLink } from "../../clients/link.js";
import type { ConversationEvent } from "../../protocol/events.js";
import type { Answer, QuestionResult } from "../../protocol/question.js";
import type { ConversationSnapshot } from "../../protocol/snapshot.js";

/** The program, as `npm run build` made it. */
export const BINARY = fileURLToPath(new URL("../../clients/cli/bin.js", import.meta.url));
export const EXAMPLE = fileURLToPath(new URL("../../clients/agent/example.js", import.meta.url));

/** A real `clankie serve` with its operator; it can be killed and started again on the same data. */
export class RealService {
  readonly root: string;
  readonly #port: number;
  #child: ChildProcess | undefined;
  #link: Link | undefined;
  #url = "";
  #log = "";

  private constructor(root: string, port: number) {
    this.root = root;
    this.#port = port;
  }

  static async start(): Promise<RealService> {
    const service = new RealService(await realpath(await mkdtemp(join(tmpdir(), "clankie-agents-"))), 0);
    await service.start();
    return service;
  }

  get url(): string {
    return this.#url;
  }

  /** What the service has logged. */
  get log(): string {
    return this.#log;
  }

  get operator(): Link {
    if (this.#link === undefined) throw new Error("the service is not running");
    return this.#link;
  }

  get data(): string {
    return join(this.root, "data");
  }

  /** Starts it; a second time on the port that it had. */
  async start(): Promise<void> {
    const port = this.#url === "" ? String(this.#port) : new URL(this.#url).port;
    const child = spawn(process.execPath, [BINARY, "serve", "--data", this.data, "--port", port, "--json"], {
      stdio: ["ignore", "pipe", "pipe"],
    });
    this.#child = child;
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      this.#log += text;
    });
    const line = await Promise.race([
      once(createInterface({ input: child.stdout }), "line").then(([text]) => String(text)),
      once(child, "exit").then(([code]) => {
        throw new Error(`clankie serve ended with ${String(code)}: ${this.#log}`);
      }),
    ]);
    const ready = JSON.parse(line) as { readonly url: string; readonly operatorTokenFile: string };
    this.#url = ready.url;
    const token = (await readFile(ready.operatorTokenFile, "utf8")).trim();
    this.#link = openLink({ url: ready.url, token, connector: nodeConnector });
    await this.#link.ready();
  }

  async kill(): Promise<void> {
    await this.#end("SIGKILL");
  }

  /** Ends it and removes what it left. */
  async end(): Promise<void> {
    await this.#end("SIGTERM");
    await rm(this.root, { recursive: true, force: true, maxRetries: 5 });
  }

  async directory(name: string): Promise<string> {
    const path = join(this.root, name);
    await mkdir(path, { recursive: true });
    return path;
  }

  /** A conversation in a directory, with this command as its agent or for an attached one. */
  async conversation(directory: string, command?: readonly string[]): Promise<string> {
    const { conversation } = await this.operator.call("conversation_create", {
      scope: { kind: "workspace", workspaceId: directory },
      ...(command === undefined ? {} : { runner: { kind: "command", command: [...command] } }),
    });
    return conversation.conversationId;
  }

  async send(conversationId: string, message: string): Promise<string> {
    const sent = await this.operator.call("conversation_send", { conversationId, message });
    if (sent.status !== "accepted") throw new Error(`not accepted: ${sent.status}`);
    return sent.runId;
  }

  async show(conversationId: string): Promise<ConversationSnapshot> {
    return (await this.operator.call("conversation_show", { conversationId })).conversation;
  }

  read(conversationId: string, requestId?: string): Promise<QuestionResult> {
    return this.operator.call(
      "input_get",
      requestId === undefined ? { conversationId } : { conversationId, requestId },
    );
  }

  /** Answers the pending question: with the option of this label, or with a text. */
  async answer(conversationId: string, answer: { readonly label: string } | { readonly text: string }) {
    const { question, revision = 0 } = await this.read(conversationId);
    if (question === undefined) throw new Error("no question is pending");
    const { incarnationId, requestId, options } = question;
    const optionId = "label" in answer ? options.find(({ label }) => label === answer.label)?.optionId : undefined;
    const chosen: Answer =
      "label" in answer
        ? { kind: "choice", optionId: optionId ?? "no such option" }
        : { kind: "text", text: answer.text };
    return this.operator.call("input_answer", {
      conversationId,
      incarnationId,
      requestId,
      expectedRevision: revision,
      answer: chosen,
    });
  }

  /** The token of an attached agent whose credential the operator issues. */
  async agentToken(conversationId: string) {
    return this.operator.call("credential_issue", { kind: "agent", conversationId });
  }

  /** Waits for an event of a conversation, also one that has come already. */
  async event<T extends ConversationEvent["type"]>(
    conversationId: string,
    type: T,
    fits: (event: Extract<ConversationEvent, { type: T }>) => boolean,
  ): Promise<Extract<ConversationEvent, { type: T }>> {
    const { events, next } = await this.operator.call("conversation_tail", { conversationId, limit: 500 });
    const past = events.find((event) => isOf(event, type) && fits(event));
    if (past !== undefined && isOf(past, type)) return past;
    return new Promise((resolve, reject) => {
      const watch = this.operator.watchConversation(conversationId, { events: true, after: next }, (update) => {
        if (update.kind === "failed") reject(update.error);
        if (update.kind !== "event" || !isOf(update.event, type) || !fits(update.event)) return;
        watch.close();
        resolve(update.event);
      });
    });
  }

  /** Waits for the end of a run. */
  turnEnd(conversationId: string, runId: string) {
    return this.event(conversationId, "turn", (turn) => turn.runId === runId && turn.phase !== "accepted");
  }

  async #end(signal: NodeJS.Signals): Promise<void> {
    this.#link?.close();
    this.#link = undefined;
    const child = this.#child;
    this.#child = undefined;
    if (child === undefined || child.exitCode !== null) return;
    const exited = once(child, "exit");
    child.kill(signal);
    await exited;
  }
}

const isOf = <T extends ConversationEvent["type"]>(
  event: ConversationEvent,
  type: T,
): event is Extract<ConversationEvent, { type: T }> => event.type === type;

/** A wire between a client and the service that can be cut at the worst moment. */
export class Wire {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  readonly #target: number;
  #armed = false;
  #open = true;

  private constructor(server: Server, target: number) {
    this.#server = server;
    this.#target = target;
    server.on("connection", (client) => this.#join(client));
  }

  static async to(url: string): Promise<Wire> {
    const server = createServer();
    const wire = new Wire(server, Number(new URL(url).port));
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    return wire;
  }

  get url(): string {
    const address = this.#server.address();
    if (address === null || typeof address === "string") throw new Error("the wire has no port");
    return `http://127.0.0.1:${address.port}`;
  }

  /** The next thing the service says is lost, and the connection with it; `forGood` lets no other one through. */
  loseNextReply(forGood = false): void {
    this.#armed = true;
    this.#open = !forGood;
  }

  close(): void {
    for (const socket of this.#sockets) socket.destroy();
    this.#server.close();
  }

  #join(client: Socket): void {
    if (!this.#open) {
      client.destroy();
      return;
    }
    const service = connect(this.#target, "127.0.0.1");
    for (const socket of [client, service]) {
      this.#sockets.add(socket);
      socket
        .on("error", () => {})
        .on("close", () => {
          this.#sockets.delete(socket);
          client.destroy();
          service.destroy();
        });
    }
    client.on("data", (data) => service.write(data));
    service.on("data", (data) => {
      if (this.#armed) {
        this.#armed = false;
        client.destroy();
      } else client.write(data);
    });
  }
}
