import type { tags } from "typia";
import type {
  Argument,
  Counter,
  Cursor,
  Id,
  MessageText,
  Name,
  Path,
  Reason,
  RunId,
  Seconds,
  Timestamp,
  Title,
  Uuid,
} from "./bounds.js";
import type { ChartFacts, ChartStates, ChartStep } from "./chart.js";
import type { ConversationEvent, RunEventBody } from "./events.js";
import type { Answer, QuestionDraft, QuestionResult, Target } from "./question.js";
import type { ConversationSnapshot, Inbox, Scope } from "./snapshot.js";

/** Every `params` carries it. Contract section 5. */
interface Versioned {
  readonly schemaVersion: 1;
}

interface InConversation extends Versioned {
  readonly conversationId: Id;
}

type Secret = string & tags.MinLength<1> & tags.MaxLength<512>;
type PageLimit = number & tags.Type<"uint32"> & tags.Minimum<1> & tags.Maximum<1000>;
type EventPageLimit = number & tags.Type<"uint32"> & tags.Minimum<1> & tags.Maximum<500>;
type ListCursor = string & tags.MinLength<1> & tags.MaxLength<4096>;

export type DeviceMode = "active" | "read-only";

/** Who is at the other end, as the service sees it now. Contract section 2. */
export type PrincipalView =
  | { readonly kind: "operator"; readonly id: Id }
  | { readonly kind: "captain"; readonly id: Id }
  | { readonly kind: "device"; readonly id: Id; readonly mode: DeviceMode }
  | { readonly kind: "agent"; readonly id: Id; readonly conversationId: Id; readonly runId?: RunId };

export type Runner =
  | { readonly kind: "command"; readonly command: readonly Argument[] & tags.MinItems<1> & tags.MaxItems<256> }
  | { readonly kind: "attached" };

/** Where a workspace stands, read-only. Contract section 10. */
export interface WorkspaceFacts {
  readonly workspace: Path;
  /** A project id, `unassigned` or `unknown`. */
  readonly project: Id;
  readonly projectsRevision: Counter;
}

export interface DeviceView {
  readonly deviceId: Id;
  readonly name: Name;
  readonly mode: DeviceMode;
  readonly createdAt: Timestamp;
  readonly lastSeenAt?: Timestamp;
  readonly expiresAt?: Timestamp;
  readonly revokedAt?: Timestamp;
}

export interface CredentialView {
  readonly credentialId: Id;
  readonly kind: "operator" | "captain" | "agent";
  readonly conversationId?: Id;
  readonly createdAt: Timestamp;
  readonly expiresAt?: Timestamp;
  readonly revokedAt?: Timestamp;
}

export interface ProjectView {
  readonly projectId: Id;
  readonly name: Name;
  readonly path: Path;
}

export interface Conflict {
  readonly status: "revision_conflict";
  readonly revision: Counter;
}

export interface ConversationResult {
  readonly conversation: ConversationSnapshot;
}

export interface ServiceStatus {
  readonly version: string;
  readonly startedAt: Timestamp;
  readonly uptimeSeconds: number;
  readonly dataDirectory: Path;
  readonly counts: {
    readonly conversations: Counter;
    readonly activeConversations: Counter;
    readonly pendingQuestions: Counter;
    readonly activeRuns: Counter;
    readonly connections: Counter;
  };
  readonly store: {
    readonly kind: string;
    readonly state: "ready" | "faulted";
    readonly commits: number;
    /** What was found damaged at start, in words for the operator. */
    readonly damage: readonly string[];
  };
}

/** Every method of the socket: its parameters and its result. Contract section 5. */
export interface Operations {
  authenticate: { params: Versioned & { readonly token: Secret }; result: { readonly principal: PrincipalView } };

  conversation_create: {
    params: Versioned & { readonly scope: Scope; readonly title?: Title; readonly runner?: Runner };
    result: ConversationResult;
  };
  conversation_list: {
    params: Versioned & { readonly after?: ListCursor; readonly limit?: PageLimit };
    result: { readonly conversations: readonly ConversationSnapshot[]; readonly next?: ListCursor };
  };
  conversation_show: { params: InConversation; result: ConversationResult };
  conversation_send: {
    params: InConversation & { readonly message: MessageText; readonly expectedRevision?: Counter };
    result: { readonly status: "accepted"; readonly runId: RunId; readonly revision: Counter } | Conflict;
  };
  conversation_reset: {
    params: InConversation & { readonly expectedRevision: Counter };
    result: ConversationResult | Conflict;
  };
  conversation_tail: {
    params: InConversation & { readonly after?: Cursor; readonly limit?: EventPageLimit };
    result: {
      readonly events: readonly ConversationEvent[];
      /** Pass it as `after` to read on. */
      readonly next: Cursor;
      /** The cursor of the oldest event that is still kept. */
      readonly retainedFrom: Cursor;
      /** Events after `after` have left the retained history. */
      readonly gap: boolean;
    };
  };
  conversation_subscribe: {
    params: InConversation & { readonly events?: boolean; readonly after?: Cursor };
    result: { readonly snapshot: ConversationSnapshot; readonly version: Counter };
  };
  conversation_unsubscribe: { params: InConversation; result: Empty };
  inbox_subscribe: { params: Versioned; result: { readonly inbox: Inbox; readonly version: Counter } };
  inbox_unsubscribe: { params: Versioned; result: Empty };
  native_claim: { params: InConversation & { readonly harness: Name }; result: ConversationResult };
  native_release: { params: InConversation; result: ConversationResult };

