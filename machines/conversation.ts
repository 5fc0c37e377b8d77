import { enqueueActions, setup } from "xstate";
import {
  answerAuthority,
  askAuthority,
  eligibility,
  mayActForRun,
  mayClaim,
  questionContext,
  runAuthority,
} from "./authority.js";
import { BEGINNING, type ConversationContext } from "./context.js";
import type { Effect, Reply } from "./effects.js";
import type { ConversationEvent, QuestionFacts } from "./facts.js";
import { findReceipt, sameAnswer } from "./receipts.js";
import {
  acceptAnswer,
  acceptMessage,
  adopt,
  begin,
  cancelQuestion,
  changeDriver,
  effect,
  endRun,
  endRunsFor,
  failAllRuns,
  normalDraft,
  openQuestion,
  queueIsFull,
  report,
  resolverOf,
  rotateIncarnation,
  type Step,
  takeNextRun,
} from "./rules.js";

/**
 * The conversation: who drives it, its question, its turn. Contract sections 5 to 8 as one chart that is run as a pure
 * function (`decide.ts`). Reads no clock, makes no id, performs nothing.
 *
 * Guards are named for what stands in the way and are tried from the top; the first that holds decides. Each
 * transition's `meta.rule` is the contract's number for it.
 */

type Of<T extends ConversationEvent["type"]> = Extract<ConversationEvent, { type: T }>;
type Given<T extends ConversationEvent["type"] = ConversationEvent["type"]> = {
  readonly context: ConversationContext;
  readonly event: Of<T>;
};
type Resolving = Given<"question.answer" | "question.cancel">;

/** A state that a conversation is never in: the types want one before the real one is restored. */
const BLANK: ConversationContext = {
  conversationId: "",
  title: "",
  scope: { kind: "global" },
  binding: null,
  runner: { kind: "attached" },
  ...BEGINNING,
  serviceId: "",
  incarnationId: "",
};

/** Narrows the event of a guard or an action to the one its transition is taken on. */
const on =
  <T extends ConversationEvent["type"], R>(_types: readonly T[], rule: (given: Given<T>) => R) =>
  ({ context, event }: { context: ConversationContext; event: ConversationEvent }): R =>
    rule({ context, event: event as Of<T> });

/** An action that takes one step and asks for its effects. */
const step = <T extends ConversationEvent["type"]>(types: readonly T[], rule: (given: Given<T>) => Step) =>
  enqueueActions<
    ConversationContext,
    ConversationEvent,
    undefined,
    ConversationEvent,
    never,
    never,
    never,
    never,
    Effect
  >(({ context, event, enqueue }) => {
    const { context: next, effects } = on(types, rule)({ context, event });
    if (next !== context) enqueue.assign(next);
    for (const each of effects) enqueue.emit(each);
  });

/** An action that only says something. */
const reply = <T extends ConversationEvent["type"]>(types: readonly T[], rule: (given: Given<T>) => Reply) =>
  step(types, (given) => effect(begin(given.context), { type: "reply", reply: rule(given) }));

const RESOLVING = ["question.answer", "question.cancel"] as const;
const ASK = ["question.ask"] as const;
const READ = ["question.read"] as const;
const SEND = ["message.send"] as const;
const ANSWER = ["question.answer"] as const;
const CANCEL = ["question.cancel"] as const;
const RESET = ["conversation.reset"] as const;
const STARTING = ["run.begin", "run.claim"] as const;
const RUN_CANCEL = ["run.cancel"] as const;
const SETTLE = ["run.settle"] as const;
const REPORT = ["run.report"] as const;
const CONTEXT_USES = ["question.answer", "question.cancel", "question.read", "question.ask"] as const;

const known = ({ context, event }: Resolving) => {
  if (context.open?.question.requestId === event.requestId) return context.open.question;
  return findReceipt(context.receipts, event.requestId);
};

interface ContextUse {
  readonly context: ConversationContext;
  readonly event: { readonly facts: QuestionFacts; readonly at: string };
}

const contextVerdict = ({ context, event }: ContextUse) =>
  context.open === null ? ({ ok: true } as const) : questionContext(context.open, event.facts, event.at);

