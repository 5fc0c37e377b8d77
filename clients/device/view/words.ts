import type { ContinuationState, Question } from "../../../protocol/question.js";
import type { CancelReason } from "../../../protocol/refusals.js";
import type { ConversationSnapshot } from "../../../protocol/snapshot.js";
import type { Attempt } from "../state.js";

/** "just now", "3 min ago": how long something was before now. Both in milliseconds or as RFC 3339. */
export function ago(then: string, now: number): string {
  const seconds = Math.max(0, Math.round((now - Date.parse(then)) / 1000));
  if (seconds < 45) return "just now";
  return `${span(seconds)} ago`;
}

/** "in 3 min", or "expired". */
export function until(then: string, now: number): string {
  const seconds = Math.round((Date.parse(then) - now) / 1000);
  return seconds <= 0 ? "expired" : `expires in ${span(seconds)}`;
}

function span(seconds: number): string {
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3_600) return `${Math.round(seconds / 60)} min`;
  if (seconds < 86_400) return `${Math.round(seconds / 3_600)} h`;
  const days = Math.round(seconds / 86_400);
  return days === 1 ? "1 day" : `${days} days`;
}

/** A time of day, with the date where it is not today. */
export function clock(then: string | number, now: number): string {
  const date = new Date(then);
  const sameDay = date.toDateString() === new Date(now).toDateString();
  return date.toLocaleString(undefined, {
    ...(sameDay ? {} : { month: "short", day: "numeric" }),
    hour: "2-digit",
    minute: "2-digit",
  });
}

/** Who resolved a question, as this device sees it. */
export function resolver(question: Question, deviceId: string): string {
  const by = question.resolvedBy;
  if (by === undefined) return "somebody";
  switch (by.kind) {
    case "operator":
      return "the operator";
    case "service":
      return "the service";
    case "device":
      return by.id === deviceId ? "you, on this device" : `another device (${by.id})`;
    default:
      return by.kind satisfies never;
  }
}

/** What was answered, in the words the person saw. */
export function answerWords(question: Question): string {
  const { answer } = question;
  if (answer === undefined) return "";
  if (answer.kind === "text") return answer.text;
  return question.options.find(({ optionId }) => optionId === answer.optionId)?.label ?? "an option";
}

/** What a question can be answered with. */
export function choiceWords({ kind, options, allowFreeform }: Question): string {
  if (kind === "text") return "In your own words";
  return `${options.length} options${allowFreeform ? ", or your own words" : ""}`;
}

export function cancelWords(reason: CancelReason | undefined): string {
  switch (reason) {
    case undefined:
      return "It was cancelled.";
    case "cancelled_by_owner":
      return "It was cancelled without an answer.";
    case "conversation_reset":
      return "The conversation was reset.";
    case "native_takeover":
      return "The owner took the conversation over in a terminal.";
    case "owner_revoked":
      return "The credential behind the asking turn was revoked.";
    case "run_cancelled":
      return "The run that asked was cancelled.";
    case "service_restarted":
      return "The service was restarted while it waited.";
    case "owner_context_lost":
      return "The credential behind the asking turn is no longer good.";
    case "workspace_replaced":
      return "The working directory is gone or is another one.";
    case "expired":
      return "Its time ran out. Nothing was chosen for you.";
    default:
      return reason satisfies never;
  }
}

/** What has become of the run that an accepted answer starts. Stored is not the same as done. */
export function continuationWords(
  state: ContinuationState,
  reasonCode: string | undefined,
  isRunning: boolean,
): { readonly short: string; readonly long: string } {
  switch (state) {
    case "accepted":
      return isRunning
        ? { short: "Running", long: "The agent is working with this answer now." }
        : { short: "Accepted", long: "The answer is stored. The agent has not started on it yet." };
    case "completed":
      return { short: "Completed", long: "The agent has finished the turn this answer started." };
    case "failed":
      return { short: "Failed", long: `The answer is stored, but ${failureWords(reasonCode)}` };
    case "cancelled":
      return { short: "Run cancelled", long: "The answer is stored, but the run it started was cancelled." };
    default:
      return state satisfies never;
  }
}

function failureWords(reasonCode: string | undefined): string {
  switch (reasonCode) {
    case "context_lost":
      return "the conversation had changed before the agent could start.";
    case "responder_revoked":
      return "who answered may no longer do so: the agent was not started.";
    case "acceptance_interrupted":
      return "the service could not confirm it in time: the agent was not started.";
    case "service_restarted":
      return "the service was restarted before the agent had finished. It is not started again.";
    case "timed_out":
      return "the agent took too long.";
    case "not_started":
      return "the agent could not be started.";
    case undefined:
      return "the run it started failed.";
    default:
      return `the run it started failed (${reasonCode}).`;
  }
}

/** Why something was not done, for a person who has to decide what now. */
export function refusalWords(reason: Extract<Attempt, { kind: "refused" }>["reason"]): string {
  switch (reason) {
    case "answer_conflict":
    case "already_submitted":
      return "Somebody else was faster: this question already has another answer.";
    case "question_cancelled":
      return "This question was cancelled before your answer arrived.";
    case "stale_request":
      return "The conversation was reset. This question belongs to its earlier life.";
    case "unknown_request":
      return "The service no longer knows this question.";
    case "unknown_option":
      return "That option is not one of this question's.";
    case "text_not_allowed":
      return "This question takes one of its options only.";
    case "device_read_only":
      return "This device is read-only: it can see questions, not answer them.";
    case "not_permitted":
      return "This device may not answer here.";
    case "device_revoked":
    case "credential_expired":
      return "This device's token is no longer good.";
    case "unknown":
      return "The service refused this.";
    default:
      return reason satisfies never;
  }
}

/** The state of a conversation in a few words. */
export function conversationWords(snapshot: ConversationSnapshot): string {
  if (snapshot.question !== null) return "Question waits";
  if (snapshot.driver.kind === "native") return `In ${snapshot.driver.harness ?? "a terminal"}`;
  if (snapshot.activeRun?.state === "running") return "Running";
  if (snapshot.activeRun !== null || snapshot.queuedRuns > 0) return "About to run";
  return "Idle";
}

/** How a question names its asker. */
export function askerWords({ originRunId }: Question): string {
  if (originRunId === "session:operator") return "Asked by the operator";
  return originRunId.startsWith("session:") ? "Asked by an attached agent" : "Asked by the agent";
}
