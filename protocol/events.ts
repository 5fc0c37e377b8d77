import type { tags } from "typia";
import type { Counter, Cursor, Id, Label, MessageText, Prompt, Reason, RunId, Timestamp, Uuid } from "./bounds.js";

/** The envelope of every event. Contract section 4. */
interface Envelope {
  readonly schemaVersion: 1;
  readonly conversationId: Id;
  readonly cursor: Cursor;
  readonly revision: Counter;
  readonly occurredAt: Timestamp;
}

/** Exactly these fields and never one more: older strict clients read these tails. */
export interface InputRequestedBody {
  readonly type: "input_requested";
  readonly requestId: Uuid;
  readonly prompt: Prompt;
  readonly inputKind: "text" | "choice";
  readonly options: readonly Label[] & tags.MaxItems<8>;
}

/** Exactly these fields and never one more: older strict clients read these tails. */
export interface InputResolvedBody {
  readonly type: "input_resolved";
  readonly requestId: Uuid;
  readonly outcome: "submitted" | "cancelled";
}

export interface MessageBody {
  readonly type: "message";
  readonly role: "operator" | "agent" | "external";
  readonly text: MessageText;
  readonly streaming: boolean;
}

export interface TurnBody {
  readonly type: "turn";
  readonly runId: RunId;
  readonly phase: "accepted" | "completed" | "failed" | "cancelled";
  readonly reasonCode?: Reason;
  readonly summary?: MessageText;
}

export interface ActivityBody {
  readonly type: "activity";
  readonly phase: "waiting" | "thinking" | "responding";
}

export interface ToolBody {
  readonly type: "tool";
  readonly toolCallId: Id;
  readonly name: Id;
  readonly phase: "started" | "completed" | "failed";
  readonly summary?: MessageText;
}

export interface SessionBody {
  readonly type: "session";
  readonly phase: "started" | "waiting" | "completed" | "failed";
}

export type EventBody =
  | InputRequestedBody
  | InputResolvedBody
  | MessageBody
  | TurnBody
  | ActivityBody
  | ToolBody
  | SessionBody;

/** One event of a conversation's history. Contract section 4. */
export type ConversationEvent =
  | (Envelope & InputRequestedBody)
  | (Envelope & InputResolvedBody)
  | (Envelope & MessageBody)
  | (Envelope & TurnBody)
  | (Envelope & ActivityBody)
  | (Envelope & ToolBody)
  | (Envelope & SessionBody);

/** What an agent may report of its own run: it speaks for nobody else. */
export type RunEventBody =
  | {
      readonly type: "message";
      readonly role?: "agent";
      readonly text: MessageText;
      readonly streaming?: boolean;
    }
  | ActivityBody
  | ToolBody;
