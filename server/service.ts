import { answerAuthority, mayCall, mayRead } from "../machines/authority.js";
import type { ConversationContext, CredentialStamp } from "../machines/context.js";
import { BEGINNING, cursorOf } from "../machines/context.js";
import { type ConversationState, decide } from "../machines/decide.js";
import type {
  AskFacts,
  Caller,
  ConversationEvent,
  QuestionFacts,
  Response,
  RunFacts,
  Standing,
} from "../machines/facts.js";
import { questionResult } from "../machines/views.js";
import { BOUNDS } from "../protocol/bounds.js";
import type { ChartCredential, ChartFacts } from "../protocol/chart.js";
import type { ConversationEvent as StoredEvent } from "../protocol/events.js";
import type { Method, Params, Result, WorkspaceFacts } from "../protocol/operations.js";
import type { Question, QuestionResult, Target } from "../protocol/question.js";
import { checkEvent } from "../protocol/results.js";
import type { ConversationSnapshot } from "../protocol/snapshot.js";
import { ChartFollower, Charts } from "./charts.js";
import {
  type Answered,
  type Committed,
  type Conversation,
  type ConversationHost,
  type Performed,
  type Prepared,
  snapshotAt,
  stateUnavailable,
} from "./conversations/conversation.js";
import { Conversations, idOfPlace } from "./conversations/conversations.js";
import { eventPrefix, isActive } from "./conversations/record.js";
import { type Environment, timestamp } from "./environment.js";
import { Fault, invalid } from "./fault.js";
import { PendingQuestions } from "./inbox.js";
import { parsed } from "./json.js";
import type { Log } from "./log.js";
import { Metrics } from "./metrics.js";
import { bytesOf, fitting, PAGE_BYTES } from "./pages.js";
import { Pairing } from "./principals/pairing.js";
import { deviceView, type Presented, PrincipalRegistry } from "./principals/registry.js";
import { type CommandOptions, type CommandProcess, startCommand } from "./runs/command.js";
import type { LiveRuns } from "./runs/orphans.js";
import { messageOf, Runs } from "./runs/runs.js";
import type { Store } from "./store/port.js";
import { StoreKeeper } from "./store-keeper.js";
import {
  type Change,
  ConversationFollower,
  eventFrame,
  type InboxFollower,
  type Outlet,
  type Versioned,
} from "./subscriptions.js";
import {
  resolveWorkspace,
  sameWorkspace,
  type WorkspaceIdentity,
  type WorkspaceResolution,
} from "./workspace/identity.js";
import { type ProjectsView, projectMembership } from "./workspace/membership.js";
import { nameOf } from "./workspace/name.js";
import { Projects } from "./workspace/projects.js";

export interface ServiceOptions {
  readonly version: string;
  readonly dataDirectory: string;
  /** Stable for a data directory: marks what is this service's own. */
  readonly serviceId: string;
  readonly retainEvents: number;
  readonly runTimeoutMs: number;
  /** The variables an agent's command inherits. */
  readonly agentEnvironment: Readonly<Record<string, string>>;
  /** Where it is noted which runs have processes. */
  readonly liveRuns?: LiveRuns;
  /** Called when the operator's token was rotated, with the new one. */
  readonly operatorTokenChanged: (id: string, token: string) => Promise<void>;
  /** How many idle conversations stay in memory; 1 000 where absent. */
  readonly keptInMemory?: number;
  /** How directories are looked at; the file system and Git where absent. */
  readonly workspaces?: Workspaces;
  /** How an agent's command is started; as a process group where absent. */
  readonly startCommand?: (options: CommandOptions) => CommandProcess;
}

/** What the service asks of directories. Contract sections 6.6 and 10. */
export interface Workspaces {
  resolve(path: string): Promise<WorkspaceResolution>;
  same(identity: WorkspaceIdentity): Promise<boolean>;
  membership(directory: string, projects: ProjectsView): Promise<WorkspaceFacts>;
}

const realWorkspaces: Workspaces = {
  resolve: resolveWorkspace,
  same: sameWorkspace,
  membership: (directory, projects) => projectMembership(directory, projects),
};

/** Who calls, over which connection. */
export interface Call {
  readonly presented: Presented;
  readonly subscriber: Subscriber;
  /** Runs a task right after the reply was sent: what a subscription tells follows the snapshot it began with. */
  afterReply(task: () => void): void;
}

/** What a connection follows. Closing it ends everything it follows. */
export class Subscriber {
  readonly outlet: Outlet;
  readonly conversations = new Map<string, { readonly follower: ConversationFollower; readonly end: () => void }>();
  /** What ends each view on the chart, by conversation. */
  readonly charts = new Map<string, () => void>();
  inbox: InboxFollower | null = null;

  constructor(outlet: Outlet) {
    this.outlet = outlet;
  }

  get followsSomething(): boolean {
    return this.conversations.size > 0 || this.charts.size > 0 || this.inbox !== null;
  }
}

type Guarded = Exclude<Method, "authenticate" | "device_pair_complete">;
type Handlers = {
  readonly [M in Guarded]: (params: Params<M>, call: Call, caller: Caller) => Promise<Result<M>> | Result<M>;
};

/** When a run that the store did not let begin is begun again, in milliseconds. */
const BEGIN_AGAIN_MS = 1_000;
/** How long requests that were let in are waited for at a stop, in milliseconds. */
const DRAIN_MS = 5_000;

/** Events of a subscription are read from the store in pages of this size, so that a slow reader costs little. */
const FOLLOW_PAGE = 50;

const KEPT_IN_MEMORY = 1_000;

/** After how long events that could not be read are read again for a subscriber, in milliseconds. */
const READ_AGAIN_MS = 1_000;

