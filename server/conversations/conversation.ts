import { type ConversationState, type Decision, decide } from "../../machines/decide.js";
import type { Effect, Reply } from "../../machines/effects.js";
import type { ConversationEvent } from "../../machines/facts.js";
import { snapshotOf } from "../../machines/views.js";
import type { ConversationEvent as StoredEvent } from "../../protocol/events.js";
import type { ConversationSnapshot } from "../../protocol/snapshot.js";
import type { Decided } from "../charts.js";
import { type Environment, timestamp } from "../environment.js";
import { Fault } from "../fault.js";
import type { Compare, Store } from "../store/port.js";
import { commitOf, eventsOf, headKey, type Loaded, loadConversation, sameBytes } from "./record.js";

/** An event with the facts it was made from, and the records those facts were read from. */
export interface Prepared {
  readonly event: ConversationEvent;
  readonly fence: readonly Compare[];
}

/** A committed change, told to whoever listens; never before it is durable. */
export interface Committed {
  readonly conversationId: string;
  readonly before: ConversationState | null;
  readonly after: ConversationState;
  readonly event: ConversationEvent;
  readonly events: readonly StoredEvent[];
}

/** What the machine answered, with the state it answered from. */
export interface Answered {
  readonly reply: Reply;
  readonly state: ConversationState;
  /** The cursors of what this request wrote into the history. */
  readonly events: readonly StoredEvent[];
}

/** Effects that are more than telling. */
export type Performed = Extract<Effect, { readonly type: "recheck" | "start" | "stop" }>;

export interface ConversationHost {
  readonly store: Store;
  readonly environment: Environment;
  readonly retainEvents: number;
  readonly serviceId: string;
  /** How many idle conversations stay in memory. */
  readonly keptInMemory: number;
  /** Conversations that an earlier life left with something pending or running: each is recovered before anything else. */
  readonly unrecovered: Set<string>;
  /** Told after each commit. */
  committed(change: Committed): void;
  /** Told of every decision: after its commit, or at once where there is nothing to commit. */
  decided(decided: Decided): void;
  /** Performs an effect of a change that led to `state`. After the commit. */
  perform(conversationId: string, effect: Performed, state: ConversationState): void;
  /** Brings a faulted store back; false while it cannot be had. */
  storeIsBack(): Promise<boolean>;
  /** Reads the store; what fails is `storage_unavailable`. */
  reading<T>(read: () => Promise<T>): Promise<T>;
}

/** When what a fault of the store interrupted is tried again, in milliseconds. */
const SETTLE_AGAIN_MS = 1_000;

/** How often facts are gathered anew when a record they were read from changed before the commit. */
const FENCE_TRIES = 8;

/**
 * One conversation with one writer at a time: gather facts, decide, commit, then reply, tell and perform. The machine
 * decides; nothing here knows a rule.
 */
export class Conversation {
  readonly #host: ConversationHost;
  readonly id: string;
  #loaded: Loaded;
  #turn: Promise<unknown> = Promise.resolve();
  /** A commit whose outcome is unknown: nothing is said until the store has been read. Contract section 8. */
  #unknown: { readonly decision: Decision; readonly reached: Loaded; readonly event: ConversationEvent } | null = null;
  /** Runs that an interrupted commit accepted or began: to be failed before anything else happens. */
  #orphans: readonly string[] = [];
  #triesAgain = false;

  constructor(host: ConversationHost, loaded: Loaded) {
    this.#host = host;
    this.#loaded = loaded;
    this.id = loaded.state.context.conversationId;
  }

  /** The durable state. Waits where the outcome of a commit is not known. */
  async state(): Promise<ConversationState> {
    if (!this.isSettled) await this.settle();
    return this.#loaded.state;
  }

  /** Nothing that a fault of the store, or the end of an earlier life, has interrupted is left to be finished. */
  get isSettled(): boolean {
    return this.#unknown === null && this.#orphans.length === 0 && !this.#host.unrecovered.has(this.id);
  }

  /** Finishes what a fault of the store interrupted; tries again later where the store is not back. */
  settle(): Promise<void> {
    return this.#queued(() => this.#settleUnknown());
  }

  /** The durable state at this moment; for tellers that hear of every commit anyway. */
  get current(): ConversationState {
    return this.#loaded.state;
  }

