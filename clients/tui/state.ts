import type { ConversationEvent } from "../../protocol/events.js";
import type { PrincipalView } from "../../protocol/operations.js";
import type { Answer, Question, QuestionResult, Target } from "../../protocol/question.js";
import type { ConversationSnapshot, Inbox } from "../../protocol/snapshot.js";
import { type Editor, EMPTY, type History, NO_HISTORY } from "./input.js";
import type { Tone } from "./layout.js";

/** Everything the terminal shows, as one plain value. */
export interface State {
  /** Milliseconds since the epoch at the last event. */
  readonly now: number;
  readonly columns: number;
  readonly rows: number;
  readonly bell: boolean;
  readonly connection: ConnectionState;
  readonly principal: PrincipalView | null;
  /** As last listed; null until the first list came. */
  readonly conversations: readonly ConversationSnapshot[] | null;
  readonly listedAt: number;
  /** A conversation keeps the number it was first shown with, so that `/open 2` means what was on screen. */
  readonly numbers: { readonly [conversationId: string]: number };
  /** Every question that waits, read on this connection; null while it is not known. */
  readonly inbox: Inbox | null;
  /** Questions that have been announced, so that the bell rings once for each. */
  readonly announced: readonly string[] | null;
  readonly open: OpenConversation | null;
  /** The conversation to open as soon as the list has come. */
  readonly wanted: string | null;
  readonly pane: Pane;
  /** Chosen with the arrows or opened last; null until then. */
  readonly selected: string | null;
  /** Lines the main pane is scrolled back from its end (a transcript) or forward from its beginning (other pages). */
  readonly scroll: number;
  readonly card: Card | null;
  readonly attempts: { readonly [requestId: string]: Attempt };
  /** What was typed for a question and not sent, by request id. */
  readonly drafts: { readonly [requestId: string]: string };
  /** What was sent and not stored, by request id. */
  readonly kept: { readonly [requestId: string]: string };
  readonly editor: Editor;
  readonly begun: Begun | null;
  readonly history: History;
  /** When text last came that a keyboard alone cannot make: the end of an input method's composition. */
  readonly composedAt: number;
  readonly notice: Notice | null;
  /** Counts what was asked of the link, so that a late reply is known as such. */
  readonly sequence: number;
  /** The read of a question that is awaited. */
  readonly reading: number | null;
}

export type Pane = "conversation" | "list" | "waiting" | "help";

export type ConnectionState =
  | { readonly kind: "connecting" }
  | { readonly kind: "connected" }
  | { readonly kind: "reconnecting"; readonly nextTryAt: number; readonly detail: string }
  | { readonly kind: "closed"; readonly say: string };

export interface OpenConversation {
  readonly conversationId: string;
  /** Null while none was read on this connection. */
  readonly snapshot: ConversationSnapshot | null;
  readonly events: readonly ConversationEvent[];
  /** Events are missing before the first one shown, or in between. */
  readonly gap: boolean;
  readonly loaded: boolean;
  readonly failed: string | null;
}

/** The displayed question: what `/question answer`, `text` and `cancel` act on, at this revision and no other. */
export interface Card {
  readonly target: Target;
  readonly question: Question;
  /** When it was first on screen; null until then. */
  readonly paintedAt: number | null;
  readonly hidden: boolean;
  /** Read before the connection was lost and not again since. */
  readonly stale: boolean;
  readonly scroll: number;
}

/** An answer or cancellation on its way: sent once, its outcome not known yet. */
export interface Attempt {
  readonly target: Target;
  /** Null for a cancellation. */
  readonly answer: Answer | null;
  /** The line as it was typed. */
  readonly wrote: string;
  readonly phase: "sending" | "uncertain";
}

/** When the line in the input was begun, and which card was on screen then. */
export interface Begun {
  readonly at: number;
  readonly cardKey: string | null;
  /** It was brought back with its question, not typed. */
  readonly restored: boolean;
}

export interface Notice {
  readonly tone: Tone;
  readonly text: string;
  /** The request whose receipt it tells: it changes as the receipt does. */
  readonly receiptOf?: string;
}

/** Names a displayed question and its revision. */
export const cardKey = ({ target }: Card): string => `${target.requestId}@${target.expectedRevision}`;

export type Sent =
  | { readonly kind: "accepted"; readonly runId: string }
  | { readonly kind: "refused" | "not_sent" | "uncertain"; readonly say: string };

export type Responded =
  | { readonly kind: "settled"; readonly result: QuestionResult }
  | { readonly kind: "fault" | "not_sent" | "uncertain"; readonly say: string };

export type ReadOutcome =
  | { readonly kind: "result"; readonly result: QuestionResult }
  | { readonly kind: "failed"; readonly say: string };