/**
 * The pipeline: authenticate, validate, gather facts, let the machine decide, commit, then reply, tell and perform.
 * No rule lives here. Contract section 5.
 */
export class Service {
  readonly principals: PrincipalRegistry;
  readonly pairing: Pairing;
  readonly projects: Projects;
  readonly pending = new PendingQuestions();
  readonly metrics: Metrics;
  readonly keeper: StoreKeeper;
  readonly #options: ServiceOptions;
  readonly #store: Store;
  readonly #environment: Environment;
  readonly #log: Log;
  readonly #workspaces: Workspaces;
  readonly #conversations: Conversations;
  readonly #runs: Runs;
  readonly #charts = new Charts();
  readonly #followers = new Map<string, Set<ConversationFollower>>();
  readonly #active = new Set<string>();
  /** Conversations with an active run, whoever's: a command's or an attached agent's. */
  readonly #inTurn = new Set<string>();
  readonly #unrecovered = new Set<string>();
  readonly #startedAt: number;
  #url = "";
  #stopping = false;
  /** Requests that are being worked on. */
  #underWay = 0;
  #drained: () => void = () => undefined;
  /** Live views of a conversation, over all connections. */
  followersOf(conversationId: string): number {
    return this.#followers.get(conversationId)?.size ?? 0;
  }

  /** Open sockets, told by the socket layer. */
  connections: () => number = () => 0;
  /** Called when credentials changed: live views of those that are no longer good end. */
  credentialsChanged: () => void = () => undefined;

