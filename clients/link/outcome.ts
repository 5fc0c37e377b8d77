import type { Answer, Question, QuestionResult } from "../../protocol/question.js";
import type { Outcome } from "./connection.js";
import { FaultError, LinkLost } from "./errors.js";

/** What became of an answer or a cancellation that was sent at most once. Contract section 8. */
export type ResponseOutcome =
  /** The service replied: stored, refused or in conflict, as `result.status` says. */
  | { readonly kind: "settled"; readonly result: QuestionResult }
  /** The service replied with a fault: nothing was stored. */
  | { readonly kind: "fault"; readonly error: FaultError }
  /** It never left this side. */
  | { readonly kind: "not_sent"; readonly error: LinkLost }
  /** It was sent, and no reply says what became of it. It is not sent again; the receipt may say more. */
  | {
      readonly kind: "uncertain";
      readonly detail: string;
      /**
       * Reads the question once the link is connected again, as often as it takes to get a reply. Rejects with `LinkLost`
       * when the link is closed, and with `FaultError`.
       */
      receipt(): Promise<QuestionResult>;
    };

/** What the outcome of the request says of the answer in it; `receipt` is for the case that it says nothing. */
export function responseOutcome(
  outcome: Outcome<QuestionResult>,
  receipt: () => Promise<QuestionResult>,
): ResponseOutcome {
  if (outcome.ok) return { kind: "settled", result: outcome.value };
  const { error } = outcome;
  if (error instanceof LinkLost && !error.sent) return { kind: "not_sent", error };
  // an internal error says that something broke, not where: whether the answer is stored is not known
  if (error instanceof FaultError && error.code !== "internal_error") return { kind: "fault", error };
  return { kind: "uncertain", detail: error.message, receipt };
}

/** What a receipt says of an answer or a cancellation whose outcome was uncertain. */
export type Recovered =
  /** It is stored. */
  | "stored"
  /** Still pending when it was read: not stored so far, and it is not certain that it will not be. */
  | "pending"
  /** The question ended otherwise: another answer, or cancelled. */
  | "otherwise"
  /** The service does not know the request any more. */
  | "unknown";

export function recoveredAnswer(result: QuestionResult, answer: Answer): Recovered {
  return recovered(result, ({ answer: stored }) => stored !== undefined && isSameAnswer(stored, answer));
}

export function recoveredCancel(result: QuestionResult): Recovered {
  return recovered(result, ({ status, reason }) => status === "cancelled" && reason === "cancelled_by_owner");
}

function recovered({ question }: QuestionResult, isStored: (question: Question) => boolean): Recovered {
  if (question === undefined) return "unknown";
  if (question.status === "pending") return "pending";
  return isStored(question) ? "stored" : "otherwise";
}

/** The same option, or the same text after trimming. Contract section 6.4. */
export function isSameAnswer(one: Answer, other: Answer): boolean {
  return one.kind === "choice"
    ? other.kind === "choice" && one.optionId === other.optionId
    : other.kind === "text" && one.text.trim() === other.text.trim();
}
