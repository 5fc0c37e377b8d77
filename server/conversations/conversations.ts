import type { ConversationContext } from "../../machines/context.js";
import { openConversation } from "../../machines/decide.js";
import { Fault } from "../fault.js";
import { Conversation, type ConversationHost, stateUnavailable } from "./conversation.js";
import { ACTIVE, commitOf, conversationOfRun, headKey, LISTED, type Loading, loadConversation } from "./record.js";

/** The id in a place of the list. */
export const idOfPlace = (place: string): string => place.slice(place.indexOf("/") + 1);

/** All conversations of the store, loaded when they are used, one object each. */
export class Conversations {
  readonly #host: ConversationHost;
  readonly #loaded = new Map<string, Promise<Conversation>>();
  /** Those of them that are there, oldest first. */
  readonly #objects = new Map<string, Conversation>();
  readonly #users = new Map<string, number>();
  /** How many there are, once somebody has asked. */
  #count: number | null = null;
  #creating = 0;
  #created = 0;

  constructor(host: ConversationHost) {
    this.#host = host;
  }

  /**
   * Lends a conversation to `task`; it stays the only object of its id for as long.
   *
   * @throws {Fault} `unknown_conversation`, `question_state_unavailable`, `storage_unavailable`.
   */
  async use<T>(id: string, task: (conversation: Conversation) => Promise<T> | T): Promise<T> {
    const release = this.hold(id);
    try {
      return await task(await this.#get(id));
    } finally {
      release();
    }
  }

  /** Keeps a conversation in memory until the returned function is called. */
  hold(id: string): () => void {
    this.#users.set(id, (this.#users.get(id) ?? 0) + 1);
    let held = true;
    return () => {
      if (!held) return;
      held = false;
      const users = (this.#users.get(id) ?? 1) - 1;
      if (users > 0) this.#users.set(id, users);
      else this.#users.delete(id);
    };
  }

  /** Stores a new conversation. `listedAt` gives its place in the list. */
  async create(context: ConversationContext, listedAt: string): Promise<Conversation> {
    this.#creating += 1;
    try {
      const conversation = await this.#create(context, listedAt);
      if (this.#count !== null) this.#count += 1;
      return conversation;
    } finally {
      this.#creating -= 1;
      this.#created += 1;
    }
  }

  async #create(context: ConversationContext, listedAt: string): Promise<Conversation> {
    const { commit, reached } = commitOf({
      previous: null,
      next: openConversation(context),
      effects: [],
      fence: [],
      retainEvents: this.#host.retainEvents,
      listedAt,
    });
    const outcome = await this.#host.store.commit(commit);
    if (outcome.outcome !== "ok") {
      this.#count = null;
      void this.#host.storeIsBack();
      throw new Fault(
        "storage_unavailable",
        outcome.outcome === "unknown"
          ? "the store cannot say whether the conversation was stored; list the conversations before you create it again"
          : "the conversation was not stored",
      );
    }
    const conversation = new Conversation(this.#host, reached);
    this.#loaded.set(context.conversationId, Promise.resolve(conversation));
    this.#objects.set(context.conversationId, conversation);
    this.#makeRoom();
    return conversation;
  }

  /** Which conversation has this run: live, waiting or among its newest settled ones. */
  async ofRun(runId: string): Promise<string> {
    const id = await this.#host.reading(() => conversationOfRun(this.#host.store, runId));
    if (id !== null) return id;
    throw new Fault("unknown_conversation", "no conversation has this run", { reason: "unknown_run" });
  }

  /** Ids with something pending or running. */
  async active(): Promise<readonly string[]> {
    const ids: string[] = [];
    let after: string | undefined;
    for (;;) {
      const page = await this.#host.store.range(ACTIVE, { limit: 1_000, ...(after !== undefined && { after }) });
      ids.push(...page.map(({ key }) => key.slice(ACTIVE.length)));
      after = page.at(-1)?.key;
      if (page.length < 1_000) return ids;
    }
  }

  /** The places of all conversations in the order of their making, from behind a place on. */
  async *places(after: string): AsyncGenerator<string, void, undefined> {
    for (let from = after; ; ) {
      const page = await this.#host.reading(() => this.#host.store.range(LISTED, { limit: 200, after: LISTED + from }));
      for (const { key } of page) yield key.slice(LISTED.length);
      if (page.length < 200) return;
      from = page.at(-1)?.key.slice(LISTED.length) ?? from;
    }
  }

  /** How many there are. Not counted before somebody asks: a start costs by the active ones. Contract section 8. */
  async count(): Promise<number> {
    if (this.#count !== null) return this.#count;
    const before = this.#created;
    let count = 0;
    for await (const _ of this.places("")) count += 1;
    // Remembered only where nothing was made meanwhile, which may or may not be counted.
    if (this.#creating === 0 && this.#created === before) this.#count = count;
    return count;
  }

  #get(id: string): Promise<Conversation> {
    const known = this.#loaded.get(id);
    if (known !== undefined) return known;
    const loading = this.#host
      .reading(() => this.#load(id))
      .then((outcome) => {
        switch (outcome.kind) {
          case "loaded":
            return new Conversation(this.#host, outcome.loaded);
          case "unknown":
            throw new Fault("unknown_conversation", "no conversation has this id; list them to see which there are");
          case "unreadable":
            throw stateUnavailable(id);
          default:
            return outcome satisfies never;
        }
      });
    this.#loaded.set(id, loading);
    loading.then(
      (conversation) => {
        this.#objects.set(id, conversation);
        this.#makeRoom();
      },
      () => this.#loaded.delete(id),
    );
    return loading;
  }

  /** A conversation whose newest commits are lost is refused, like one that does not parse. Contract section 8. */
  #load(id: string): Promise<Loading> {
    const lost = this.#host.store.status().report.damage.some(({ key }) => key === headKey(id));
    return lost
      ? Promise.resolve({ kind: "unreadable", fault: "its newest commits are lost" })
      : loadConversation(this.#host.store, id);
  }

  /** What is used, and what is not settled, stays: there is one object of a conversation, ever. */
  #makeRoom(): void {
    for (const [id, conversation] of this.#objects) {
      if (this.#loaded.size <= this.#host.keptInMemory) return;
      if (this.#users.has(id) || !conversation.isSettled) continue;
      this.#loaded.delete(id);
      this.#objects.delete(id);
    }
  }
}
