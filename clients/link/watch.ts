import type { ConversationEvent } from "../../protocol/events.js";
import type { Method, Result } from "../../protocol/operations.js";
import type { QuestionResult } from "../../protocol/question.js";
import { checkResult } from "../../protocol/results.js";
import type { ConversationSnapshot, Inbox } from "../../protocol/snapshot.js";
import type { Clock } from "./clock.js";
import type { Arguments, Notice, Outcome } from "./connection.js";
import type { CallError } from "./errors.js";
import { Mirror } from "./mirror.js";

/** What a watch needs of its link. */
export interface WatchPort {
  readonly clock: Clock;
  readonly random: () => number;
  request<M extends Method>(method: M, args: Arguments<M>, settle: (outcome: Outcome<Result<M>>) => void): void;
}

/** What the watcher of a conversation hears. */
export type ConversationUpdate =
  /** Read from the service on this connection, or brought up to date by a delta. */
  | { readonly kind: "snapshot"; readonly snapshot: ConversationSnapshot; readonly version: number }
  /** Nothing that was read may be shown as current, until the next `snapshot`. */
  | { readonly kind: "stale" }
  | { readonly kind: "event"; readonly event: ConversationEvent }
  /** Events up to `retainedFrom` have left the retained history and will not come. */
  | { readonly kind: "gap"; readonly retainedFrom: string }
  /** The question that a lifecycle event was about, read because the snapshot did not reflect that event yet. */
  | { readonly kind: "question"; readonly result: QuestionResult }
  /** The service does not show this conversation; nothing more comes on this connection. */
  | { readonly kind: "failed"; readonly error: CallError };

export type InboxUpdate =
  | { readonly kind: "inbox"; readonly inbox: Inbox; readonly version: number }
  | { readonly kind: "stale" }
  | { readonly kind: "failed"; readonly error: CallError };

export interface WatchOptions {
  /** Also the conversation's events, not only its snapshot. */
  readonly events?: boolean;
  /** The events after this cursor; without it, those from now on. */
  readonly after?: string;
}

/** A watch as its link sees it. */
export interface Watching {
  connected(): void;
  disconnected(): void;
  notice(notice: Notice): void;
  close(): void;
}

/** A lifecycle event waits so long, in milliseconds, for the delta that belongs to it. */
const DELTA_MS = 250;

/** A conversation's mirror and, where they are wanted, its events, resumed after the last one seen. */
export class ConversationWatching implements Watching {
  readonly #port: WatchPort;
  readonly #conversationId: string;
  readonly #events: boolean;
  readonly #listener: (update: ConversationUpdate) => void;
  readonly #mirror: Mirror<ConversationSnapshot>;
  readonly #stopFetches = new Set<() => void>();
  #after: string | undefined;
  #closed = false;

