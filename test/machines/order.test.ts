import { suite } from "uvu";
import * as assert from "uvu/assert";
import type { ConversationState } from "../../machines/decide.js";
import type { Caller, ConversationEvent, QuestionFacts } from "../../machines/facts.js";
import type { Answer, Question } from "../../protocol/question.js";
import {
  after,
  answer,
  ask,
  asked,
  cancel,
  captain,
  choice,
  held,
  newestReceipt,
  pendingIn,
  resultIn,
  send,
  taking,
  uuid,
} from "./given.js";

/**
 * Section 6 says in which order an answer is checked: the first check that fails decides. Each check is written here
 * with its number and with what makes it fail; every two that can fail at once are made to, and the lower number wins.
 * The order of this table is the contract's; the machine's own is what is tried.
 */

const test = suite("the order of the checks");

/** A request under way: what a check's fault is worked into. */
interface Attempt {
  readonly state: ConversationState;
  readonly question: Question;
  readonly caller?: Caller;
  readonly incarnationId?: string;
  readonly requestId?: string;
  readonly expectedRevision?: number;
  readonly facts?: QuestionFacts;
  readonly answer?: Answer;
}

interface Check {
  readonly number: string;
  readonly promise: string;
  /** What the result says where this check decides: its reason, or its status where it has none. */
  readonly outcome: string;
  readonly fail: (attempt: Attempt) => Attempt;
  /** The receipt the check is about; it cannot fail together with one about another. */
  readonly about?: "pending" | "submitted" | "cancelled" | "unknown";
}

/** One question was submitted, one cancelled, a third is pending. */
const world: ConversationState = after(asked(choice), answer(), ask(choice), cancel(), ask(choice), send());
const submitted = world.context.receipts[0] as Question;
const cancelledOne = newestReceipt(world);

const stored = submitted.answer as Answer;
const another: Answer = { kind: "choice", optionId: submitted.options[1]?.optionId ?? "" };

const who: Check = {
  number: "6.1",
  promise: "who may not answer learns nothing else",
  outcome: "not_permitted",
  fail: (attempt) => ({ ...attempt, caller: captain }),
};
const incarnation: Check = {
  number: "6.2",
  promise: "a request of an earlier incarnation is stale",
  outcome: "stale_request",
  fail: (attempt) => ({ ...attempt, incarnationId: uuid(4711) }),
};
const unknown: Check = {
  number: "6.3",
  promise: "an unknown request is unknown",
  outcome: "unknown_request",
  about: "unknown",
  fail: (attempt) => ({ ...attempt, requestId: uuid(4712) }),
};
const lost: Check = {
  number: "6.6",
  promise: "a lost context cancels the question",
  outcome: "question_cancelled",
  fail: (attempt) => ({ ...attempt, facts: { ...held, workspaceIsSame: false } }),
};
const moved: Check = {
  number: "6.7",
  promise: "a moved revision is a conflict",
  outcome: "revision_conflict",
  fail: (attempt) => ({ ...attempt, expectedRevision: attempt.state.context.revision + 7 }),
};

/** Of `input_answer`, in the contract's order. */
const answering: readonly Check[] = [
  who,
  incarnation,
  unknown,
  {
    number: "6.4 same",
    promise: "the same answer gets its stored receipt",
    outcome: "resolved",
    about: "submitted",
    fail: (attempt) => ({ ...attempt, question: submitted, answer: stored }),
  },
  {
    number: "6.4 another",
    promise: "another answer than the stored one is a conflict",
    outcome: "answer_conflict",
    about: "submitted",
    fail: (attempt) => ({ ...attempt, question: submitted, answer: another }),
  },
  {
    number: "6.5",
    promise: "a question cancelled before stays so",
    outcome: "question_cancelled",
    about: "cancelled",
    fail: (attempt) => ({ ...attempt, question: cancelledOne }),
  },
  lost,
  moved,
  {
    number: "6.8 option",
    promise: "an option the question does not have is refused",
    outcome: "unknown_option",
    fail: (attempt) => ({ ...attempt, answer: { kind: "choice", optionId: uuid(4713) } }),
  },
  {
    number: "6.8 text",
    promise: "text is refused where only options are allowed",
    outcome: "text_not_allowed",
    fail: (attempt) => ({ ...attempt, answer: { kind: "text", text: "neither" } }),
  },
  {
    number: "3 queue",
    promise: "a full queue consumes nothing",
    outcome: "queue_full",
    fail: (attempt) => ({ ...attempt, state: after(attempt.state, ...Array.from({ length: 16 }, () => send())) }),
  },
];