const contextReason = (given: ContextUse) => {
  const verdict = contextVerdict(given);
  if (verdict.ok) throw new Error("a question was cancelled whose context holds");
  return verdict.reason;
};

const isOfThePending = ({ context, event }: Given<"question.read">): boolean =>
  event.requestId === undefined || event.requestId === context.open?.question.requestId;

const isSettledAlike = ({ context, event }: Given<"run.settle">): boolean =>
  context.settled.some(
    (run) =>
      run.runId === event.runId &&
      run.state === event.state &&
      run.reasonCode === event.reasonCode &&
      run.summary === event.summary,
  );

const definition = setup({
  types: {} as {
    context: ConversationContext;
    events: ConversationEvent;
    emitted: Effect;
    input: ConversationContext;
    meta: { readonly rule: string };
  },
  guards: {
    // Section 6, in its order. Each names what stands in the way.
    callerMayNotAnswer: on(RESOLVING, ({ event }) => !answerAuthority(event.caller).ok),
    incarnationIsStale: on(RESOLVING, ({ context, event }) => event.incarnationId !== context.incarnationId),
    requestIsUnknown: on(RESOLVING, (given) => known(given) === undefined),
    sameAnswerIsStored: on(ANSWER, (given) => {
      const answer = known(given)?.answer;
      return answer !== undefined && sameAnswer(answer, given.event.answer);
    }),
    anotherAnswerIsStored: on(ANSWER, (given) => known(given)?.status === "submitted"),
    requestWasSubmitted: on(CANCEL, (given) => known(given)?.status === "submitted"),
    requestWasCancelled: on(RESOLVING, (given) => known(given)?.status === "cancelled"),
    contextIsLost: on(CONTEXT_USES, (given) => !contextVerdict(given).ok),
    revisionHasMoved: on(
      ["question.answer", "question.cancel", "conversation.reset"],
      ({ context, event }) => event.expectedRevision !== context.revision,
    ),
    optionIsUnknown: on(
      ANSWER,
      ({ context, event: { answer } }) =>
        answer.kind === "choice" && !context.open?.question.options.some((o) => o.optionId === answer.optionId),
    ),
    textIsNotAllowed: on(
      ANSWER,
      ({ context, event }) => event.answer.kind === "text" && context.open?.question.allowFreeform !== true,
    ),
    queueIsFull: ({ context }) => queueIsFull(context),

    // Asking and reading. Section 5, section 7 below the table.
    turnMayNotAsk: on(ASK, ({ context, event }) => !askAuthority(context, event.caller, event.facts).ok),
    turnIsNoOwners: on(ASK, ({ context, event }) => {
      const verdict = askAuthority(context, event.caller, event.facts);
      return !verdict.ok && verdict.reason !== "workspace_replaced" && verdict.reason !== "owner_context_lost";
    }),
    draftIsTheSame: on(
      ASK,
      ({ context, event }) => JSON.stringify(context.open?.draft) === JSON.stringify(normalDraft(event.draft)),
    ),
    readsThePendingOne: on(READ, (given) => isOfThePending(given)),
    readsOneWhoseContextIsLost: on(READ, (given) => isOfThePending(given) && !contextVerdict(given).ok),
    readsNothingInParticular: on(READ, ({ event }) => event.requestId === undefined),
    readsAReceipt: on(
      READ,
      ({ context, event }) =>
        event.requestId !== undefined && findReceipt(context.receipts, event.requestId) !== undefined,
    ),
    revokedWhatTheQuestionNeeds: on(["credential.revoked"], ({ context, event: { credential } }) =>
      [context.open?.owner, context.open?.asker].some((s) => s?.kind === credential.kind && s.id === credential.id),
    ),
    askedByThisRun: on(
      RUN_CANCEL,
      ({ context, event }) =>
        context.active?.runId === event.runId && context.open?.question.originRunId === event.runId,
    ),

    // Messages and runs.
    messageRevisionHasMoved: on(
      SEND,
      ({ context, event }) => event.expectedRevision !== undefined && event.expectedRevision !== context.revision,
    ),
    harnessIsTheSame: on(["native.claim"], ({ context, event }) => event.harness === context.harness),
    workspaceIsReplaced: on(SEND, ({ event }) => !event.workspaceIsSame),
    resetIsCurrent: on(RESET, ({ context, event }) => event.expectedRevision === context.revision),
    aRunWaits: ({ context }) => context.waiting.length > 0,
    isNotTheActiveRun: on(
      [...STARTING, "run.settle", "run.report"] as const,
      ({ context, event }) => context.active?.runId !== event.runId,
    ),
    callerMayNotClaim: on(["run.claim"], ({ event }) => !mayClaim(event.caller, event.runId)),
    callerMayNotAct: on(
      ["run.settle", "run.report"],
      ({ context, event }) => !mayActForRun(event.caller, event.runId, context.active),
    ),
    runnerIsACommand: ({ context }) => context.runner.kind === "command",
    runMayNotStart: on(
      STARTING,
      ({ context, event }) => context.active !== null && !runAuthority(context.active, event.facts).ok,
    ),
    isTheActiveRun: on(RUN_CANCEL, ({ context, event }) => context.active?.runId === event.runId),
    isAWaitingRun: on(RUN_CANCEL, ({ context, event }) => context.waiting.some((r) => r.runId === event.runId)),
    isASettledRun: on(RUN_CANCEL, ({ context, event }) => context.settled.some((r) => r.runId === event.runId)),
    settledAlike: on(SETTLE, isSettledAlike),
    activeWasInterrupted: on(
      ["commit.interrupted"],
      ({ context, event }) => context.active !== null && event.runIds.includes(context.active.runId),
    ),
  },
  actions: {
    // Replies that change nothing.
    refuseCaller: reply(RESOLVING, ({ event }) => {
      const verdict = answerAuthority(event.caller);
      if (verdict.ok) throw new Error("a caller was refused who may answer");
      return { kind: "question", status: "refused", reason: verdict.reason };
    }),
    refuseStale: reply(RESOLVING, () => ({ kind: "question", status: "refused", reason: "stale_request" })),
    refuseUnknown: reply(RESOLVING, () => ({ kind: "question", status: "refused", reason: "unknown_request" })),
    repeatReceipt: reply(RESOLVING, ({ event }) => ({
      kind: "question",
      status: "resolved",
      requestId: event.requestId,
    })),
    refuseOtherAnswer: reply(ANSWER, ({ event }) => ({
      kind: "question",
      status: "refused",
      reason: "answer_conflict",
      requestId: event.requestId,
    })),
    refuseSubmitted: reply(CANCEL, ({ event }) => ({
      kind: "question",
      status: "refused",
      reason: "already_submitted",
      requestId: event.requestId,
    })),
    refuseCancelled: reply(RESOLVING, ({ event }) => ({
      kind: "question",
      status: "refused",
      reason: "question_cancelled",
      requestId: event.requestId,
    })),
    refuseRevision: reply(RESOLVING, ({ event }) => ({
      kind: "question",
      status: "revision_conflict",
      requestId: event.requestId,
    })),
    refuseOption: reply(ANSWER, ({ event }) => ({
      kind: "question",
      status: "refused",
      reason: "unknown_option",
      requestId: event.requestId,
    })),
    refuseText: reply(ANSWER, ({ event }) => ({
      kind: "question",
      status: "refused",
      reason: "text_not_allowed",
      requestId: event.requestId,
    })),
    refuseFullQueue: reply([...ANSWER, ...SEND], () => ({ kind: "fault", code: "queue_full" })),
    refuseAsk: reply(ASK, ({ context, event }) => {
      const verdict = askAuthority(context, event.caller, event.facts);
      if (verdict.ok) throw new Error("a turn was refused that may ask");
      return { kind: "fault", code: "ineligible_conversation", reason: verdict.reason };
    }),
    refuseOtherDraft: reply(ASK, ({ context }) => ({
      kind: "fault",
      code: "question_pending",
      ...(context.open && { requestId: context.open.question.requestId }),
    })),
    repeatPending: reply(ASK, ({ context }) => ({
      kind: "question",
      status: "ready",
      reason: "already_pending",
      ...(context.open && { requestId: context.open.question.requestId }),
    })),
    showPending: reply(READ, ({ context }) => ({
      kind: "question",
      status: "ready",
      ...(context.open && { requestId: context.open.question.requestId }),
    })),
    showReceipt: reply(READ, ({ event }) => ({
      kind: "question",
      status: "resolved",
      ...(event.requestId !== undefined && { requestId: event.requestId }),
    })),
    showNothing: reply(READ, () => ({ kind: "question", status: "ready" })),
    refuseUnknownRead: reply(READ, () => ({ kind: "question", status: "refused", reason: "unknown_request" })),
    refuseRevisionOfMessage: reply([...SEND, ...RESET], () => ({ kind: "conflict" })),
    refuseMessage: reply(SEND, ({ context }) => {
      const verdict = eligibility(context);
      return {
        kind: "fault",
        code: "ineligible_conversation",
        reason: verdict.ok || verdict.reason === "not_workspace" ? "workspace_replaced" : verdict.reason,
      };
    }),
    showConversation: reply(["native.claim", "native.release"], () => ({ kind: "conversation" })),
    forbid: reply(["run.claim", "run.settle", "run.report"], () => ({ kind: "fault", code: "forbidden" })),
    refuseUnknownRun: reply(RUN_CANCEL, () => ({ kind: "fault", code: "unknown_conversation", reason: "unknown_run" })),
    acknowledge: reply([...RUN_CANCEL, ...SETTLE], () => ({ kind: "done" })),

    // Messages.
    acceptMessage: step(SEND, ({ context, event }) =>
      effect(acceptMessage(context, event.at, event.caller, event.text, event.runId), {
        type: "reply",
        reply: { kind: "accepted", runId: event.runId },
      }),
    ),

    // The question's life.
    openQuestion: step(ASK, ({ context, event }) =>
      effect(openQuestion(context, event.at, event.caller, event.draft, event.requestId, event.optionIds), {
        type: "reply",
        reply: { kind: "question", status: "ready", requestId: event.requestId },
      }),
    ),
    acceptAnswer: step(ANSWER, ({ context, event }) =>
      effect(acceptAnswer(context, event.at, event.caller, event.answer, event.runId), {
        type: "reply",
        reply: { kind: "question", status: "resolved", requestId: event.requestId },
      }),
    ),
    cancelByOwner: step(CANCEL, ({ context, event }) =>
      effect(cancelQuestion(context, event.at, "cancelled_by_owner", resolverOf(event.caller)), {
        type: "reply",
        reply: { kind: "question", status: "resolved", requestId: event.requestId },
      }),
    ),
    cancelForLostContext: step(RESOLVING, (given) =>
      effect(cancelQuestion(given.context, given.event.at, contextReason(given)), {
        type: "reply",
        reply: {
          kind: "question",
          status: "refused",
          reason: "question_cancelled",
          requestId: given.event.requestId,
        },
      }),
    ),
    cancelAndShow: step(READ, (given) =>
      effect(cancelQuestion(given.context, given.event.at, contextReason(given)), {
        type: "reply",
        reply: {
          kind: "question",
          status: "resolved",
          ...(given.context.open && { requestId: given.context.open.question.requestId }),
        },
      }),
    ),
    cancelAndAskAgain: step(ASK, (given) =>
      effect(cancelQuestion(given.context, given.event.at, contextReason(given)), { type: "again" }),
    ),
    cancelForReset: step(RESET, ({ context, event }) => cancelQuestion(context, event.at, "conversation_reset")),
    cancelForTakeover: step(["native.claim"], ({ context, event }) =>
      cancelQuestion(context, event.at, "native_takeover"),
    ),
    cancelForRevocation: step(["credential.revoked"], ({ context, event }) =>
      cancelQuestion(context, event.at, "owner_revoked"),
    ),
    cancelWithItsRun: step(RUN_CANCEL, ({ context, event }) => cancelQuestion(context, event.at, "run_cancelled")),
    cancelForRestart: step(["service.restarted"], ({ context, event }) =>
      cancelQuestion(context, event.at, "service_restarted"),
    ),

    // Driver and incarnation.
    takeOver: step(["native.claim"], ({ context, event }) =>
      effect(changeDriver(context, event.harness), { type: "reply", reply: { kind: "conversation" } }),
    ),
    giveBack: step(["native.release"], ({ context }) =>
      effect(changeDriver(context, null), { type: "reply", reply: { kind: "conversation" } }),
    ),
    rotateIncarnation: step(RESET, ({ context, event }) =>
      effect(rotateIncarnation(context, event.incarnationId), { type: "reply", reply: { kind: "conversation" } }),
    ),
    adopt: step(["service.restarted"], ({ context, event }) => adopt(context, event.serviceId)),

    // Runs.
    takeNextRun: step([] as readonly never[], ({ context }) => takeNextRun(context)),
    startRun: step(["run.begin"], ({ context }) =>
      context.active === null ? begin(context) : effect(begin(context), { type: "start", run: context.active }),
    ),
    handOverRun: step(["run.claim"], ({ context, event }) =>
      context.active === null
        ? begin(context)
        : effect(begin({ ...context, active: { ...context.active, claimedBy: event.caller.stamp.id } }), {
            type: "reply",
            reply: { kind: "claimed", run: context.active },
          }),
    ),
    failStart: step(STARTING, ({ context, event }) => {
      const verdict = context.active === null ? { ok: true as const } : runAuthority(context.active, event.facts);
      if (verdict.ok) throw new Error("a run was failed that may start");
      const failed = endRun(begin(context), event.at, event.runId, { state: "failed", reasonCode: verdict.reason });
      return event.type === "run.claim"
        ? effect(failed, { type: "reply", reply: { kind: "fault", code: "forbidden", reason: verdict.reason } })
        : failed;
    }),
    recordReport: step(REPORT, ({ context, event }) =>
      effect(
        report(
          context,
          event.at,
          event.bodies.map((body) =>
            body.type === "message"
              ? { type: "message", role: "agent", text: body.text, streaming: body.streaming ?? false }
              : body,
          ),
        ),
        { type: "reply", reply: { kind: "reported" } },
      ),
    ),
    settleRun: step(SETTLE, ({ context, event }) =>
      effect(
        endRun(begin(context), event.at, event.runId, {
          state: event.state,
          ...(event.reasonCode !== undefined && { reasonCode: event.reasonCode }),
          ...(event.summary !== undefined && { summary: event.summary }),
        }),
        { type: "stop", runId: event.runId },
        { type: "reply", reply: { kind: "done" } },
      ),
    ),
    cancelRun: step(RUN_CANCEL, ({ context, event }) =>
      effect(
        endRun(begin(context), event.at, event.runId, { state: "cancelled", reasonCode: "run_cancelled" }),
        { type: "stop", runId: event.runId },
        { type: "reply", reply: { kind: "done" } },
      ),
    ),
    endRunsForTakeover: step(["native.claim"], ({ context, event }) =>
      endRunsFor(context, event.at, "native_takeover"),
    ),
    endRunsForReset: step(RESET, ({ context, event }) => endRunsFor(context, event.at, "conversation_reset")),
    failRunsForRestart: step(["service.restarted"], ({ context, event }) =>
      failAllRuns(context, event.at, "service_restarted"),
    ),
    failRunsForStop: step(["service.stopping"], ({ context, event }) =>
      failAllRuns(context, event.at, "service_restarted"),
    ),
    failInterrupted: step(["commit.interrupted"], ({ context, event }) =>
      [context.active, ...context.waiting].reduce(
        (each, run) =>
          run !== null && event.runIds.includes(run.runId)
            ? effect(endRun(each, event.at, run.runId, { state: "failed", reasonCode: "acceptance_interrupted" }), {
                type: "stop",
                runId: run.runId,
              })
            : each,
        begin(context),
      ),
    ),
  },
});

