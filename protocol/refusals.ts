/** Why a question is cancelled. Contract section 7. */
export type CancelReason =
  | "cancelled_by_owner"
  | "conversation_reset"
  | "native_takeover"
  | "owner_revoked"
  | "run_cancelled"
  | "service_restarted"
  | "owner_context_lost"
  | "workspace_replaced"
  | "expired";

/** Why an answer, a cancellation or a read of a question is refused. Contract section 6. */
export type RefusalReason =
  | "not_permitted"
  | "device_read_only"
  | "device_revoked"
  | "credential_expired"
  | "stale_request"
  | "unknown_request"
  | "answer_conflict"
  | "already_submitted"
  | "question_cancelled"
  | "unknown_option"
  | "text_not_allowed";

/**
 * Why a run that was accepted did not complete; the `reasonCode` of a `turn` event and of a continuation. A command's
 * own end is `exit_` with its status or `signal_` with its signal, and an agent that settles its run gives its own.
 */
export type RunReason =
  | "context_lost"
  | "responder_revoked"
  | "acceptance_interrupted"
  | "service_restarted"
  | "run_cancelled"
  | "native_takeover"
  | "conversation_reset"
  | "timed_out"
  | "not_started"
  | "sender_revoked"
  | "output_not_stored";

/** Why a conversation can hold no question. The `ineligibleReason` of a snapshot. Contract section 4. */
export type IneligibleReason = "not_workspace" | "native_driver";

/** `data.reason` of an `ineligible_conversation` error: what the conversation, or the turn that asks, lacks. */
export type AskReason = IneligibleReason | "no_owner_turn" | "owner_context_lost" | "workspace_replaced";

/**
 * Every fault of the socket with its JSON-RPC number. Contract section 5. `invalid_params` is JSON-RPC's own number;
 * the others are the service's.
 */
export const FAULT_NUMBERS = {
  invalid_params: -32602,
  unauthenticated: -32000,
  forbidden: -32001,
  unknown_conversation: -32002,
  ineligible_conversation: -32003,
  question_pending: -32004,
  question_state_unavailable: -32005,
  storage_unavailable: -32006,
  queue_full: -32007,
  rate_limited: -32008,
  frame_too_large: -32009,
  shutting_down: -32010,
} as const;

export type FaultCode = keyof typeof FAULT_NUMBERS;

/** JSON-RPC 2.0's own numbers for what is wrong with a frame rather than with its parameters. */
export const PROTOCOL_NUMBERS = {
  parse_error: -32700,
  invalid_request: -32600,
  method_not_found: -32601,
  internal_error: -32603,
} as const;

/** One fault of one field: where, and what was expected there. Never the value. */
export interface FieldError {
  readonly path: string;
  readonly expected: string;
}

/** `error.data` of a reply. Contract section 5. */
export interface FaultData {
  readonly code: FaultCode | "internal_error";
  readonly errors?: readonly FieldError[];
  readonly reason?: string;
  /** With `question_pending`: the request that is waiting. */
  readonly requestId?: string;
  /** With `rate_limited`: when to try again, in milliseconds from now. */
  readonly retryAfterMs?: number;
}
