import type { tags } from "typia";
import type {
  AnswerText,
  Counter,
  Cursor,
  Description,
  DistinctLabels,
  Id,
  Label,
  Path,
  Prompt,
  Reason,
  RunId,
  Seconds,
  Timestamp,
  Uuid,
} from "./bounds.js";
import type { CancelReason, RefusalReason } from "./refusals.js";

/** An option as the asker writes it. Contract section 3. */
export interface OptionDraft {
  readonly label: Label;
  readonly description?: Description;
}

/** An option of a question; its id is opaque and immutable. Contract section 4. */
export interface Option {
  readonly optionId: Uuid;
  readonly label: Label;
  readonly description?: Description;
}

/** What an agent asks: one choice among options, or one text. Contract sections 3 and 5. */
export type QuestionDraft = ChoiceDraft | TextDraft;

export interface ChoiceDraft {
  readonly kind: "choice";
  readonly prompt: Prompt;
  readonly options: readonly OptionDraft[] & tags.MinItems<2> & tags.MaxItems<8> & DistinctLabels;
  readonly allowFreeform?: boolean;
  readonly expiresInSeconds?: Seconds;
}

export interface TextDraft {
  readonly kind: "text";
  readonly prompt: Prompt;
  /** A text question has no options; an empty list says the same. */
  readonly options?: readonly OptionDraft[] & tags.MaxItems<0>;
  readonly allowFreeform?: true;
  readonly expiresInSeconds?: Seconds;
}

export type Answer =
  | { readonly kind: "choice"; readonly optionId: Uuid }
  | { readonly kind: "text"; readonly text: AnswerText };

/** Who resolved a question. `service` for what the service itself had to cancel. */
export interface Resolver {
  readonly kind: "operator" | "device" | "service";
  readonly id: Id;
}

export type ContinuationState = "accepted" | "completed" | "failed" | "cancelled";

export interface Continuation {
  readonly runId: RunId;
  readonly state: ContinuationState;
  readonly reasonCode?: Reason;
}

/** A question, pending or terminal (then it is a receipt). Contract section 4. */
export interface Question {
  readonly requestId: Uuid;
  readonly incarnationId: Uuid;
  readonly conversationId: Id;
  /** Canonical path of the bound directory. */
  readonly workspace: Path;
  readonly purpose: "preference";
  readonly kind: "text" | "choice";
  readonly prompt: Prompt;
  readonly options: readonly Option[] & tags.MaxItems<8>;
  readonly allowFreeform: boolean;
  readonly createdAt: Timestamp;
  /** The run that asked; `session:` and the credential id for an attached agent outside a run. */
  readonly originRunId: Id;
  readonly expiresAt?: Timestamp;
  readonly status: "pending" | "submitted" | "cancelled";
  readonly resolvedAt?: Timestamp;
  readonly resolvedBy?: Resolver;
  readonly reason?: CancelReason;
  readonly answer?: Answer;
  readonly continuation?: Continuation;
}

/** What a responder acts on: the displayed request at the displayed revision. Contract section 4. */
export interface Target {
  readonly conversationId: Id;
  readonly incarnationId: Uuid;
  readonly requestId: Uuid;
  readonly expectedRevision: Counter;
}

/** The result of `input_get`, `input_answer`, `input_cancel` and `request_user_input`. Contract section 4. */
export interface QuestionResult {
  readonly status: "ready" | "resolved" | "revision_conflict" | "refused";
  readonly conversationId: Id;
  readonly incarnationId?: Uuid;
  readonly revision?: Counter;
  /** Every event up to it is reflected in this result. */
  readonly safeCursor?: Cursor;
  readonly question?: Question;
  readonly reason?: RefusalReason | "already_pending";
}