/** Section 6, items 1 and 2: the same for both methods, wherever the question's life stands. */
const targetChecks = [
  { guard: "callerMayNotAnswer", actions: "refuseCaller", meta: { rule: "6.1" } },
  { guard: "incarnationIsStale", actions: "refuseStale", meta: { rule: "6.2" } },
] as const;

/** Items 3 and 4 of `input_answer`: what is kept of the request. */
const answerChecks = [
  ...targetChecks,
  { guard: "requestIsUnknown", actions: "refuseUnknown", meta: { rule: "6.3" } },
  { guard: "sameAnswerIsStored", actions: "repeatReceipt", meta: { rule: "6.4" } },
  { guard: "anotherAnswerIsStored", actions: "refuseOtherAnswer", meta: { rule: "6.4" } },
] as const;

/** The same of `input_cancel`. */
const cancelChecks = [
  ...targetChecks,
  { guard: "requestIsUnknown", actions: "refuseUnknown", meta: { rule: "6.3" } },
  { guard: "requestWasSubmitted", actions: "refuseSubmitted", meta: { rule: "6, input_cancel" } },
] as const;

const askingAnew = [
  { guard: "turnMayNotAsk", actions: "refuseAsk", meta: { rule: "5, request_user_input" } },
  { target: "pending", actions: "openQuestion", meta: { rule: "5, request_user_input" } },
] as const;

