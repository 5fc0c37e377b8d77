import type { ConversationEvent } from "../protocol/events.js";
import { mergePatch } from "../protocol/merge-patch.js";
import type { NotificationName, Notifications } from "../protocol/operations.js";
import type { ConversationSnapshot, InboxEntry } from "../protocol/snapshot.js";

/** Where notifications go: one client's socket. */
export interface Outlet {
  /** The client reads so slowly that what was sent before is still waiting. */
  readonly congested: boolean;
  send(frame: string): void;
  /** Calls once when what was waiting is gone. */
  whenClear(task: () => void): void;
}

/** A snapshot at a version: the same object for as long as nothing changed. */
export interface Versioned<T> {
  readonly version: number;
  readonly value: T;
}

const frame = <N extends NotificationName>(method: N, params: Notifications[N]): string =>
  JSON.stringify({ jsonrpc: "2.0", method, params });

/** The frame of a change, made once for all who saw the version before. */
export interface Change<T> {
  readonly from: Versioned<T>;
  readonly to: Versioned<T>;
  frame?: string;
}

/**
 * One client's view that follows a value by merge patches. While the client does not read, nothing is queued: what it
 * saw last is kept, and one patch brings it to the newest state. Contract section 5.
 */
abstract class Follower<T> {
  protected readonly outlet: Outlet;
  #sent: Versioned<T>;
  #waiting = false;
  #stage: "waiting for the reply" | "open" | "closed" = "waiting for the reply";

  constructor(outlet: Outlet, sent: Versioned<T>) {
    this.outlet = outlet;
    this.#sent = sent;
  }