  get oldestEvent(): number {
    return this.#loaded.oldestEvent;
  }

  /** What clients see of the durable state; the same object as long as nothing changed. */
  get snapshot(): ConversationSnapshot {
    return snapshotAt(this.#loaded.state);
  }

  /**
   * Runs one event through the machine. `prepare` gathers the facts for the state it is given and is called again when
   * they changed under it.
   *
   * @throws {Fault} `storage_unavailable` where nothing durable can be said.
   */
  handle(prepare: (state: ConversationState) => Promise<Prepared> | Prepared): Promise<Answered> {
    return this.#queued(() => this.#handle(prepare));
  }

  #queued<T>(task: () => Promise<T>): Promise<T> {
    const result = this.#turn.then(task);
    this.#turn = result.catch(() => undefined);
    return result;
  }

  async #handle(prepare: (state: ConversationState) => Promise<Prepared> | Prepared): Promise<Answered> {
    await this.#settleUnknown();
    for (let tries = 0; tries < FENCE_TRIES; tries += 1) {
      const prepared = await prepare(this.#loaded.state);
      const decision = decide(this.#loaded.state, prepared.event);
      if (!decision.changed) {
        this.#host.decided({
          conversationId: this.id,
          before: this.#loaded.state,
          event: prepared.event,
          decision,
        });
        return answered(decision, this.#loaded.state);
      }
      const committed = await this.#commit(decision, prepared);
      if (committed === "again") continue;
      const result = answered(decision, this.#loaded.state);
      // The question that was in the way is gone; the same request meets the state without it.
      if (decision.effects.some(({ type }) => type === "again")) continue;
      return committed === "done" ? result : { ...result, state: this.#loaded.state };
    }
    throw new Fault("storage_unavailable", "what this request depends on kept changing; try again");
  }

  async #commit(decision: Decision, { event, fence }: Prepared): Promise<"done" | "again" | "interrupted"> {
    const { commit, reached } = this.#batch(decision, fence);
    const outcome = await this.#host.store.commit(commit);
    switch (outcome.outcome) {
      case "ok":
        this.#advance(decision, reached, event);
        return "done";
      case "conflict":
        if (outcome.key === commit.head) await this.#reload();
        return "again";
      case "failed":
        void this.#host.storeIsBack();
        throw unavailable("the change was not stored and nothing was changed");
      case "unknown": {
        this.#unknown = { decision, reached, event };
        await this.#settleUnknown();
        if (this.#loaded.state.context.version < reached.state.context.version) {
          throw unavailable("the change was not stored and nothing was changed");
        }
        return "interrupted";
      }
      default:
        return outcome satisfies never;
    }
  }

  /** The commit is durable: only now is anything said or done. */
  #advance(decision: Decision, reached: Loaded, event: ConversationEvent, withEffects = true): void {
    const before = this.#loaded.state;
    this.#loaded = reached;
    this.#host.committed({
      conversationId: this.id,
      before,
      after: reached.state,
      event,
      events: eventsOf(decision.effects),
    });
    for (const effect of withEffects ? decision.effects : []) {
      if (effect.type === "recheck" || effect.type === "start" || effect.type === "stop") {
        this.#host.perform(this.id, effect, reached.state);
      }
    }
    this.#host.decided({ conversationId: this.id, before, event, decision });
  }

  /**
   * Reads back what a commit of unknown outcome left. Found durable: what it accepted or began is failed and never
   * started. Not there: everything is as it was. Contract section 8.
   */
  async #settleUnknown(): Promise<void> {
    try {
      await this.#readBack();
      await this.#failOrphans();
      await this.#recover();
    } catch (error) {
      this.#settleLater();
      throw error;
    }
  }

  #settleLater(): void {
    if (this.#triesAgain) return;
    this.#triesAgain = true;
    this.#host.environment.after(SETTLE_AGAIN_MS, () => {
      this.#triesAgain = false;
      void this.settle().catch(() => undefined);
    });
  }

  async #readBack(): Promise<void> {
    const unknown = this.#unknown;
    if (unknown === null) return;
    if (!(await this.#host.storeIsBack())) {
      throw unavailable("the store cannot say whether the last change of this conversation was stored");
    }
    const head = await this.#host.reading(() => this.#host.store.get(headKey(this.id)));
    const isReached = head !== null && sameBytes(head, unknown.reached.head);
    // Neither what was to be stored nor what was there before: it is not to be trusted, and never taken for either.
    if (!isReached && (head === null || !sameBytes(head, this.#loaded.head))) throw stateUnavailable(this.id);
    this.#unknown = null;
    if (!isReached) return;
    const started = new Set(unknown.decision.effects.flatMap(begunBy));
    const known = new Set(runsOf(this.#loaded.state));
    const interrupted = runsOf(unknown.decision.next).filter((runId) => started.has(runId) || !known.has(runId));
    this.#orphans = [...this.#orphans, ...interrupted];
    this.#advance(unknown.decision, unknown.reached, unknown.event, false);
    for (const effect of unknown.decision.effects) {
      const isOrphan = effect.type === "recheck" && this.#orphans.includes(effect.runId);
      if (effect.type === "stop" || (effect.type === "recheck" && !isOrphan)) {
        this.#host.perform(this.id, effect, this.#loaded.state);
      }
    }
  }

  async #failOrphans(): Promise<void> {
    if (this.#orphans.length === 0) return;
    await this.#commitOwn({
      type: "commit.interrupted",
      at: timestamp(this.#host.environment),
      runIds: this.#orphans,
    });
    this.#orphans = [];
  }

  /** Cancels and fails what an earlier life of the service left. Until that is durable nothing else happens. Section 8. */
  async #recover(): Promise<void> {
    const { unrecovered, serviceId, environment } = this.#host;
    if (!unrecovered.has(this.id)) return;
    await this.#commitOwn({ type: "service.restarted", at: timestamp(environment), serviceId });
    unrecovered.delete(this.id);
  }

  /** A change that nobody asked for, and that has to be made before anything else. */
  async #commitOwn(event: ConversationEvent): Promise<void> {
    const decision = decide(this.#loaded.state, event);
    if (!decision.changed) return;
    const { commit, reached } = this.#batch(decision, []);
    const outcome = await this.#host.store.commit(commit);
    switch (outcome.outcome) {
      case "ok":
        this.#advance(decision, reached, event);
        return;
      case "unknown":
        this.#unknown = { decision, reached, event };
        throw unavailable("the store cannot say whether the last change of this conversation was stored");
      case "conflict":
      case "failed":
        void this.#host.storeIsBack();
        throw unavailable("what was interrupted in this conversation is not settled yet");
      default:
        outcome satisfies never;
    }
  }

  #batch(decision: Decision, fence: readonly Compare[]): ReturnType<typeof commitOf> {
    return commitOf({
      previous: this.#loaded,
      next: decision.next,
      effects: decision.effects,
      fence,
      retainEvents: this.#host.retainEvents,
    });
  }

  async #reload(): Promise<void> {
    const loading = await this.#host.reading(() => loadConversation(this.#host.store, this.id));
    if (loading.kind !== "loaded") throw stateUnavailable(this.id);
    this.#loaded = loading.loaded;
  }
}