/** What a question meets where nothing was asked yet: no request is known. */
const nothingAsked = {
  "question.answer": [...targetChecks, { actions: "refuseUnknown", meta: { rule: "6.3" } }],
  "question.cancel": [...targetChecks, { actions: "refuseUnknown", meta: { rule: "6.3" } }],
  "question.ask": askingAnew,
  "question.read": [
    { guard: "readsNothingInParticular", actions: "showNothing", meta: { rule: "4, QuestionResult" } },
    { actions: "refuseUnknownRead", meta: { rule: "4, QuestionResult" } },
  ],
} as const;

/** What a question meets where none is pending: a request is unknown, was submitted, or was cancelled. */
const noneIsPending = {
  "question.answer": [...answerChecks, { actions: "refuseCancelled", meta: { rule: "6.5" } }],
  "question.cancel": [...cancelChecks, { actions: "repeatReceipt", meta: { rule: "6, input_cancel" } }],
  "question.ask": askingAnew,
  "question.read": [
    { guard: "readsNothingInParticular", actions: "showNothing", meta: { rule: "4, QuestionResult" } },
    { guard: "readsAReceipt", actions: "showReceipt", meta: { rule: "4, QuestionResult" } },
    { actions: "refuseUnknownRead", meta: { rule: "4, QuestionResult" } },
  ],
} as const;