  constructor(options: ServiceOptions, store: Store, environment: Environment, log: Log) {
    this.#options = options;
    this.#store = store;
    this.#environment = environment;
    this.#log = log;
    this.#workspaces = options.workspaces ?? realWorkspaces;
    this.#startedAt = environment.now();
    this.keeper = new StoreKeeper(store, environment, log, () => this.metrics.storeFaults.inc());
    const isBack = (): Promise<boolean> => this.keeper.isBack();
    this.principals = new PrincipalRegistry(store, environment, isBack);
    this.pairing = new Pairing(environment);
    this.projects = new Projects(store, environment, isBack);
    this.keeper.readAgain = async () => {
      const before = new Set(this.principals.revoked().map(({ id }) => id));
      await this.#readRegistries();
      this.#foundRevoked(this.principals.revoked().filter(({ id }) => !before.has(id)));
    };
    const host: ConversationHost = {
      store,
      environment,
      retainEvents: options.retainEvents,
      serviceId: options.serviceId,
      keptInMemory: options.keptInMemory ?? KEPT_IN_MEMORY,
      unrecovered: this.#unrecovered,
      committed: (change) => this.#committed(change),
      decided: (decided) => this.#charts.decided(decided),
      perform: (conversationId, effect, state) => this.#perform(conversationId, effect, state),
      storeIsBack: () => this.keeper.isBack(),
      reading: (read) => this.keeper.reading(read),
    };
    this.#conversations = new Conversations(host);
    const service = this;
    this.#runs = new Runs({
      get url() {
        return service.#url;
      },
      timeLimitMs: options.runTimeoutMs,
      startCommand: options.startCommand ?? startCommand,
      ...(options.liveRuns !== undefined && { live: options.liveRuns }),
      environment: options.agentEnvironment,
      openToken: (runId, conversationId) => this.principals.openRun(runId, conversationId),
      closeToken: (runId) => this.principals.closeRun(runId),
      facts: (directory) => this.#facts(directory),
      report: async (conversationId, caller, runId, bodies) => {
        await this.#handle(conversationId, () => ({
          event: { type: "run.report", at: this.#now(), caller, runId, bodies },
          fence: [],
        }));
      },
      settle: async (conversationId, caller, runId, end) => {
        await this.#handle(conversationId, () => ({
          event: { type: "run.settle", at: this.#now(), caller, runId, ...end },
          fence: [],
        }));
      },
      after: (ms, task) => environment.after(ms, task),
      log: (message, fields) => log.info(fields, message),
    });
    this.metrics = new Metrics({
      connections: () => this.connections(),
      pending: () => this.pending.count,
      runs: () => this.#runs.count,
      commits: () => store.status().commits,
      waiting: () => store.status().waiting,
      storeReady: () => store.status().state === "open",
      damage: () => store.status().report.damage.length,
    });
  }

  /** Where agents reach the service; known once it listens. */
  listening(url: string): void {
    this.#url = url;
  }

  get isReady(): boolean {
    return !this.#stopping && this.#store.status().state === "open";
  }

  /**
   * Cancels what was pending and fails what was accepted or running, before any connection is accepted. Costs by the
   * active conversations. Contract section 8.
   */
  async recover(progress: (done: number, of: number) => void): Promise<readonly Recovered[]> {
    await this.#readRegistries();
    const ids = await this.#conversations.active();
    for (const id of ids) this.#unrecovered.add(id);
    const recovered: Recovered[] = [];
    let done = 0;
    await inParallel(ids, 32, async (id) => {
      try {
        recovered.push(await this.#recoverOne(id));
      } catch (error) {
        // One that cannot be read answers nothing, and should it be read later, it is recovered first; one that cannot be written would show as pending what is not.
        if (!(error instanceof Fault) || error.data.code === "storage_unavailable") throw error;
        this.#log.error({ conversationId: id, code: error.data.code }, error.message);
      }
      done += 1;
      progress(done, ids.length);
    });
    return recovered.filter(({ requestId, runIds }) => requestId !== undefined || runIds.length > 0);
  }

  async #readRegistries(): Promise<void> {
    for (const key of await this.principals.load()) this.#log.error({ key }, "a stored principal does not parse");
    if (!(await this.projects.load())) this.#log.error("the stored project registry does not parse");
  }

  async #recoverOne(id: string): Promise<Recovered> {
    return await this.#conversations.use(id, async (conversation) => {
      const { title, open, active, waiting } = conversation.current.context;
      await conversation.settle();
      return {
        conversationId: id,
        title,
        ...(open !== null && { requestId: open.question.requestId }),
        runIds: [active, ...waiting].flatMap((run) => (run === null ? [] : [run.runId])),
      };
    });
  }

  /** Takes nothing new, answers what it has, then fails what runs and ends its processes. No question is touched: the next start cancels what is pending. */
  async stop(): Promise<void> {
    this.#stopping = true;
    await this.#drain();
    const active = [...this.#active];
    await inParallel(active, 32, async (id) => {
      try {
        await this.#handle(id, () => ({ event: { type: "service.stopping", at: this.#now() }, fence: [] }));
      } catch (error) {
        this.#log.error({ conversationId: id, error: String(error) }, "a run could not be failed at the stop");
      }
    });
    await this.#runs.close();
  }

  /** Ends everything a connection follows. */
  disconnect(subscriber: Subscriber): void {
    for (const { end } of subscriber.conversations.values()) end();
    subscriber.conversations.clear();
    for (const end of subscriber.charts.values()) end();
    subscriber.charts.clear();
    if (subscriber.inbox !== null) this.pending.remove(subscriber.inbox);
    subscriber.inbox = null;
  }

  /**
   * Answers one validated request.
   *
   * @throws {Fault}
   */
  async request<M extends Guarded>(method: M, params: Params<M>, call: Call): Promise<Result<M>> {
    const caller = this.principals.caller(call.presented);
    const conversationId = "conversationId" in params ? (params.conversationId as string) : undefined;
    const permitted = mayCall(caller, method, conversationId);
    if (!permitted.ok) throw refusal(permitted.reason, caller);
    if (this.#stopping) throw new Fault("shutting_down", "the service is stopping; connect again when it is back");
    this.principals.seen(caller.stamp);
    const handler = this.#handlers[method] as (p: Params<M>, c: Call, w: Caller) => Promise<Result<M>>;
    this.#underWay += 1;
    try {
      return await handler(params, call, caller);
    } finally {
      this.#underWay -= 1;
      if (this.#underWay === 0) this.#drained();
    }
  }

  /** Waits for the requests that were let in, but not for ever. */
  async #drain(): Promise<void> {
    if (this.#underWay === 0) return;
    const late = new Promise<void>((resolve) => this.#environment.after(DRAIN_MS, resolve));
    const done = new Promise<void>((resolve) => {
      this.#drained = resolve;
    });
    await Promise.race([done, late]);
    if (this.#underWay > 0) this.#log.warn({ requests: this.#underWay }, "requests were still under way at the stop");
  }

  /** Turns a pairing code into a device. Needs no credential. Contract section 5. */
  async completePairing({ code, name }: Params<"device_pair_complete">): Promise<Result<"device_pair_complete">> {
    const { mode, deviceExpiresInSeconds } = this.pairing.take(code);
    const { record, token } = await this.principals.addDevice(name, mode, deviceExpiresInSeconds);
    this.#log.info({ deviceId: record.id, mode }, "a device was paired");
    return { deviceId: record.id, token, mode };
  }

  readonly #handlers: Handlers = {
    conversation_create: async ({ scope, title, runner = { kind: "attached" } }) => {
      const binding = await this.#bind(scope, runner.kind === "command");
      const at = this.#now();
      const context: ConversationContext = {
        conversationId: this.#environment.uuid(),
        title: title?.trim() ?? (binding === null ? scope.kind : nameOf(binding.path)),
        scope,
        binding: binding && { path: binding.path, device: binding.device, inode: binding.inode },
        runner,
        ...BEGINNING,
        version: 1,
        serviceId: this.#options.serviceId,
        incarnationId: this.#environment.uuid(),
      };
      const conversation = await this.#conversations.create(context, at);
      return { conversation: conversation.snapshot };
    },

    conversation_list: async ({ after, limit = BOUNDS.listPage }, _call, caller) => {
      const conversations: ConversationSnapshot[] = [];
      let last = after ?? "";
      let bytes = 0;
      for await (const place of this.#conversations.places(last)) {
        if (conversations.length >= limit) return { conversations, next: last };
        const id = idOfPlace(place);
        const snapshot = mayRead(caller, id) ? await this.#listed(id, ({ snapshot }) => snapshot) : null;
        if (snapshot !== null) {
          bytes += bytesOf(snapshot);
          if (conversations.length > 0 && bytes > PAGE_BYTES) return { conversations, next: last };
          conversations.push(snapshot);
        }
        last = place;
      }
      return { conversations };
    },

    conversation_show: async ({ conversationId }) => ({ conversation: await this.#snapshot(conversationId) }),

    conversation_send: async ({ conversationId, message, expectedRevision }, call, caller) => {
      const runId = this.#environment.uuid();
      const { reply, state } = await this.#handle(conversationId, async (current) => {
        const workspaceIsSame = await this.#workspaceIsSame(current);
        return {
          event: {
            type: "message.send",
            at: this.#now(),
            caller: this.#again("conversation_send", call),
            text: message,
            ...(expectedRevision !== undefined && { expectedRevision }),
            runId,
            workspaceIsSame,
          },
          fence: this.principals.fence([caller.stamp]),
        };
      });
      switch (reply.kind) {
        case "accepted":
          return { status: "accepted", runId: reply.runId, revision: state.context.revision };
        case "conflict":
          return { status: "revision_conflict", revision: state.context.revision };
        default:
          throw faultOf(reply);
      }
    },

    conversation_reset: async ({ conversationId, expectedRevision }) => {
      const { reply, state } = await this.#handle(conversationId, () => ({
        event: {
          type: "conversation.reset",
          at: this.#now(),
          expectedRevision,
          incarnationId: this.#environment.uuid(),
        },
        fence: [],
      }));
      if (reply.kind === "conflict") return { status: "revision_conflict", revision: state.context.revision };
      return { conversation: await this.#snapshot(conversationId) };
    },

    conversation_tail: ({ conversationId, after, limit = BOUNDS.eventPageDefault }) =>
      this.#conversations.use(conversationId, async (conversation) => {
        await conversation.state();
        const { events, retainedFrom, gap } = await this.#eventsAfter(conversation, readCursor(after), limit);
        const shown = fitting(events);
        return { events: shown, next: shown.at(-1)?.cursor ?? after ?? cursorOf(0), retainedFrom, gap };
      }),

    conversation_subscribe: ({ conversationId, events = false, after }, { subscriber, afterReply }) =>
      this.#conversations.use(conversationId, async (conversation) => {
        const from = readCursor(after);
        await conversation.state();
        subscriber.conversations.get(conversationId)?.end();
        const newest = (): Versioned<ConversationSnapshot> => ({
          version: conversation.current.context.version,
          value: conversation.snapshot,
        });
        const sent = newest();
        const follower = new ConversationFollower(
          subscriber.outlet,
          conversationId,
          {
            newest,
            eventsAfter: (cursor) => this.#eventsAfter(conversation, cursor, FOLLOW_PAGE),
            later: (task) => this.#environment.after(READ_AGAIN_MS, task),
          },
          sent,
          events ? (after === undefined ? sent.value.safeCursor : from) : null,
        );
        const release = this.#conversations.hold(conversationId);
        const followers = this.#followers.get(conversationId) ?? new Set();
        this.#followers.set(conversationId, followers.add(follower));
        subscriber.conversations.set(conversationId, {
          follower,
          end: () => {
            follower.close();
            release();
            followers.delete(follower);
            if (followers.size === 0 && this.#followers.get(conversationId) === followers) {
              this.#followers.delete(conversationId);
            }
          },
        });
        afterReply(() => follower.begin());
        return { snapshot: sent.value, version: sent.version };
      }),

    conversation_unsubscribe: ({ conversationId }, { subscriber }) => {
      subscriber.conversations.get(conversationId)?.end();
      subscriber.conversations.delete(conversationId);
      return {};
    },

    inbox_subscribe: (_params, { subscriber, afterReply }) => {
      if (subscriber.inbox !== null) this.pending.remove(subscriber.inbox);
      const { newest } = this.pending;
      const follower = this.pending.follow(subscriber.outlet);
      subscriber.inbox = follower;
      afterReply(() => follower.begin());
      return { inbox: newest.value, version: newest.version };
    },

    inbox_unsubscribe: (_params, { subscriber }) => {
      if (subscriber.inbox !== null) this.pending.remove(subscriber.inbox);
      subscriber.inbox = null;
      return {};
    },

    native_claim: async ({ conversationId, harness }) => {
      await this.#handle(conversationId, () => ({
        event: { type: "native.claim", at: this.#now(), harness: harness.trim() },
        fence: [],
      }));
      return { conversation: await this.#snapshot(conversationId) };
    },

    native_release: async ({ conversationId }) => {
      await this.#handle(conversationId, () => ({ event: { type: "native.release", at: this.#now() }, fence: [] }));
      return { conversation: await this.#snapshot(conversationId) };
    },

    request_user_input: ({ conversationId, schemaVersion: _, ...draft }, call) => {
      const requestId = this.#environment.uuid();
      const optionIds = Array.from({ length: BOUNDS.optionsMax }, () => this.#environment.uuid());
      return this.#question(conversationId, async (state) => {
        const workspaceIsSame = await this.#workspaceIsSame(state);
        // After the slow fact, so that nobody asks with a credential that was revoked in between.
        const caller = this.#again("request_user_input", call);
        const { facts, stamps } = this.#askFacts(state, caller, workspaceIsSame);
        return {
          event: { type: "question.ask", at: this.#now(), caller, draft, requestId, optionIds, facts },
          fence: this.principals.fence([caller.stamp, ...stamps]),
        };
      });
    },

    input_get: ({ conversationId, requestId }) =>
      this.#question(conversationId, async (state) => {
        const facts = this.#questionFacts(state, await this.#workspaceIsSame(state));
        return {
          event: { type: "question.read", at: this.#now(), ...(requestId !== undefined && { requestId }), facts },
          fence: [],
        };
      }),

    input_list: async ({ status, after = "", limit = BOUNDS.listPage }) => {
      // A place in this list: a conversation's place, and behind # the last question seen of that conversation.
      const [resumed = "", seen] = after.split("#");
      const questions: QuestionResult[] = [];
      let last = "";
      let bytes = 0;
      const take = async (place: string, from?: string): Promise<boolean> => {
        const all = await this.#questionsOf(idOfPlace(place), status);
        const more = all.slice(all.findIndex(({ question }) => question?.requestId === from) + 1);
        questions.push(...more);
        last = place;
        bytes += more.reduce((sum, each) => sum + bytesOf(each), 0);
        return questions.length > limit || bytes > PAGE_BYTES;
      };
      const page = (): Result<"input_list"> => {
        const shown = fitting(questions.slice(0, limit));
        return { questions: shown, next: `${last}#${shown.at(-1)?.question?.requestId ?? ""}` };
      };
      if (seen !== undefined && (await take(resumed, seen))) return page();
      for await (const place of this.#conversations.places(resumed)) {
        if (status === "pending" && !this.#active.has(idOfPlace(place))) continue;
        if (await take(place)) return page();
      }
      return { questions };
    },

    input_answer: (params, call) => {
      const { conversationId, requestId, answer } = params;
      const runId = this.#environment.uuid();
      return this.#answering(params, call, (response) => ({
        ...response,
        type: "question.answer",
        answer,
        runId,
      })).then((result) => {
        const { status, reason } = result;
        const fresh = result.question?.continuation?.runId === runId;
        this.metrics.answers.inc({
          outcome: status === "resolved" ? (fresh ? "stored" : "repeated") : (reason ?? status),
        });
        this.#log.info({ conversationId, requestId, status, reason, ...(fresh && { runId }) }, "answer");
        return result;
      });
    },

    input_cancel: (params, call) =>
      this.#answering(params, call, (response) => ({ ...response, type: "question.cancel" })),

    run_claim: async ({ runId }, call, caller) => {
      const conversationId = await this.#ownRun(runId, caller);
      const { reply, state } = await this.#handle(conversationId, async (current) => {
        const { facts, stamps } = this.#runFacts(current, await this.#workspaceIsSame(current));
        return {
          event: { type: "run.claim", at: this.#now(), caller: this.principals.caller(call.presented), runId, facts },
          fence: this.principals.fence(stamps),
        };
      });
      if (reply.kind !== "claimed") throw faultOf(reply);
      // Found durable after a fault of the store, and so failed: it is not handed over. Contract section 8.
      if (state.context.active?.runId !== runId) {
        throw faultOf({ kind: "fault", code: "forbidden", reason: "acceptance_interrupted" });
      }
      const { binding } = state.context;
      return {
        runId,
        message: messageOf(reply.run),
        context: binding === null ? null : await this.#facts(binding.path),
        workspace: binding?.path ?? null,
      };
    },

    run_event: async ({ runId, event }, call, caller) => {
      const conversationId = await this.#ownRun(runId, caller);
      const { reply, events } = await this.#handle(conversationId, () => ({
        event: {
          type: "run.report",
          at: this.#now(),
          caller: this.principals.caller(call.presented),
          runId,
          bodies: [event],
        },
        fence: [],
      }));
      const cursor = events.at(-1)?.cursor;
      if (reply.kind !== "reported" || cursor === undefined) throw faultOf(reply);
      return { cursor };
    },

    run_settle: async ({ runId, schemaVersion: _, ...end }, call, caller) => {
      const conversationId = await this.#ownRun(runId, caller);
      const { reply } = await this.#handle(conversationId, () => ({
        event: { type: "run.settle", at: this.#now(), caller: this.principals.caller(call.presented), ...end, runId },
        fence: [],
      }));
      if (reply.kind !== "done") throw faultOf(reply);
      return {};
    },

    run_cancel: async ({ runId }) => {
      const conversationId = await this.#conversations.ofRun(runId);
      const { reply } = await this.#handle(conversationId, () => ({
        event: { type: "run.cancel", at: this.#now(), runId },
        fence: [],
      }));
      if (reply.kind !== "done") throw faultOf(reply);
      return {};
    },

    device_pair_begin: ({ mode, expiresInSeconds }) => {
      const { code, expiresAt } = this.pairing.begin(mode, expiresInSeconds);
      return { code, expiresAt, url: `${this.#url}/#${code}` };
    },

    device_list: () => ({ devices: this.principals.devices() }),

    device_mode: async ({ deviceId, mode }) => {
      const record = await this.principals.setDeviceMode(deviceId, mode);
      this.#log.info({ deviceId, mode }, "a device's mode was set");
      return { device: deviceView(record) };
    },

    device_revoke: async ({ deviceId }) => {
      const record = await this.principals.revokeDevice(deviceId);
      this.#log.info({ deviceId }, "a device was revoked");
      this.credentialsChanged();
      await this.#revoked({ kind: "device", id: deviceId });
      return { device: deviceView(record) };
    },

    credential_issue: async (params, _call, caller) => {
      const conversationId = params.kind === "agent" ? params.conversationId : undefined;
      if (conversationId !== undefined) await this.#snapshot(conversationId);
      const { record, token } = await this.principals.issue({
        kind: params.kind,
        ...(conversationId !== undefined && { conversationId }),
        ...(params.kind === "agent" && { issuedBy: caller.stamp }),
        ...(params.expiresInSeconds !== undefined && { expiresInSeconds: params.expiresInSeconds }),
      });
      this.#log.info({ credentialId: record.id, kind: record.kind }, "a credential was issued");
      return {
        credentialId: record.id,
        kind: params.kind,
        token,
        ...(record.expiresAt !== undefined && { expiresAt: record.expiresAt }),
      };
    },

    credential_list: () => ({ credentials: this.principals.credentials() }),

    credential_rotate: async ({ credentialId, expiresInSeconds }) => {
      const { token } = await this.principals.rotate(credentialId, expiresInSeconds);
      this.#log.info({ credentialId }, "a credential was rotated");
      this.credentialsChanged();
      await this.#options.operatorTokenChanged(credentialId, token);
      return { credentialId, token };
    },

    credential_revoke: async ({ credentialId }) => {
      const record = await this.principals.revokeCredential(credentialId);
      this.#log.info({ credentialId }, "a credential was revoked");
      this.credentialsChanged();
      await this.#revoked({ kind: record.kind, id: credentialId });
      return {};
    },

    project_add: async ({ path, name }) => {
      const project = await this.projects.add(path, name);
      return { project, projectsRevision: this.projects.current().revision };
    },

    project_remove: async ({ projectId }) => {
      await this.projects.remove(projectId);
      return { projectsRevision: this.projects.current().revision };
    },

    project_list: () => ({ projects: this.projects.views(), projectsRevision: this.projects.current().revision }),

    project_membership: ({ path }) => this.#facts(path),

    chart_subscribe: ({ conversationId }, { subscriber, afterReply }) =>
      this.#conversations.use(conversationId, async (conversation) => {
        const facts = await this.#chartFacts(await conversation.state());
        if (!subscriber.charts.has(conversationId)) {
          const follower = new ChartFollower(subscriber.outlet);
          const release = this.#conversations.hold(conversationId);
          const end = this.#charts.follow(conversationId, follower);
          subscriber.charts.set(conversationId, () => {
            end();
            release();
          });
          afterReply(() => follower.begin());
        }
        const { value, context } = conversation.current;
        return { states: value, version: context.version, facts };
      }),

    chart_unsubscribe: ({ conversationId }, { subscriber }) => {
      subscriber.charts.get(conversationId)?.();
      subscriber.charts.delete(conversationId);
      return {};
    },

    service_status: async () => {
      const { report, state, commits } = this.#store.status();
      return {
        version: this.#options.version,
        startedAt: new Date(this.#startedAt).toISOString(),
        uptimeSeconds: Math.floor((this.#environment.now() - this.#startedAt) / 1_000),
        dataDirectory: this.#options.dataDirectory,
        counts: {
          conversations: await this.#conversations.count(),
          activeConversations: this.#active.size,
          pendingQuestions: this.pending.count,
          activeRuns: this.#inTurn.size,
          connections: this.connections(),
        },
        store: {
          kind: "leveldb",
          state: state === "open" ? "ready" : "faulted",
          commits,
          damage: report.damage.map(({ kind, detail }) => `${kind}: ${detail}`),
        },
      };
    },
  };

  #now(): string {
    return timestamp(this.#environment);
  }

  /** Looks the caller up once more, at the moment its facts are gathered. */
  #again(method: "conversation_send" | "request_user_input", call: Call): Caller {
    const now = this.principals.caller(call.presented);
    const permitted = mayCall(now, method);
    if (!permitted.ok) throw refusal(permitted.reason, now);
    return now;
  }

  #handle(
    conversationId: string,
    prepare: (state: ConversationState) => Promise<Prepared> | Prepared,
  ): Promise<Answered> {
    return this.#conversations.use(conversationId, async (conversation) => {
      const result = await conversation.handle(prepare);
      if (result.reply.kind === "fault") throw faultOf(result.reply);
      return result;
    });
  }

  async #question(
    conversationId: string,
    prepare: (state: ConversationState) => Promise<Prepared> | Prepared,
  ): Promise<QuestionResult> {
    const { reply, state } = await this.#handle(conversationId, prepare);
    if (reply.kind !== "question") throw faultOf(reply);
    return questionResult(state, reply);
  }

  /** `input_answer` and `input_cancel`: the caller is looked up with the facts, as the first of them. Contract 6.1. */
  #answering(
    { conversationId, incarnationId, requestId, expectedRevision }: Target,
    call: Call,
    event: (response: Response) => ConversationEvent,
  ): Promise<QuestionResult> {
    const by = (caller: Caller, facts: QuestionFacts): ConversationEvent =>
      event({ at: this.#now(), caller, incarnationId, requestId, expectedRevision, facts });
    const refused = this.principals.caller(call.presented);
    const verdict = answerAuthority(refused);
    if (!verdict.ok) {
      if (this.#charts.isWatched(conversationId)) void this.#showRefusal(conversationId, by(refused, NO_FACTS));
      return Promise.resolve({ status: "refused", conversationId, reason: verdict.reason });
    }
    return this.#question(conversationId, async (state) => {
      const workspaceIsSame = await this.#workspaceIsSame(state);
      // From here to the fence in one go, after the slow fact: the fence covers exactly what was looked up.
      const caller = this.principals.caller(call.presented);
      return {
        event: by(caller, this.#questionFacts(state, workspaceIsSame)),
        fence: this.principals.fence([caller.stamp, ...stampsOf(state)]),
      };
    });
  }

  /** Who may not answer is refused before anything is read; an operator at the chart sees it all the same. */
  #showRefusal(conversationId: string, event: ConversationEvent): Promise<void> {
    return this.#conversations
      .use(conversationId, ({ current }) =>
        this.#charts.decided({ conversationId, before: current, event, decision: decide(current, event) }),
      )
      .catch((error: unknown) => this.#log.error({ conversationId, error: String(error) }, "a refusal was not shown"));
  }

  async #chartFacts(state: ConversationState): Promise<ChartFacts> {
    const { workspaceIsSame, owner, asker } = this.#questionFacts(state, await this.#workspaceIsSame(state));
    const { open } = state.context;
    const named = (stamp: CredentialStamp | null | undefined, standing: Standing): ChartCredential | null =>
      stamp ? { kind: stamp.kind, id: stamp.id, standing } : null;
    return { at: this.#now(), workspaceIsSame, owner: named(open?.owner, owner), asker: named(open?.asker, asker) };
  }

  #questionFacts(state: ConversationState, workspaceIsSame: boolean): QuestionFacts {
    const { open } = state.context;
    return {
      workspaceIsSame,
      owner: open === null ? "good" : this.principals.standing(open.owner),
      asker: open?.asker ? this.principals.standing(open.asker) : "good",
    };
  }

  #askFacts(
    state: ConversationState,
    caller: Caller,
    workspaceIsSame: boolean,
  ): { readonly facts: AskFacts; readonly stamps: readonly CredentialStamp[] } {
    const facts = this.#questionFacts(state, workspaceIsSame);
    const { active } = state.context;
    const starter =
      caller.runId === undefined ? caller.issuedBy : active?.runId === caller.runId ? active.starter : undefined;
    const owner = starter ?? caller.stamp;
    return { facts: { ...facts, turn: this.principals.standing(owner) }, stamps: [owner, ...stampsOf(state)] };
  }

  #runFacts(
    state: ConversationState,
    workspaceIsSame: boolean,
  ): { readonly facts: RunFacts; readonly stamps: readonly CredentialStamp[] } {
    const { active } = state.context;
    return {
      facts: { workspaceIsSame, starter: active === null ? "good" : this.principals.standing(active.starter) },
      stamps: active === null ? [] : [active.starter],
    };
  }

  async #workspaceIsSame({ context: { binding, scope } }: ConversationState): Promise<boolean> {
    return binding === null || (await this.#workspaces.same({ ...binding, given: scope.workspaceId ?? binding.path }));
  }

  #facts(directory: string): Promise<WorkspaceFacts> {
    if (!this.projects.isReadable) {
      return Promise.resolve({ workspace: directory, project: "unknown", projectsRevision: 0 });
    }
    return this.#workspaces.membership(directory, this.projects);
  }

  async #bind(scope: ConversationContext["scope"], needed: boolean) {
    if (scope.workspaceId === undefined) {
      if (scope.kind === "workspace" || needed) throw invalid("scope.workspaceId", "an existing directory, absolute");
      return null;
    }
    const resolution = await this.#workspaces.resolve(scope.workspaceId);
    if (!resolution.ok) {
      throw invalid("scope.workspaceId", `an existing directory, absolute and readable (it is ${resolution.reason})`);
    }
    return resolution.identity;
  }

  #snapshot(conversationId: string): Promise<ConversationSnapshot> {
    return this.#conversations.use(conversationId, async (conversation) => {
      await conversation.state();
      return conversation.snapshot;
    });
  }

  /** A conversation's part of a list; one that cannot be read is left out and spoils nothing. */
  async #listed<T>(id: string, read: (conversation: Conversation) => T): Promise<T | null> {
    try {
      return await this.#conversations.use(id, async (conversation) => {
        await conversation.state();
        return read(conversation);
      });
    } catch (error) {
      if (error instanceof Fault && error.data.code === "question_state_unavailable") return null;
      throw error;
    }
  }

  async #questionsOf(id: string, status: Question["status"] | undefined): Promise<readonly QuestionResult[]> {
    return (await this.#listed(id, ({ current }) => listed(current, status))) ?? [];
  }

  /** The conversation of a run this caller may act for. */
  async #ownRun(runId: string, caller: Caller): Promise<string> {
    const conversationId = await this.#conversations.ofRun(runId).catch((error: unknown) => {
      // An agent learns nothing of runs that are not its own, not even that there are none.
      if (caller.stamp.kind === "agent" && error instanceof Fault && error.data.code === "unknown_conversation") {
        throw refusal("forbidden", caller);
      }
      throw error;
    });
    if (!mayRead(caller, conversationId)) throw refusal("forbidden", caller);
    return conversationId;
  }

  async #eventsAfter(conversation: Conversation, after: string, limit: number) {
    const prefix = eventPrefix(conversation.id);
    const damaged: string[] = [];
    const entries = await this.keeper.reading(() =>
      this.#store.range(prefix, { after: prefix + after, limit, onDamage: (key) => damaged.push(key) }),
    );
    if (damaged.length > 0) throw stateUnavailable(conversation.id);
    // The disk may be ahead of what was acknowledged: such an event is told with its commit, not before and not twice.
    const { safeCursor } = conversation.snapshot;
    const events = entries
      .map(({ value }): StoredEvent => {
        const event = checkEvent(parsed(value));
        if (!event.ok) throw stateUnavailable(conversation.id);
        return event.value;
      })
      .filter(({ cursor }) => cursor <= safeCursor);
    // And it may have left out what memory still takes for kept: what the page begins with says what is.
    const oldest = conversation.oldestEvent;
    const first = Number(events[0]?.cursor ?? cursorOf(oldest));
    const gap = first > Number(after) + 1;
    return { events, retainedFrom: cursorOf(gap ? Math.max(first, oldest) : oldest), gap };
  }

  /** A durable change: followers hear of it, and what it means for the counts. */
  #committed({ conversationId, before, after, events }: Committed): void {
    if (isActive(after)) this.#active.add(conversationId);
    else this.#active.delete(conversationId);
    if (after.context.active === null) this.#inTurn.delete(conversationId);
    else this.#inTurn.add(conversationId);
    this.#tellOperator(after, events);
    this.pending.committed(before, after);
    const followers = this.#followers.get(conversationId);
    if (followers === undefined || before === null) return;
    const frames = events.map((event) => ({ event, frame: eventFrame(event) }));
    const change: Change<ConversationSnapshot> = {
      from: { version: before.context.version, value: snapshotAt(before) },
      to: { version: after.context.version, value: snapshotAt(after) },
    };
    for (const follower of followers) {
      follower.tell(cursorOf(before.context.eventSequence), frames);
      follower.follow(change);
    }
  }

  /** Counts and logs what became of questions and runs: ids and reasons, never what was said. */
  #tellOperator({ context }: ConversationState, events: readonly StoredEvent[]): void {
    const { conversationId } = context;
    for (const event of events) {
      switch (event.type) {
        case "turn": {
          const { runId, phase, reasonCode } = event;
          this.metrics.runs.inc({ phase });
          this.#log.info({ conversationId, runId, phase, reasonCode }, "run");
          break;
        }
        case "input_requested":
          this.metrics.questions.inc({ outcome: "asked" });
          this.#log.info({ conversationId, requestId: event.requestId }, "question asked");
          break;
        case "input_resolved": {
          const { requestId } = event;
          const receipt = context.receipts.find((each) => each.requestId === requestId);
          const outcome = receipt?.reason ?? "submitted";
          this.metrics.questions.inc({ outcome });
          const runId = receipt?.continuation?.runId;
          const by = receipt?.resolvedBy;
          this.#log.info({ conversationId, requestId, outcome, by, runId }, "question resolved");
          break;
        }
        default:
      }
    }
  }

  /** Performs what a transition called for. After its commit; failures are the run's, never the request's. */
  #perform(conversationId: string, effect: Performed, state: ConversationState): void {
    switch (effect.type) {
      case "stop":
        this.#runs.stop(effect.runId);
        return;
      case "recheck":
        void this.#begin(conversationId, effect.runId).catch((error: unknown) => {
          this.#log.error({ conversationId, runId: effect.runId, error: String(error) }, "a run could not be begun");
          // It keeps its place and everything behind it waits: it is begun when the store can say so.
          this.#environment.after(BEGIN_AGAIN_MS, () => this.#perform(conversationId, effect, state));
        });
        return;
      case "start": {
        const { runner, binding } = state.context;
        if (runner.kind !== "command" || binding === null) return;
        this.#runs.start({ run: effect.run, conversationId, command: runner.command, directory: binding.path });
        return;
      }
      default:
        effect satisfies never;
    }
  }

  /** Looks at a run's facts again and lets the machine begin it; an attached agent claims its runs itself. */
  async #begin(conversationId: string, runId: string): Promise<void> {
    await this.#conversations.use(conversationId, async (conversation) => {
      if (conversation.current.context.runner.kind !== "command" || this.#stopping) return;
      await conversation.handle(async (state) => {
        const { facts, stamps } = this.#runFacts(state, await this.#workspaceIsSame(state));
        return {
          event: { type: "run.begin", at: this.#now(), runId, facts },
          fence: this.principals.fence(stamps),
        };
      });
    });
  }

  /** Revocations whose commits had no known outcome and were found durable are carried through. Contract section 8. */
  #foundRevoked(credentials: readonly CredentialStamp[]): void {
    this.credentialsChanged();
    for (const credential of credentials) {
      void this.#revoked(credential).catch((error: unknown) =>
        this.#log.error(
          { error: String(error) },
          "a revocation was not carried through; it is noticed at the next use",
        ),
      );
    }
  }

  /** Cancels, at once and everywhere, what depended on a credential that was revoked. Contract section 7. */
  async #revoked(credential: Pick<CredentialStamp, "kind" | "id">): Promise<void> {
    await inParallel([...this.#active], 32, async (id) => {
      await this.#handle(id, () => ({
        event: { type: "credential.revoked", at: this.#now(), credential },
        fence: [],
      })).catch((error: unknown) => {
        if (!(error instanceof Fault)) throw error;
        this.#log.error(
          { conversationId: id, code: error.data.code },
          "a revocation was not stored; it is noticed at the next use",
        );
      });
    });
  }
}

