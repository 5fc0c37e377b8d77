import { mkdir, mkdtemp, readFile, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ConversationEvent } from "../protocol/events.js";
import type { DeviceMode } from "../protocol/operations.js";
import type { QuestionDraft, QuestionResult, Target } from "../protocol/question.js";
import type { ConversationSnapshot } from "../protocol/snapshot.js";
import { type RunningService, type ServeOptions, serve } from "../server/main.js";
import { TestEnvironment } from "./clock.js";
import { parseAsOlderClient } from "./lifecycle.js";
import { RawClient } from "./raw-client.js";
import { type ServiceProcess, startServiceProcess } from "./service-process.js";

export interface WorldOptions {
  /** `here`: in this process, in time that the test moves. `process`: the real binary, which can be killed. */
  readonly service?: "here" | "process";
  readonly serve?: Partial<Omit<ServeOptions, "dataDirectory">>;
  /** For `process`: further arguments of `clankie serve`. */
  readonly args?: readonly string[];
}

export const CHOICE = {
  kind: "choice",
  prompt: "Which file first?",
  options: [{ label: "README.md" }, { label: "LICENSE", description: "the short one" }],
} as const satisfies QuestionDraft;

export const TEXT = { kind: "text", prompt: "What should the title say?" } as const satisfies QuestionDraft;

/**
 * A running service with real parts for one test: its directories, its principals, raw clients, and an observer that sees
 * every event of every conversation and shows it to an older strict client.
 */
export class World {
  readonly root: string;
  readonly data: string;
  readonly time = new TestEnvironment();
  readonly #options: WorldOptions;
  readonly #events = new Map<string, ConversationEvent[]>();
  readonly #clients = new Set<RawClient>();
  #running: RunningService | ServiceProcess | undefined;
  #observer: RawClient | undefined;
  #operator: RawClient | undefined;
  #observerToken: string | undefined;
  #wakers: (() => void)[] = [];
  #directories = 0;
  #refused: unknown;

  private constructor(root: string, options: WorldOptions) {
    this.root = root;
    this.data = join(root, "data");
    this.#options = options;
  }

  static async make(options: WorldOptions = {}): Promise<World> {
    const world = new World(await realpath(await mkdtemp(join(tmpdir(), "clankie-world-"))), options);
    await world.start();
    return world;
  }

  get url(): string {
    return this.service.url;
  }

