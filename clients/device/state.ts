import type { ConversationEvent } from "../../protocol/events.js";
import type { DeviceMode } from "../../protocol/operations.js";
import type { Answer, Question } from "../../protocol/question.js";
import type { RefusalReason } from "../../protocol/refusals.js";
import type { ConversationSnapshot, Inbox } from "../../protocol/snapshot.js";

/** Everything the page shows, as one plain value. `update` makes the next one, `view` draws it. */
export interface State {
  readonly session: Unpaired | Paired;
  /** Milliseconds since the epoch; moves on every half minute, for "2 minutes ago". */
  readonly now: number;
  /** What a screen reader is told without the focus moving. */
  readonly announcement: string;
  readonly notifications: NotificationState;
  /** The page cannot be seen: a question that arrives now is worth a notification. */
  readonly hidden: boolean;
}

export type NotificationState = "unsupported" | "off" | "asking" | "on" | "denied";

export interface Unpaired {
  readonly kind: "unpaired";
  readonly code: string;
  readonly name: string;
  readonly pairing:
    | { readonly kind: "idle" }
    | { readonly kind: "sending" }
    | { readonly kind: "failed"; readonly why: string };
  /** Why the page is here again, where it was paired before. */
  readonly notice: string | undefined;
}

export type Connection =
  | { readonly kind: "connecting" }
  | { readonly kind: "connected" }
  | { readonly kind: "lost"; readonly since: number };

export interface Paired {
  readonly kind: "paired";
  readonly deviceId: string;
  readonly name: string;
  /** Where the token could not be kept, it is gone when the page is closed. */
  readonly kept: boolean;
  readonly connection: Connection;
  /** As the service said last; undefined until it has. */
  readonly mode: DeviceMode | undefined;
  readonly route: Route;
  /** Asked whether this device should forget its token. */
  readonly forgetting: boolean;
  /** What waits; nothing until it has been read once. */
  readonly inbox: Inbox | undefined;
  /** The inbox was read on this connection. */
  readonly inboxIsFresh: boolean;
  readonly conversations: ConversationList | undefined;
  /** The conversation that is open, live. */
  readonly open: OpenConversation | undefined;
  readonly cards: { readonly [requestId: string]: Card };
  /** What is being written, by request, so that it never shows up in another question. */
  readonly drafts: { readonly [requestId: string]: Draft };
}

export type Route =
  | { readonly kind: "inbox" }
  | { readonly kind: "question"; readonly conversationId: string; readonly requestId: string }
  | { readonly kind: "conversations" }
  | { readonly kind: "conversation"; readonly conversationId: string }
  | { readonly kind: "device" };

export interface ConversationList {
  readonly conversations: readonly ConversationSnapshot[];
  readonly next: string | undefined;
  readonly loading: boolean;
}

export interface OpenConversation {
  readonly conversationId: string;
  readonly snapshot: ConversationSnapshot | undefined;
  /** The snapshot was read on this connection. */
  readonly isFresh: boolean;
  /** The service has no such conversation, or will not show it. */
  readonly fault: string | undefined;
  readonly history: History;
}

export interface History {
  readonly events: readonly ConversationEvent[];
  /** Older events are no longer kept, or were not read. */
  readonly gap: boolean;
  readonly reading: Reading;
  /** How many of the newest events are drawn. */
  readonly shown: number;
}

/** How far the history has been read: pages come from the oldest to the newest. */
export type Reading =
  | { readonly kind: "reading"; readonly after: string | undefined }
  | { readonly kind: "done" }
  | { readonly kind: "failed"; readonly after: string | undefined; readonly why: string };

/** One question as a person acts on it. */
export interface Card {
  readonly conversationId: string;
  /** The question and the revision that were read; an answer is bound to exactly these. */
  readonly shown: { readonly question: Question; readonly revision: number } | undefined;
  /** It has been on screen long enough that no tap can have been on its way to something else. */
  readonly armed: boolean;
  readonly attempt: Attempt;
  readonly confirming: boolean;
}

export type Deed = { readonly kind: "answer"; readonly answer: Answer } | { readonly kind: "cancel" };

export type Attempt =
  | { readonly kind: "none" }
  /** On its way; nothing can be sent until the outcome is known. */
  | { readonly kind: "sending"; readonly deed: Deed }
  /** Sent, and the connection went before a reply: the receipt has to be read. */
  | { readonly kind: "uncertain"; readonly deed: Deed }
  /** The receipt was read after that: the question still waits, the answer never arrived. */
  | { readonly kind: "not_stored"; readonly deed: Deed }
  /** The conversation has moved on: the question must be read again. */
  | { readonly kind: "conflict" }
  | { readonly kind: "reading" }
  | { readonly kind: "refused"; readonly reason: RefusalReason | "unknown" }
  /** A fault after which nothing was stored; trying again is for the person to decide. */
  | { readonly kind: "failed"; readonly why: string };

export interface Draft {
  /** An option's id, `text` for an answer in one's own words, or nothing yet. */
  readonly choice: string | undefined;
  readonly text: string;
}

export const EMPTY_DRAFT: Draft = { choice: undefined, text: "" };

/** The live snapshot of a conversation, where it is open and was read on this connection. */
export function liveSnapshot(paired: Paired, conversationId: string): ConversationSnapshot | undefined {
  const { open } = paired;
  return open?.conversationId === conversationId && open.isFresh ? open.snapshot : undefined;
}

/** The question of a request as it is known now: what the card holds, or what waits in the inbox. */
export function knownQuestion(paired: Paired, requestId: string): Question | undefined {
  return paired.cards[requestId]?.shown?.question ?? paired.inbox?.[requestId]?.question;
}

/** The conversation moved on after the card was read, and its question still waits. */
export function isOutdated(paired: Paired, card: Card): boolean {
  const live = liveSnapshot(paired, card.conversationId);
  return card.shown?.question.status === "pending" && live !== undefined && live.revision > card.shown.revision;
}