  /** The reply with the snapshot has been sent: from here on its changes follow it, those since then first. */
  begin(): void {
    if (this.#stage !== "waiting for the reply") return;
    this.#stage = "open";
    this.resume();
  }

  close(): void {
    this.#stage = "closed";
  }

  protected get isOpen(): boolean {
    return this.#stage === "open";
  }

  follow(change: Change<T>): void {
    if (!this.isOpen) return;
    if (this.outlet.congested) {
      this.waitForClear();
      return;
    }
    if (this.#sent.version === change.from.version) {
      change.frame ??= this.delta(change.from, change.to);
      this.outlet.send(change.frame);
      this.#sent = change.to;
    } else this.catchUp(change.to);
  }

  /** Is there something the client has not seen and is not about to? */
  protected waitForClear(): void {
    if (this.#waiting) return;
    this.#waiting = true;
    this.outlet.whenClear(() => {
      this.#waiting = false;
      if (this.isOpen) this.resume();
    });
  }

  protected catchUp(newest: Versioned<T>): void {
    if (newest.version <= this.#sent.version) return;
    this.outlet.send(this.delta(this.#sent, newest));
    this.#sent = newest;
  }

  protected abstract resume(): void;
  protected abstract delta(from: Versioned<T>, to: Versioned<T>): string;
}

/** What a conversation's follower reads when its client has caught up. */
export interface ConversationSource {
  newest(): Versioned<ConversationSnapshot>;
  /** Kept events after a cursor, oldest first, at most a page. */
  eventsAfter(
    cursor: string,
  ): Promise<{ readonly events: readonly ConversationEvent[]; readonly retainedFrom: string; readonly gap: boolean }>;
  /** Calls after a while: what could not be read is read again. */
  later(task: () => void): void;
}

/** A subscription to one conversation: deltas, and events where they were asked for. */
export class ConversationFollower extends Follower<ConversationSnapshot> {
  readonly #conversationId: string;
  readonly #source: ConversationSource;
  /** The last event sent; null where the client wants none. */
  #cursor: string | null;
  #reading = false;

  constructor(
    outlet: Outlet,
    conversationId: string,
    source: ConversationSource,
    sent: Versioned<ConversationSnapshot>,
    cursor: string | null,
  ) {
    super(outlet, sent);
    this.#conversationId = conversationId;
    this.#source = source;
    this.#cursor = cursor;
  }

  /** New events, in order, the first of which follows `previous`. They wait for what is still being read. */
  tell(previous: string, events: readonly { readonly event: ConversationEvent; readonly frame: string }[]): void {
    if (!this.isOpen || this.#cursor === null || this.#reading || events.length === 0) return;
    if (this.outlet.congested) {
      this.waitForClear();
      return;
    }
    if (this.#cursor < previous) {
      void this.#readOn();
      return;
    }
    for (const { event, frame: text } of events) {
      if (this.outlet.congested) {
        this.waitForClear();
        return;
      }
      this.outlet.send(text);
      this.#cursor = event.cursor;
    }
  }

  protected resume(): void {
    this.catchUp(this.#source.newest());
    if (this.#cursor !== null && this.#cursor < this.#source.newest().value.safeCursor) void this.#readOn();
  }

  protected delta(from: Versioned<ConversationSnapshot>, to: Versioned<ConversationSnapshot>): string {
    return frame("conversation_delta", {
      conversationId: this.#conversationId,
      fromVersion: from.version,
      toVersion: to.version,
      patch: mergePatch({ ...from.value }, { ...to.value }),
    });
  }

  /** Reads kept events from the store until the client has them all; one reader at a time. */
  async #readOn(): Promise<void> {
    if (this.#reading) return;
    this.#reading = true;
    try {
      while (this.isOpen && this.#cursor !== null) {
        if (this.outlet.congested) {
          this.waitForClear();
          return;
        }
        const page = await this.#source.eventsAfter(this.#cursor);
        if (!this.isOpen) return;
        if (page.gap) {
          this.outlet.send(
            frame("conversation_gap", { conversationId: this.#conversationId, retainedFrom: page.retainedFrom }),
          );
        }
        for (const event of page.events) {
          this.outlet.send(eventFrame(event));
          this.#cursor = event.cursor;
        }
        if (page.events.length === 0 || this.#cursor >= this.#source.newest().value.safeCursor) return;
      }
    } catch {
      this.#source.later(() => {
        if (this.isOpen) this.resume();
      });
    } finally {
      this.#reading = false;
    }
  }
}

export const eventFrame = (event: ConversationEvent): string => frame("conversation_event", { event });

/** What one commit did to the pending questions: an entry that came, or null for one that went. */
export interface InboxChange {
  readonly version: number;
  readonly entries: readonly (readonly [requestId: string, entry: InboxEntry | null])[];
  /** Its frame for who saw the version before, made once for all of them. */
  frame?: string;
}

/**
 * A subscription to every pending question. While the client does not read, what came and went is kept as one patch: what
 * came and went meanwhile leaves nothing, so it is no larger than what the client saw and what is pending now.
 */
export class InboxFollower {
  readonly #outlet: Outlet;
  readonly #kept = new Map<string, InboxEntry | null>();
  #sent: number;
  #newest: number;
  #begun = false;
  #open = true;
  #waiting = false;

  constructor(outlet: Outlet, version: number) {
    this.#outlet = outlet;
    this.#sent = version;
    this.#newest = version;
  }

  /** From now on what comes is sent: the reply with the inbox goes first. */
  begin(): void {
    this.#begun = true;
    this.#flush();
  }

  close(): void {
    this.#open = false;
    this.#kept.clear();
  }

  follow(change: InboxChange): void {
    if (!this.#open) return;
    if (this.#begun && !this.#outlet.congested && this.#sent === change.version - 1) {
      change.frame ??= deltaOf(this.#sent, change.version, change.entries);
      this.#outlet.send(change.frame);
      this.#sent = change.version;
      this.#newest = change.version;
      return;
    }
    for (const [requestId, entry] of change.entries) {
      if (entry === null && this.#kept.get(requestId)) this.#kept.delete(requestId);
      else this.#kept.set(requestId, entry);
    }
    this.#newest = change.version;
    this.#flush();
  }

  #flush(): void {
    if (!this.#open || !this.#begun || this.#newest === this.#sent) return;
    if (this.#outlet.congested) {
      if (this.#waiting) return;
      this.#waiting = true;
      this.#outlet.whenClear(() => {
        this.#waiting = false;
        this.#flush();
      });
      return;
    }
    this.#outlet.send(deltaOf(this.#sent, this.#newest, [...this.#kept]));
    this.#kept.clear();
    this.#sent = this.#newest;
  }
}

const deltaOf = (fromVersion: number, toVersion: number, entries: InboxChange["entries"]): string =>
  frame("inbox_delta", { fromVersion, toVersion, patch: Object.fromEntries(entries) });