  get service(): RunningService | ServiceProcess {
    if (this.#running === undefined) throw new Error("the service is not running");
    return this.#running;
  }

  /** Lets time pass for a service in this process, slowly enough that every client can answer its pings. */
  async pass(ms: number): Promise<void> {
    for (let left = ms; left > 0; left -= 29_000) {
      this.time.pass(Math.min(left, 29_000));
      // With the second reply, the answer to a ping that came before the first is there.
      for (const _ of [1, 2]) {
        const open = [...this.#clients].filter(({ isOpen }) => isOpen);
        await Promise.all(
          open.map((client) => client.call("service_status", { schemaVersion: 1 }).catch(() => undefined)),
        );
      }
    }
  }

  /** A client with the operator's token, as it was when the service started. */
  get operator(): RawClient {
    if (this.#operator === undefined) throw new Error("the service is not running");
    return this.#operator;
  }

  /** Starts the service, for the first time or again. */
  async start(): Promise<void> {
    const { service = "here", args = [] } = this.#options;
    this.#running =
      service === "process"
        ? await startServiceProcess(this.data, args)
        : await serve(
            { host: "127.0.0.1", port: 0, logLevel: "silent", ...this.#options.serve, dataDirectory: this.data },
            this.time,
          );
    this.#operator = await this.connect(await this.token("operator"));
    if (this.#observerToken === undefined) {
      this.#observerToken = (await this.#operator.ok("credential_issue", { kind: "captain" })).token;
    }
    this.#observer = await this.connect(this.#observerToken);
    void this.#observe(this.#observer);
    for (const [conversationId, events] of this.#events)
      await this.#follow(conversationId, events.at(-1)?.cursor ?? START);
  }

  /** Connects the operator again, with the token that its file holds now. */
  async reconnect(): Promise<void> {
    this.#operator = await this.connect(await this.token("operator"));
  }

  /** Ends the service as it ends when it is asked to. */
  async stop(): Promise<void> {
    const running = this.#running;
    if (running === undefined) return;
    this.#running = undefined;
    if (this.#observer?.isOpen) await this.#observer.ok("service_status", {}).catch(() => undefined);
    await running.stop();
    await Promise.all([...this.#clients].map((client) => client.close()));
    this.#clients.clear();
  }

  /** `kill -9`. Only for a service that is a process. */
  async kill(): Promise<void> {
    const running = this.#running;
    if (running === undefined || !("kill" in running)) throw new Error("only a process can be killed");
    this.#running = undefined;
    await running.kill();
    await Promise.all([...this.#clients].map((client) => client.closed));
    this.#clients.clear();
  }

  /** Ends everything and removes every directory. */
  async end(): Promise<void> {
    await this.stop();
    await rm(this.root, { recursive: true, force: true, maxRetries: 5 });
    if (this.#refused !== undefined) throw this.#refused;
  }

  async connect(token?: string, headers?: Readonly<Record<string, string>>): Promise<RawClient> {
    const client = await RawClient.connect(this.url, token, headers);
    this.#clients.add(client);
    return client;
  }

  async token(credential: "operator" | "captain"): Promise<string> {
    return (await readFile(join(this.data, `${credential}.token`), "utf8")).trim();
  }

  async captain(): Promise<RawClient> {
    return this.connect(await this.token("captain"));
  }

  /** Pairs a device and connects as it. */
  async device(mode: DeviceMode, expiresInSeconds?: number) {
    const begun = await this.operator.ok("device_pair_begin", {
      mode,
      ...(expiresInSeconds !== undefined && { expiresInSeconds }),
    });
    const nobody = await this.connect();
    const { deviceId, token } = await nobody.ok("device_pair_complete", { code: begun.code, name: `${mode} phone` });
    await nobody.close();
    return { deviceId, token, client: await this.connect(token) };
  }

  /** Issues an attached agent's credential for a conversation and connects with it. */
  async agent(conversationId: string, expiresInSeconds?: number) {
    const { credentialId, token } = await this.operator.ok("credential_issue", {
      kind: "agent",
      conversationId,
      ...(expiresInSeconds !== undefined && { expiresInSeconds }),
    });
    return { credentialId, token, client: await this.connect(token) };
  }

  /** A new directory. */
  async directory(name = `workspace-${++this.#directories}`): Promise<string> {
    const path = join(this.root, name);
    await mkdir(path);
    return path;
  }

  /** A conversation in a new directory: with this command as its agent, or for an attached one. */
  async conversation(command?: readonly string[], client: RawClient = this.operator): Promise<ConversationSnapshot> {
    return this.conversationIn(await this.directory(), command, client);
  }

  async conversationIn(
    directory: string,
    command?: readonly string[],
    client: RawClient = this.operator,
  ): Promise<ConversationSnapshot> {
    const { conversation } = await client.ok("conversation_create", {
      scope: { kind: "workspace", workspaceId: directory },
      ...(command !== undefined && { runner: { kind: "command", command: [...command] } }),
    });
    await this.watch(conversation.conversationId);
    return conversation;
  }

  /** Has the observer see every event of a conversation from its beginning. */
  async watch(conversationId: string): Promise<void> {
    this.#events.set(conversationId, []);
    await this.#follow(conversationId, START);
  }

  /** A conversation with an attached agent and its pending question. */
  async pending(draft: QuestionDraft = CHOICE) {
    const { conversationId } = await this.conversation();
    const agent = await this.agent(conversationId);
    const asked = await agent.client.ok("request_user_input", { conversationId, ...draft });
    return { conversationId, agent, asked, target: targetOf(asked), optionIds: optionsOf(asked) };
  }

  /** A run of a conversation whose agent is `sh`: its token, taken from its environment. The run goes on until it is ended. */
  async run(client: RawClient = this.operator) {
    const { conversationId } = await this.conversation(["sh", "-c", 'echo "$CLANKIE_TOKEN"; exec sleep 600']);
    const { runId } = await this.send(conversationId, "go", client);
    const { text } = await this.event(conversationId, "message", ({ role }) => role === "agent");
    const token: string = text;
    return { conversationId, runId, token, client: await this.connect(token) };
  }

  async send(conversationId: string, message: string, client: RawClient = this.operator): Promise<{ runId: string }> {
    const result = await client.ok("conversation_send", { conversationId, message });
    if (result.status !== "accepted") throw new Error(`the message was not accepted: ${result.status}`);
    return { runId: result.runId };
  }

  /** Everything the observer has seen of a conversation. */
  events(conversationId: string): readonly ConversationEvent[] {
    return this.#events.get(conversationId) ?? [];
  }

  /** The first event of a type, of those that came or will come, that fits. */
  async event<T extends ConversationEvent["type"]>(
    conversationId: string,
    type: T,
    fits: (event: Extract<ConversationEvent, { type: T }>) => boolean = () => true,
  ): Promise<Extract<ConversationEvent, { type: T }>> {
    for (;;) {
      for (const event of this.events(conversationId)) {
        if (isOf(event, type) && fits(event)) return event;
      }
      if (this.#observer?.isOpen !== true) throw new Error(`the connection closed before ${type} came`);
      await new Promise<void>((resolve) => this.#wakers.push(resolve));
    }
  }

  /** The end of a run: how, and why. */
  turnEnd(conversationId: string, runId: string) {
    return this.event(conversationId, "turn", (turn) => turn.runId === runId && turn.phase !== "accepted");
  }

  async show(conversationId: string): Promise<ConversationSnapshot> {
    return (await this.operator.ok("conversation_show", { conversationId })).conversation;
  }

  async #follow(conversationId: string, after: string): Promise<void> {
    await this.#observer?.ok("conversation_subscribe", { conversationId, events: true, after });
  }

  async #observe(observer: RawClient): Promise<void> {
    let seen = 0;
    while (observer.isOpen) {
      await observer.notified((each) => observer.notifications.indexOf(each) >= seen).catch(() => undefined);
      for (; seen < observer.notifications.length; seen += 1) this.#see(observer.notifications[seen]!);
      for (const wake of this.#wakers.splice(0)) wake();
    }
    for (const wake of this.#wakers.splice(0)) wake();
  }

  #see({ method, params }: { readonly method: string; readonly params: Readonly<Record<string, unknown>> }): void {
    if (method !== "conversation_event") return;
    try {
      parseAsOlderClient(params["event"]);
    } catch (error) {
      this.#refused ??= error;
    }
    const event = params["event"] as ConversationEvent;
    this.#events.get(event.conversationId)?.push(event);
  }
}

const START = "0000000000000000";

const isOf = <T extends ConversationEvent["type"]>(
  event: ConversationEvent,
  type: T,
): event is Extract<ConversationEvent, { type: T }> => event.type === type;

/** Runs a test in a world of its own. */
export const inWorld =
  (body: (world: World) => Promise<void>, options: WorldOptions = {}) =>
  async (): Promise<void> => {
    const world = await World.make(options);
    try {
      await body(world);
    } catch (error) {
      await world.end().catch(() => undefined);
      throw error;
    }
    await world.end();
  };

/** What names a displayed question to answer or cancel it. */
export function targetOf({ conversationId, incarnationId, revision, question }: QuestionResult): Target {
  if (incarnationId === undefined || revision === undefined || question === undefined) {
    throw new Error("this result shows no question");
  }
  return { conversationId, incarnationId, requestId: question.requestId, expectedRevision: revision };
}

const optionsOf = ({ question }: QuestionResult): readonly string[] =>
  (question?.options ?? []).map(({ optionId }) => optionId);