/** Where the caller is refused no fact is looked at. Contract 6.1. */
const NO_FACTS: QuestionFacts = { workspaceIsSame: true, owner: "good", asker: "good" };

export interface Recovered {
  readonly conversationId: string;
  readonly title: string;
  /** The question that was pending and is cancelled now. */
  readonly requestId?: string;
  /** Runs that were accepted or running and have failed now. */
  readonly runIds: readonly string[];
}

/** What the stored questions of one conversation say, without checking anything. Contract section 7, last paragraph. */
function listed(state: ConversationState, status: Question["status"] | undefined): readonly QuestionResult[] {
  const { open, receipts } = state.context;
  const questions = open === null ? receipts : [...receipts, open.question];
  return questions
    .filter((question) => status === undefined || question.status === status)
    .map((question) =>
      questionResult(state, {
        kind: "question",
        status: question.status === "pending" ? "ready" : "resolved",
        requestId: question.requestId,
      }),
    );
}

function readCursor(after: string | undefined): string {
  if (after === undefined) return cursorOf(0);
  if (!/^\d{16}$/.test(after)) throw invalid("after", "a cursor that this service gave out");
  return after;
}

function faultOf(reply: Answered["reply"]): Fault {
  if (reply.kind !== "fault") return new Fault("forbidden", "this is not possible here now");
  const { code, reason, requestId } = reply;
  const more = { ...(reason !== undefined && { reason }), ...(requestId !== undefined && { requestId }) };
  return new Fault(code, MESSAGES[code]?.(reason, requestId) ?? code, more);
}

