import type { Continuation, Question, QuestionResult, Resolver } from "../../protocol/question.js";
import type { CancelReason, FaultCode } from "../../protocol/refusals.js";

/** Why a question is cancelled, for people. Contract section 7. */
export function cancelWords(reason: CancelReason | undefined): string {
  switch (reason) {
    case "cancelled_by_owner":
      return "the owner cancelled it";
    case "conversation_reset":
      return "the conversation was reset";
    case "native_takeover":
      return "a terminal agent took the conversation over";
    case "owner_revoked":
      return "the access of whoever's turn asked was revoked";
    case "run_cancelled":
      return "the run that asked was cancelled";
    case "service_restarted":
      return "the service was restarted";
    case "owner_context_lost":
      return "the access of whoever's turn asked was renewed or has ended";
    case "workspace_replaced":
      return "its directory is gone or another one";
    case "expired":
      return "its time ran out";
    case undefined:
      return "no reason was given";
    default:
      return reason satisfies never;
  }
}

/** Why nothing was stored, for people. Contract section 6. */
export function refusalWords(reason: QuestionResult["reason"]): string {
  switch (reason) {
    case "not_permitted":
      return "this credential may not answer or cancel";
    case "device_read_only":
      return "this device may only read";
    case "device_revoked":
      return "the access of this device was revoked";
    case "credential_expired":
      return "this credential has expired";
    case "stale_request":
      return "the conversation was reset since you read it";
    case "unknown_request":
      return "the service no longer knows this question";
    case "answer_conflict":
      return "another answer was stored first";
    case "already_submitted":
      return "it was answered before you cancelled";
    case "question_cancelled":
      return "the question was cancelled";
    case "unknown_option":
      return "the question has no such option";
    case "text_not_allowed":
      return "this question takes one of its options, no free text";
    case "already_pending":
    case undefined:
      return "the service gave no reason";
    default:
      return reason satisfies never;
  }
}

/** What a fault of the service means for whoever typed. Contract section 5. */
export function faultWords(code: FaultCode | "internal_error" | "protocol", message: string): string {
  switch (code) {
    case "unauthenticated":
      return "the service does not accept this token any more";
    case "forbidden":
      return "this credential may not do that";
    case "unknown_conversation":
      return "there is no such conversation";
    case "storage_unavailable":
      return "the service cannot write to its store just now; nothing was stored";
    case "question_state_unavailable":
      return "the stored state of this conversation cannot be read; `clankie doctor` says more";
    case "queue_full":
      return "too many runs wait in this conversation; try again when one has ended";
    case "rate_limited":
      return "too many requests; wait a moment";
    case "frame_too_large":
      return "it is too long for the service";
    case "shutting_down":
      return "the service is stopping";
    case "ineligible_conversation":
      return "this conversation cannot hold a question";
    case "question_pending":
      return "a question waits already";
    case "invalid_params":
    case "internal_error":
    case "protocol":
      return message;
    default:
      return code satisfies never;
  }
}

export function whoWords(who: Resolver | undefined): string {
  if (who === undefined) return "someone";
  return who.kind === "operator" ? "the operator" : who.kind === "service" ? "the service" : `device ${who.id}`;
}

/** The answer of a receipt in words: the label of the option, or the text. */
export function answerWords({ answer, options }: Question): string {
  if (answer === undefined) return "";
  if (answer.kind === "text") return `“${answer.text}”`;
  const index = options.findIndex(({ optionId }) => optionId === answer.optionId);
  const option = options[index];
  return option === undefined ? "an option" : `${index + 1} “${option.label}”`;
}

/** Accepted means stored, not executed. `digits` of the run's id are shown. */
export function continuationWords({ runId: id, state, reasonCode }: Continuation, digits = id.length): string {
  const runId = id.slice(0, digits);
  const why = reasonCode === undefined ? "" : ` (${reasonCode})`;
  switch (state) {
    case "accepted":
      return `run ${runId} continues with it: accepted, not finished`;
    case "completed":
      return `run ${runId} continued with it: completed`;
    case "failed":
      return `run ${runId} should have continued with it: failed${why}`;
    case "cancelled":
      return `run ${runId} should have continued with it: cancelled${why}`;
    default:
      return state satisfies never;
  }
}

/** Clock time where it is today, else with the date; in the reader's time zone. */
export function timeWords(timestamp: string, now: number): string {
  const date = new Date(timestamp);
  const two = (value: number): string => String(value).padStart(2, "0");
  const clock = `${two(date.getHours())}:${two(date.getMinutes())}`;
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  return date.toDateString() === new Date(now).toDateString() ? clock : `${day} ${clock}`;
}

/** A distance in time, as two words. */
export function spanWords(milliseconds: number): string {
  const seconds = Math.max(0, Math.round(milliseconds / 1000));
  if (seconds < 90) return `${seconds} s`;
  const minutes = Math.round(seconds / 60);
  if (minutes < 90) return `${minutes} min`;
  const hours = Math.round(minutes / 60);
  return hours < 48 ? `${hours} h` : `${Math.round(hours / 24)} days`;
}

/** How a question ended, as what somebody did. */
export function receiptWords(receipt: Question): string {
  const who = whoWords(receipt.resolvedBy);
  return receipt.status === "submitted"
    ? `${who} answered ${answerWords(receipt)}`
    : `${cancelWords(receipt.reason)}${receipt.reason === "cancelled_by_owner" ? ` (${who})` : ""}`;
}