  request_user_input: { params: InConversation & QuestionDraft; result: QuestionResult };
  input_get: { params: InConversation & { readonly requestId?: Uuid }; result: QuestionResult };
  input_list: {
    params: Versioned & {
      readonly status?: "pending" | "submitted" | "cancelled";
      readonly after?: ListCursor;
      readonly limit?: PageLimit;
    };
    result: { readonly questions: readonly QuestionResult[]; readonly next?: ListCursor };
  };
  input_answer: { params: Versioned & Target & { readonly answer: Answer }; result: QuestionResult };
  input_cancel: { params: Versioned & Target; result: QuestionResult };

  run_claim: {
    params: Versioned & { readonly runId: RunId };
    result: {
      readonly runId: RunId;
      readonly message: string;
      readonly context: WorkspaceFacts | null;
      readonly workspace: Path | null;
    };
  };
  run_event: {
    params: Versioned & { readonly runId: RunId; readonly event: RunEventBody };
    result: { readonly cursor: Cursor };
  };
  run_settle: {
    params: Versioned & {
      readonly runId: RunId;
      readonly state: "completed" | "failed";
      readonly reasonCode?: Reason;
      readonly summary?: MessageText;
    };
    result: Empty;
  };
  run_cancel: { params: Versioned & { readonly runId: RunId }; result: Empty };

  device_pair_begin: {
    params: Versioned & { readonly mode: DeviceMode; readonly expiresInSeconds?: Seconds };
    result: { readonly code: string; readonly expiresAt: Timestamp; readonly url: string };
  };
  device_pair_complete: {
    params: Versioned & { readonly code: Secret; readonly name: Name };
    result: { readonly deviceId: Id; readonly token: Secret; readonly mode: DeviceMode };
  };
  device_list: { params: Versioned; result: { readonly devices: readonly DeviceView[] } };
  device_mode: {
    params: Versioned & { readonly deviceId: Id; readonly mode: DeviceMode };
    result: { readonly device: DeviceView };
  };
  device_revoke: { params: Versioned & { readonly deviceId: Id }; result: { readonly device: DeviceView } };

  credential_issue: {
    params: Versioned &
      (
        | { readonly kind: "captain"; readonly expiresInSeconds?: Seconds }
        | { readonly kind: "agent"; readonly conversationId: Id; readonly expiresInSeconds?: Seconds }
      );
    result: {
      readonly credentialId: Id;
      readonly kind: "captain" | "agent";
      readonly token: Secret;
      readonly expiresAt?: Timestamp;
    };
  };
  credential_list: { params: Versioned; result: { readonly credentials: readonly CredentialView[] } };
  credential_rotate: {
    params: Versioned & { readonly credentialId: Id; readonly expiresInSeconds?: Seconds };
    result: { readonly credentialId: Id; readonly token: Secret };
  };
  credential_revoke: { params: Versioned & { readonly credentialId: Id }; result: Empty };

  project_add: {
    params: Versioned & { readonly path: Path; readonly name?: Name };
    result: { readonly project: ProjectView; readonly projectsRevision: Counter };
  };
  project_remove: {
    params: Versioned & { readonly projectId: Id };
    result: { readonly projectsRevision: Counter };
  };
  project_list: {
    params: Versioned;
    result: { readonly projects: readonly ProjectView[]; readonly projectsRevision: Counter };
  };
  project_membership: { params: Versioned & { readonly path: Path }; result: WorkspaceFacts };

  /** Follows a conversation on the state chart; asked again, it looks the facts up again. Changes nothing. */
  chart_subscribe: {
    params: InConversation;
    result: { readonly states: ChartStates; readonly version: Counter; readonly facts: ChartFacts };
  };
  chart_unsubscribe: { params: InConversation; result: Empty };

  service_status: { params: Versioned; result: ServiceStatus };
}

/** `{}`: done, and nothing to say about it. */
export interface Empty {}

export type Method = keyof Operations;
export type Params<M extends Method> = Operations[M]["params"];
export type Result<M extends Method> = Operations[M]["result"];

/** What the service tells a subscriber unasked. Contract section 5. */
export interface Notifications {
  /** `patch` is an RFC 7396 merge patch from the snapshot at `fromVersion` to the one at `toVersion`. */
  conversation_delta: {
    readonly conversationId: Id;
    readonly fromVersion: Counter;
    readonly toVersion: Counter;
    readonly patch: { readonly [member: string]: unknown };
  };
  conversation_event: { readonly event: ConversationEvent };
  /** What one event did on the state chart, told after its commit; refusals too, which commit nothing. */
  chart_transition: {
    readonly conversationId: Id;
    /** After the event; where `changed` is false, as before it. */
    readonly version: Counter;
    readonly at: Timestamp;
    /** The type of the machine's event. */
    readonly event: string;
    readonly steps: readonly ChartStep[];
    readonly changed: boolean;
    readonly refused: boolean;
    /** Why it was refused. */
    readonly reason?: Reason;
    /** So many before this one were not told, since this client read too slowly. */
    readonly missed?: Counter;
  };
  /** The subscriber read so slowly that events left the retained history: those before `retainedFrom` are missing. */
  conversation_gap: { readonly conversationId: Id; readonly retainedFrom: Cursor };
  /** The credential of this connection is no longer good: every subscription has ended. */
  credential_ended: { readonly standing: "rotated" | "expired" | "revoked" };
  inbox_delta: {
    readonly fromVersion: Counter;
    readonly toVersion: Counter;
    readonly patch: { readonly [member: string]: unknown };
  };
}

export type NotificationName = keyof Notifications;