const MESSAGES: { readonly [code: string]: (reason?: string, requestId?: string) => string } = {
  queue_full: () => `${BOUNDS.queuedRuns} runs wait in this conversation; try again when one has ended`,
  ineligible_conversation: (reason) => `this conversation cannot take this now (${reason})`,
  question_pending: (_, requestId) => `another question is pending (${requestId}); a question is never replaced`,
  unknown_conversation: () => "no conversation has this run",
  forbidden: (reason) => `this run is not yours to claim, report on or settle now${reason ? ` (${reason})` : ""}`,
};

const refusal = (code: "unauthenticated" | "forbidden", caller: Caller): Fault =>
  code === "unauthenticated"
    ? new Fault("unauthenticated", `this credential is no longer good (${caller.standing}); use a new token`)
    : new Fault("forbidden", `this is not permitted to this ${caller.stamp.kind}`);

/** The credentials a pending question depends on. */
const stampsOf = ({ context: { open } }: ConversationState): readonly CredentialStamp[] =>
  open === null ? [] : [open.owner, ...(open.asker === null ? [] : [open.asker])];

async function inParallel<T>(items: readonly T[], width: number, task: (item: T) => Promise<void>): Promise<void> {
  const waiting = [...items];
  await Promise.all(
    Array.from({ length: Math.min(width, items.length) }, async () => {
      for (let item = waiting.shift(); item !== undefined; item = waiting.shift()) await task(item);
    }),
  );
}