/** Of `input_cancel`: the same without 8, and with what its repeats get. */
const cancelling: readonly Check[] = [
  who,
  incarnation,
  unknown,
  {
    number: "6 cancel, submitted",
    promise: "a submitted question cannot be cancelled",
    outcome: "already_submitted",
    about: "submitted",
    fail: (attempt) => ({ ...attempt, question: submitted }),
  },
  {
    number: "6 cancel, repeat",
    promise: "a repeated cancellation gets its stored receipt",
    outcome: "resolved",
    about: "cancelled",
    fail: (attempt) => ({ ...attempt, question: cancelledOne }),
  },
  lost,
  moved,
];

/** The same answer cannot be another one, nor an option a text, nor a stored answer a wrong one of the pending's. */
const exclude = (one: Check, other: Check): boolean =>
  (one.about !== undefined && other.about !== undefined) ||
  (one.number.startsWith("6.4 same") && other.number.startsWith("6.8")) ||
  (one.number.startsWith("6.8") && other.number.startsWith("6.8"));

const attempted = (attempt: Attempt, move: typeof answer | typeof cancel): ConversationEvent => {
  const { state, question, caller, facts } = attempt;
  const target = {
    requestId: attempt.requestId ?? question.requestId,
    ...(caller && { caller }),
    ...(facts && { facts }),
    incarnationId: attempt.incarnationId ?? state.context.incarnationId,
    expectedRevision: attempt.expectedRevision ?? state.context.revision,
  };
  if (move === cancel) return cancel(target)(state);
  const option = question.options[0]?.optionId ?? "";
  return answer({ ...target, answer: attempt.answer ?? { kind: "choice", optionId: option } })(state);
};

const outcomeOf = (attempt: Attempt, move: typeof answer | typeof cancel): string => {
  const decision = taking(attempt.state, () => attempted(attempt, move));
  const fault = decision.effects.find((effect) => effect.type === "reply" && effect.reply.kind === "fault");
  if (fault?.type === "reply" && fault.reply.kind === "fault") return fault.reply.code;
  const { reason, status } = resultIn(decision);
  return reason ?? status;
};

const faultless: Attempt = { state: world, question: pendingIn(world) };

/** While a question is pending, and after it too: the checks stand in both places. */
const nonePending: Attempt = { state: after(world, cancel()), question: pendingIn(world) };

for (const [method, checks, move] of [
  ["input_answer", answering, answer],
  ["input_cancel", cancelling, cancel],
] as const) {
  test(`[6.9] ${method} without a fault is resolved`, () => {
    assert.is(outcomeOf(faultless, move), "resolved");
  });

  checks.forEach((check, index) => {
    test(`[${check.number}] ${method}: ${check.promise}`, () => {
      assert.is(outcomeOf(check.fail(faultless), move), check.outcome);
    });

    for (const later of checks.slice(index + 1)) {
      if (exclude(check, later)) continue;
      const promise = `${method}: where [${check.number}] and [${later.number}] both stand in the way, [${check.number}] decides`;
      test(promise, () => {
        // the later fault first, so that the answer and question of the earlier one are what is tried
        const outcome = outcomeOf(check.fail(later.fail(faultless)), move);
        assert.is(
          outcome,
          check.outcome,
          `broken promise: ${check.promise} [${check.number}], before: ${later.promise} [${later.number}]; got ${outcome}`,
        );
      });
    }
  });

  const kept = checks.filter(({ number, about }) => about !== undefined || /^6\.[12]$/.test(number));
  kept.forEach((check, index) => {
    for (const later of kept.slice(index + 1)) {
      if (exclude(check, later)) continue;
      test(`${method} with none pending: where [${check.number}] and [${later.number}] both stand in the way, [${check.number}] decides`, () => {
        const outcome = outcomeOf(check.fail(later.fail(nonePending)), move);
        assert.is(outcome, check.outcome, `broken promise: ${check.promise} [${check.number}]; got ${outcome}`);
      });
    }
  });
}

test.run();