/** Settling where no run is on: only what is repeated alike is done. */
const settlingAgain = [
  { guard: "callerMayNotAct", actions: "forbid", meta: { rule: "5, run_settle" } },
  { guard: "settledAlike", actions: "acknowledge", meta: { rule: "5, run_settle" } },
  { actions: "forbid", meta: { rule: "5, run_settle" } },
] as const;

/** What ends a run whatever its state. */
const anyRun = {
  "native.claim": { target: "idle", actions: "endRunsForTakeover", meta: { rule: "7, below the table" } },
  "conversation.reset": {
    guard: "resetIsCurrent",
    target: "idle",
    actions: "endRunsForReset",
    meta: { rule: "7, below the table" },
  },
  "service.restarted": { target: "idle", actions: "failRunsForRestart", meta: { rule: "8, restart" } },
  "service.stopping": { target: "idle", actions: "failRunsForStop", meta: { rule: "8, restart" } },
  "run.cancel": [
    { guard: "isTheActiveRun", target: "idle", actions: "cancelRun", meta: { rule: "5, run_cancel" } },
    { guard: "isAWaitingRun", actions: "cancelRun", meta: { rule: "5, run_cancel" } },
    { guard: "isASettledRun", actions: "acknowledge", meta: { rule: "5, run_cancel" } },
    { actions: "refuseUnknownRun", meta: { rule: "5, run_cancel" } },
  ],
  "commit.interrupted": [
    { guard: "activeWasInterrupted", target: "idle", actions: "failInterrupted", meta: { rule: "8, unknown commit" } },
    { actions: "failInterrupted", meta: { rule: "8, unknown commit" } },
  ],
} as const;