/** What happens to the terminal. `at` is in milliseconds since the epoch, as the shell read it. */
export type Event = { readonly at: number } & (
  | { readonly type: "key"; readonly name: string }
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "paste"; readonly text: string }
  | { readonly type: "resize"; readonly columns: number; readonly rows: number }
  | { readonly type: "tick" }
  /** A frame has been drawn, and this card was on it. */
  | { readonly type: "painted"; readonly cardKey: string | null }
  | { readonly type: "link"; readonly connection: ConnectionState }
  | { readonly type: "principal"; readonly principal: PrincipalView }
  | { readonly type: "conversations"; readonly conversations: readonly ConversationSnapshot[] }
  | { readonly type: "inbox"; readonly inbox: Inbox | null }
  | { readonly type: "snapshot"; readonly conversationId: string; readonly snapshot: ConversationSnapshot | null }
  | {
      readonly type: "history";
      readonly conversationId: string;
      readonly events: readonly ConversationEvent[];
      readonly gap: boolean;
    }
  | { readonly type: "event"; readonly conversationId: string; readonly event: ConversationEvent }
  /** A question as it was read because of a lifecycle event. */
  | { readonly type: "questionSeen"; readonly question: Question }
  | { readonly type: "gap"; readonly conversationId: string }
  | { readonly type: "openFailed"; readonly conversationId: string; readonly say: string }
  | { readonly type: "created"; readonly conversation: ConversationSnapshot }
  | { readonly type: "failed"; readonly say: string }
  | { readonly type: "sent"; readonly text: string; readonly outcome: Sent }
  | {
      readonly type: "questionRead";
      readonly conversationId: string;
      readonly sequence: number;
      readonly outcome: ReadOutcome;
    }
  | { readonly type: "responded"; readonly requestId: string; readonly outcome: Responded }
  | { readonly type: "receiptRead"; readonly requestId: string; readonly outcome: ReadOutcome }
);

/** What the shell is to do. */
export type Command =
  | { readonly type: "list" }
  | { readonly type: "open"; readonly conversationId: string }
  | { readonly type: "create"; readonly directory: string; readonly command: readonly string[] }
  | { readonly type: "send"; readonly conversationId: string; readonly text: string }
  | {
      readonly type: "readQuestion";
      readonly conversationId: string;
      readonly requestId?: string;
      readonly sequence: number;
    }
  | { readonly type: "answer"; readonly target: Target; readonly answer: Answer }
  | { readonly type: "cancelQuestion"; readonly target: Target }
  /** Who the token is now: asked when the service says that something is not permitted. */
  | { readonly type: "whoami" }
  | { readonly type: "bell" }
  | { readonly type: "redraw" }
  | { readonly type: "quit" };

export interface InitialOptions {
  readonly now: number;
  readonly columns: number;
  readonly rows: number;
  readonly bell: boolean;
  /** A number, an id or a title. */
  readonly conversation: string | null;
}

export function initial({ now, columns, rows, bell, conversation }: InitialOptions): State {
  return {
    now,
    columns,
    rows,
    bell,
    connection: { kind: "connecting" },
    principal: null,
    conversations: null,
    listedAt: 0,
    numbers: {},
    inbox: null,
    announced: null,
    open: null,
    wanted: conversation,
    pane: "list",
    selected: null,
    scroll: 0,
    card: null,
    attempts: {},
    drafts: {},
    kept: {},
    editor: EMPTY,
    begun: null,
    history: NO_HISTORY,
    composedAt: 0,
    notice: null,
    sequence: 0,
    reading: null,
  };
}

/** A conversation as a row of the list. */
export interface Row {
  readonly conversationId: string;
  readonly number: number;
  readonly title: string;
  readonly directory: string;
  readonly busy: boolean;
  readonly waiting: Question | null;
}

/** All conversations, those in which a question waits first, the longest waiting on top. */
export function rowsOf(state: State): readonly Row[] {
  const waiting = new Map(Object.values(state.inbox ?? {}).map((entry) => [entry.conversationId, entry]));
  const known = state.conversations ?? [];
  const rows = known.map(
    (conversation): Row => ({
      conversationId: conversation.conversationId,
      number: state.numbers[conversation.conversationId] ?? 0,
      title: conversation.title,
      directory: conversation.scope.workspaceId ?? conversation.scope.kind,
      busy: conversation.activeRun !== null,
      waiting: waiting.get(conversation.conversationId)?.question ?? null,
    }),
  );
  const listed = new Set(known.map(({ conversationId }) => conversationId));
  for (const { conversationId, title, question } of waiting.values()) {
    if (listed.has(conversationId)) continue;
    const number = state.numbers[conversationId] ?? 0;
    rows.push({ conversationId, number, title, directory: question.workspace, busy: false, waiting: question });
  }
  const since = ({ waiting: question }: Row): string => question?.createdAt ?? "9";
  return rows.sort((a, b) => (since(a) < since(b) ? -1 : since(a) > since(b) ? 1 : a.number - b.number));
}

/** The row that Enter opens: the one chosen, or the one on top as long as none was. */
export const selectedOf = (state: State): string | null => {
  const rows = rowsOf(state);
  return (rows.find(({ conversationId }) => conversationId === state.selected) ?? rows[0])?.conversationId ?? null;
};

/** Every question that waits, as it is counted and as it is listed: one source for both. */
export const waitingOf = (state: State): readonly Row[] => rowsOf(state).filter(({ waiting }) => waiting !== null);

/** The question that waits in the open conversation. */
export function waitingHere(state: State): Question | null {
  const { open } = state;
  if (open === null) return null;
  return (
    waitingOf(state).find(({ conversationId }) => conversationId === open.conversationId)?.waiting ??
    (state.inbox === null ? (open.snapshot?.question ?? null) : null)
  );
}

/** Whether a question waits here that is not the one on screen. */
export function isUnread(state: State): boolean {
  const waiting = waitingHere(state);
  if (waiting === null) return false;
  const { card } = state;
  return card === null || card.hidden || card.target.requestId !== waiting.requestId;
}

/** Whether the screen is so low that a question gets the lines that are a comfort elsewhere. */
export const isLow = ({ rows }: State): boolean => rows < 16;

/** The card that is on screen, if one is. */
export const shownCard = ({ card, pane }: State): Card | null =>
  card === null || card.hidden || pane !== "conversation" ? null : card;