/** The run an effect begins: a command, or a run that an attached agent has claimed. */
function begunBy(effect: Effect): readonly string[] {
  if (effect.type === "start") return [effect.run.runId];
  return effect.type === "reply" && effect.reply.kind === "claimed" ? [effect.reply.run.runId] : [];
}

const snapshots = new WeakMap<ConversationState, ConversationSnapshot>();

/** What clients see of a state; the same object for the same state. */
export function snapshotAt(state: ConversationState): ConversationSnapshot {
  const known = snapshots.get(state);
  if (known !== undefined) return known;
  const snapshot = snapshotOf(state);
  snapshots.set(state, snapshot);
  return snapshot;
}

const runsOf = ({ context }: ConversationState): readonly string[] =>
  [context.active, ...context.waiting].flatMap((run) => (run === null ? [] : [run.runId]));

function answered(decision: Decision, state: ConversationState): Answered {
  const reply = decision.effects.find((effect) => effect.type === "reply")?.reply ?? { kind: "done" };
  return { reply, state, events: eventsOf(decision.effects) };
}

const unavailable = (what: string): Fault =>
  new Fault("storage_unavailable", `${what}; read the question again before you repeat anything`);

export const stateUnavailable = (id: string): Fault =>
  new Fault(
    "question_state_unavailable",
    `the stored state of conversation ${id} cannot be read; stop the service and run: clankie doctor`,
  );