export const conversationMachine = definition.createMachine({
  id: "conversation",
  context: ({ input }) => input ?? BLANK,
  type: "parallel",
  states: {
    driver: {
      initial: "service",
      description: "Who takes the conversation's turns.",
      meta: { rule: "1, driver" },
      on: {
        "conversation.reset": [
          { guard: "revisionHasMoved", actions: "refuseRevisionOfMessage", meta: { rule: "5, conversation_reset" } },
          { actions: "rotateIncarnation", meta: { rule: "7 conversation_reset" } },
        ],
        "service.restarted": { actions: "adopt", meta: { rule: "8, restart" } },
      },
      states: {
        service: {
          description: "Runs are started here.",
          meta: { rule: "1, driver" },
          on: {
            "native.claim": { target: "native", actions: "takeOver", meta: { rule: "5, native_claim" } },
            "native.release": { actions: "showConversation", meta: { rule: "5, native_release" } },
            "message.send": [
              {
                guard: "messageRevisionHasMoved",
                actions: "refuseRevisionOfMessage",
                meta: { rule: "5, conversation_send" },
              },
              { guard: "workspaceIsReplaced", actions: "refuseMessage", meta: { rule: "5, conversation_send" } },
              { guard: "queueIsFull", actions: "refuseFullQueue", meta: { rule: "3, queue_full" } },
              { actions: "acceptMessage", meta: { rule: "5, conversation_send" } },
            ],
          },
        },
        native: {
          description: "A harness the owner sits in takes the turns; no question lives here.",
          meta: { rule: "6.6" },
          on: {
            "native.claim": [
              { guard: "harnessIsTheSame", actions: "showConversation", meta: { rule: "5, native_claim" } },
              { actions: "takeOver", meta: { rule: "5, native_claim" } },
            ],
            "native.release": { target: "service", actions: "giveBack", meta: { rule: "5, native_release" } },
            "message.send": { actions: "refuseMessage", meta: { rule: "5, conversation_send" } },
          },
        },
      },
    },
    question: {
      initial: "none",
      description: "The newest question's life; at most one is pending.",
      meta: { rule: "4, Question" },
      states: {
        none: { description: "Nothing was asked yet.", meta: { rule: "4, Question" }, on: nothingAsked },
        pending: {
          description: "One question waits for its owner.",
          meta: { rule: "4, Question" },
          on: {
            "question.answer": [
              ...answerChecks,
              { guard: "requestWasCancelled", actions: "refuseCancelled", meta: { rule: "6.5" } },
              {
                guard: "contextIsLost",
                target: "cancelled",
                actions: "cancelForLostContext",
                meta: { rule: "6.6" },
              },
              { guard: "revisionHasMoved", actions: "refuseRevision", meta: { rule: "6.7" } },
              { guard: "optionIsUnknown", actions: "refuseOption", meta: { rule: "6.8" } },
              { guard: "textIsNotAllowed", actions: "refuseText", meta: { rule: "6.8" } },
              { guard: "queueIsFull", actions: "refuseFullQueue", meta: { rule: "3, queue_full" } },
              { target: "submitted", actions: "acceptAnswer", meta: { rule: "6.9" } },
            ],
            "question.cancel": [
              ...cancelChecks,
              { guard: "requestWasCancelled", actions: "repeatReceipt", meta: { rule: "6, input_cancel" } },
              {
                guard: "contextIsLost",
                target: "cancelled",
                actions: "cancelForLostContext",
                meta: { rule: "6.6" },
              },
              { guard: "revisionHasMoved", actions: "refuseRevision", meta: { rule: "6.7" } },
              { target: "cancelled", actions: "cancelByOwner", meta: { rule: "7 cancelled_by_owner" } },
            ],
            "question.ask": [
              { guard: "turnIsNoOwners", actions: "refuseAsk", meta: { rule: "5, request_user_input" } },
              {
                guard: "contextIsLost",
                target: "cancelled",
                actions: "cancelAndAskAgain",
                meta: { rule: "7, below the table" },
              },
              { guard: "turnMayNotAsk", actions: "refuseAsk", meta: { rule: "5, request_user_input" } },
              { guard: "draftIsTheSame", actions: "repeatPending", meta: { rule: "7, below the table" } },
              { actions: "refuseOtherDraft", meta: { rule: "7, below the table" } },
            ],
            "question.read": [
              {
                guard: "readsOneWhoseContextIsLost",
                target: "cancelled",
                actions: "cancelAndShow",
                meta: { rule: "7, below the table" },
              },
              { guard: "readsThePendingOne", actions: "showPending", meta: { rule: "4, QuestionResult" } },
              { guard: "readsAReceipt", actions: "showReceipt", meta: { rule: "4, QuestionResult" } },
              { actions: "refuseUnknownRead", meta: { rule: "4, QuestionResult" } },
            ],
            "conversation.reset": {
              guard: "resetIsCurrent",
              target: "cancelled",
              actions: "cancelForReset",
              meta: { rule: "7 conversation_reset" },
            },
            "native.claim": {
              target: "cancelled",
              actions: "cancelForTakeover",
              meta: { rule: "7 native_takeover" },
            },
            "credential.revoked": {
              guard: "revokedWhatTheQuestionNeeds",
              target: "cancelled",
              actions: "cancelForRevocation",
              meta: { rule: "7 owner_revoked" },
            },
            "run.cancel": {
              guard: "askedByThisRun",
              target: "cancelled",
              actions: "cancelWithItsRun",
              meta: { rule: "7 run_cancelled" },
            },
            "service.restarted": {
              target: "cancelled",
              actions: "cancelForRestart",
              meta: { rule: "7 service_restarted" },
            },
          },
        },
        submitted: {
          description: "The newest question was answered; its receipt is kept.",
          meta: { rule: "6.9" },
          on: noneIsPending,
        },
        cancelled: {
          description: "The newest question was cancelled; its receipt is kept.",
          meta: { rule: "7" },
          on: noneIsPending,
        },
      },
    },
    turn: {
      initial: "idle",
      description: "One run at a time.",
      meta: { rule: "1, run" },
      states: {
        idle: {
          description: "No run is active.",
          meta: { rule: "1, run" },
          always: { guard: "aRunWaits", target: "accepted", actions: "takeNextRun", meta: { rule: "1, run" } },
          on: {
            "run.cancel": [
              { guard: "isASettledRun", actions: "acknowledge", meta: { rule: "5, run_cancel" } },
              { actions: "refuseUnknownRun", meta: { rule: "5, run_cancel" } },
            ],
            "run.settle": settlingAgain,
            "run.claim": { actions: "forbid", meta: { rule: "5, run_claim" } },
            "run.report": { actions: "forbid", meta: { rule: "5, run_event" } },
          },
        },
        accepted: {
          description: "A run has its place and has not started.",
          meta: { rule: "6, continuations" },
          on: {
            ...anyRun,
            "run.begin": [
              { guard: "isNotTheActiveRun", meta: { rule: "1, run" } },
              { guard: "runMayNotStart", target: "idle", actions: "failStart", meta: { rule: "6, continuations" } },
              { target: "running", actions: "startRun", meta: { rule: "6, continuations" } },
            ],
            "run.claim": [
              { guard: "callerMayNotClaim", actions: "forbid", meta: { rule: "5, run_claim" } },
              { guard: "isNotTheActiveRun", actions: "forbid", meta: { rule: "5, run_claim" } },
              { guard: "runnerIsACommand", actions: "forbid", meta: { rule: "10" } },
              { guard: "runMayNotStart", target: "idle", actions: "failStart", meta: { rule: "6, continuations" } },
              { target: "running", actions: "handOverRun", meta: { rule: "5, run_claim" } },
            ],
            "run.settle": settlingAgain,
            "run.report": { actions: "forbid", meta: { rule: "5, run_event" } },
          },
        },
        running: {
          description: "The agent works on a run.",
          meta: { rule: "1, run" },
          on: {
            ...anyRun,
            "run.claim": { actions: "forbid", meta: { rule: "5, run_claim" } },
            "run.report": [
              { guard: "callerMayNotAct", actions: "forbid", meta: { rule: "5, run_event" } },
              { guard: "isNotTheActiveRun", actions: "forbid", meta: { rule: "5, run_event" } },
              { actions: "recordReport", meta: { rule: "5, run_event" } },
            ],
            "run.settle": [
              { guard: "callerMayNotAct", actions: "forbid", meta: { rule: "5, run_settle" } },
              { guard: "settledAlike", actions: "acknowledge", meta: { rule: "5, run_settle" } },
              { guard: "isNotTheActiveRun", actions: "forbid", meta: { rule: "5, run_settle" } },
              { target: "idle", actions: "settleRun", meta: { rule: "5, run_settle" } },
            ],
          },
        },
      },
    },
  },
});
