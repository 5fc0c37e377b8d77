import type { Counter, Cursor, Id, Name, Path, RunId, Title, Uuid } from "./bounds.js";
import type { Question } from "./question.js";
import type { IneligibleReason } from "./refusals.js";

export type ScopeKind = "workspace" | "global" | "room" | "side" | "seat";

export interface Scope {
  readonly kind: ScopeKind;
  /** The directory as it was given, absolute. */
  readonly workspaceId?: Path;
}

export interface Driver {
  readonly kind: "service" | "native";
  readonly harness?: Name;
}

/** Everything a client shows of a conversation at one version. Contract section 4. */
export interface ConversationSnapshot {
  readonly schemaVersion: 1;
  readonly conversationId: Id;
  readonly title: Title;
  readonly scope: Scope;
  readonly driver: Driver;
  readonly incarnationId: Uuid;
  readonly revision: Counter;
  readonly safeCursor: Cursor;
  readonly eligible: boolean;
  readonly ineligibleReason?: IneligibleReason;
  /** The pending one. */
  readonly question: Question | null;
  /** The kept terminal ones, by request id. */
  readonly receipts: { readonly [requestId: string]: Question };
  readonly activeRun: { readonly runId: RunId; readonly state: "accepted" | "running" } | null;
  readonly queuedRuns: Counter;
}

/** One waiting question in the inbox. Contract section 5, `inbox_subscribe`. */
export interface InboxEntry {
  readonly conversationId: Id;
  readonly title: Title;
  readonly question: Question;
}

export interface Inbox {
  readonly [requestId: string]: InboxEntry;
}