  constructor(
    port: WatchPort,
    conversationId: string,
    options: WatchOptions,
    listener: (update: ConversationUpdate) => void,
  ) {
    this.#port = port;
    this.#conversationId = conversationId;
    this.#events = options.events ?? false;
    this.#after = options.after;
    this.#listener = listener;
    this.#mirror = new Mirror({
      clock: port.clock,
      random: port.random,
      subscribe: (settle) =>
        port.request("conversation_subscribe", this.#subscription(), (outcome) =>
          settle(outcome.ok ? { state: outcome.value.snapshot, version: outcome.value.version } : outcome.error),
        ),
      check: checkSnapshot,
      changed: ({ state, version }) => this.#changed(state, version),
      stale: () => this.#tell({ kind: "stale" }),
      failed: (error) => this.#tell({ kind: "failed", error }),
    });
  }

  get snapshot(): ConversationSnapshot | undefined {
    return this.#mirror.copy?.state;
  }

  connected(): void {
    this.#mirror.connected();
  }

  disconnected(): void {
    this.#callOffFetches();
    this.#mirror.disconnected();
  }

  close(): void {
    this.#closed = true;
    this.#callOffFetches();
    this.#mirror.close();
    this.#port.request("conversation_unsubscribe", { conversationId: this.#conversationId }, () => {});
  }

  notice(notice: Notice): void {
    switch (notice.name) {
      case "conversation_delta":
        if (notice.params.conversationId === this.#conversationId) this.#mirror.delta(notice.params);
        return;
      case "conversation_event":
        if (notice.params.event.conversationId === this.#conversationId) this.#event(notice.params.event);
        return;
      case "conversation_gap":
        if (notice.params.conversationId === this.#conversationId) this.#gap(notice.params.retainedFrom);
        return;
      case "chart_transition":
      case "credential_ended":
      case "inbox_delta":
        return;
      default:
        notice satisfies never;
    }
  }

  #subscription(): Arguments<"conversation_subscribe"> {
    const conversationId = this.#conversationId;
    if (!this.#events) return { conversationId };
    return this.#after === undefined
      ? { conversationId, events: true }
      : { conversationId, events: true, after: this.#after };
  }

  #changed(snapshot: ConversationSnapshot, version: number): void {
    // the first snapshot says where "from now on" began; later ones may be ahead of the events
    this.#after ??= snapshot.safeCursor;
    this.#tell({ kind: "snapshot", snapshot, version });
  }

  #event(event: ConversationEvent): void {
    if (!this.#events || (this.#after !== undefined && event.cursor <= this.#after)) return;
    this.#after = event.cursor;
    this.#tell({ kind: "event", event });
    if (event.type === "input_requested" || event.type === "input_resolved")
      this.#fetchUnlessReflected(event.cursor, event.requestId);
  }

  #gap(retainedFrom: string): void {
    if (!this.#events) return;
    if (this.#after === undefined || retainedFrom > this.#after) this.#after = retainedFrom;
    this.#tell({ kind: "gap", retainedFrom });
  }

  /** A snapshot counts for a lifecycle event only when its `safeCursor` has reached it; otherwise the question is read. */
  #fetchUnlessReflected(cursor: string, requestId: string): void {
    const reflected = (): boolean => (this.snapshot?.safeCursor ?? "") >= cursor;
    if (reflected() || this.#closed) return;
    const stop = this.#port.clock.after(DELTA_MS, () => {
      this.#stopFetches.delete(stop);
      if (reflected()) return;
      this.#port.request("input_get", { conversationId: this.#conversationId, requestId }, (outcome) => {
        if (outcome.ok) this.#tell({ kind: "question", result: outcome.value });
      });
    });
    this.#stopFetches.add(stop);
  }

  #callOffFetches(): void {
    for (const stop of this.#stopFetches) stop();
    this.#stopFetches.clear();
  }

  #tell(update: ConversationUpdate): void {
    if (!this.#closed) this.#listener(update);
  }
}

/** The mirror of every pending question. */
export class InboxWatching implements Watching {
  readonly #port: WatchPort;
  readonly #mirror: Mirror<Inbox>;
  #closed = false;

  constructor(port: WatchPort, listener: (update: InboxUpdate) => void) {
    this.#port = port;
    const tell = (update: InboxUpdate): void => {
      if (!this.#closed) listener(update);
    };
    this.#mirror = new Mirror({
      clock: port.clock,
      random: port.random,
      subscribe: (settle) =>
        port.request("inbox_subscribe", {}, (outcome) =>
          settle(outcome.ok ? { state: outcome.value.inbox, version: outcome.value.version } : outcome.error),
        ),
      check: checkInbox,
      changed: ({ state, version }) => tell({ kind: "inbox", inbox: state, version }),
      stale: () => tell({ kind: "stale" }),
      failed: (error) => tell({ kind: "failed", error }),
    });
  }

  get inbox(): Inbox | undefined {
    return this.#mirror.copy?.state;
  }

  connected(): void {
    this.#mirror.connected();
  }

  disconnected(): void {
    this.#mirror.disconnected();
  }

  close(): void {
    this.#closed = true;
    this.#mirror.close();
    this.#port.request("inbox_unsubscribe", {}, () => {});
  }

  notice(notice: Notice): void {
    if (notice.name === "inbox_delta") this.#mirror.delta(notice.params);
  }
}

/** A patch deletes what became null: the members that may be null are put back before the snapshot is checked. */
function checkSnapshot(state: unknown) {
  const members = typeof state === "object" && state !== null ? state : {};
  const snapshot = { question: null, activeRun: null, ...members };
  const checked = checkResult("conversation_subscribe", { snapshot, version: 0 });
  return checked.ok ? ({ ok: true, value: checked.value.snapshot } as const) : checked;
}

function checkInbox(state: unknown) {
  const checked = checkResult("inbox_subscribe", { inbox: state, version: 0 });
  return checked.ok ? ({ ok: true, value: checked.value.inbox } as const) : checked;
}
