import { BOUNDS } from "../protocol/bounds.js";
import type { EventBody, ConversationEvent as StoredEvent } from "../protocol/events.js";
import type { Option, Question, QuestionDraft, Resolver } from "../protocol/question.js";
import type { CancelReason, RunReason } from "../protocol/refusals.js";
import { askingOwner } from "./authority.js";
import { type ConversationContext, cursorOf, type Run, SETTLED_RUNS, type SettledRun } from "./context.js";
import type { Effect } from "./effects.js";
import type { Caller } from "./facts.js";
import { keepReceipt, settleContinuation, withinBounds } from "./receipts.js";

/**
 * What changes when a transition is taken: pure steps over the context, each with the effects it calls for. The chart
 * in `conversation.ts` says when they are taken.
 */
export interface Step {
  readonly context: ConversationContext;
  readonly effects: readonly Effect[];
}

export const begin = (context: ConversationContext): Step => ({ context, effects: [] });

const update = (step: Step, part: Partial<ConversationContext>): Step => ({
  ...step,
  context: { ...step.context, ...part },
});

export const effect = (step: Step, ...effects: readonly Effect[]): Step => ({
  ...step,
  effects: [...step.effects, ...effects],
});

/** The revision grows by one, at the causes section 6 lists and no other. */
const revise = (step: Step): Step => update(step, { revision: step.context.revision + 1 });

/** Writes an event into the history, at the revision reached so far. */
function record(step: Step, at: string, body: EventBody): Step {
  const eventSequence = step.context.eventSequence + 1;
  const event: StoredEvent = {
    schemaVersion: 1,
    conversationId: step.context.conversationId,
    cursor: cursorOf(eventSequence),
    revision: step.context.revision,
    occurredAt: at,
    ...body,
  };
  return effect(update(step, { eventSequence }), { type: "event", event });
}

/** A message is accepted: it enters the history and its run waits. Contract section 5, `conversation_send`. */
export function acceptMessage(
  context: ConversationContext,
  at: string,
  caller: Caller,
  text: string,
  runId: string,
): Step {
  const run: Run = { runId, origin: { kind: "message", text }, starter: caller.stamp };
  const role = caller.stamp.kind === "captain" ? "external" : "operator";
  const accepted = record(revise(begin(context)), at, { type: "message", role, text, streaming: false });
  return record(enqueue(accepted, run), at, { type: "turn", runId, phase: "accepted" });
}

const enqueue = (step: Step, run: Run): Step => update(step, { waiting: [...step.context.waiting, run] });

/** A question opens. Contract sections 4 and 5. */
export function openQuestion(
  context: ConversationContext,
  at: string,
  caller: Caller,
  draft: QuestionDraft,
  requestId: string,
  optionIds: readonly string[],
): Step {
  const owner = askingOwner(context, caller);
  if (owner === null || context.binding === null) throw new Error("a question opened outside an owner's turn");
  const normal = normalDraft(draft);
  const options: readonly Option[] =
    normal.kind === "choice"
      ? normal.options.map((option, index) => {
          const optionId = optionIds[index];
          if (optionId === undefined) throw new Error("fewer option ids than options");
          return { optionId, ...option };
        })
      : [];
  const question: Question = {
    requestId,
    incarnationId: context.incarnationId,
    conversationId: context.conversationId,
    workspace: context.binding.path,
    purpose: "preference",
    kind: normal.kind,
    prompt: normal.prompt,
    options,
    allowFreeform: normal.kind === "text" || normal.allowFreeform === true,
    createdAt: at,
    originRunId: caller.runId ?? `session:${caller.stamp.id}`,
    ...(normal.expiresInSeconds !== undefined && { expiresAt: secondsAfter(at, normal.expiresInSeconds) }),
    status: "pending",
  };
  const asker = caller.stamp.kind === "agent" && caller.runId === undefined ? caller.stamp : null;
  const open = { question, draft: normal, owner, asker };
  const opened = revise(update(begin(context), { open, receipts: withinBounds(context.receipts, open) }));
  return record(opened, at, {
    type: "input_requested",
    requestId,
    prompt: question.prompt,
    inputKind: question.kind,
    options: options.map(({ label }) => label),
  });
}

const secondsAfter = (at: string, seconds: number): string => new Date(Date.parse(at) + seconds * 1000).toISOString();

/** Trimmed, with nothing said twice: two drafts that mean the same are equal as JSON. Contract section 3. */
export function normalDraft(draft: QuestionDraft): QuestionDraft {
  const expires = draft.expiresInSeconds === undefined ? {} : { expiresInSeconds: draft.expiresInSeconds };
  if (draft.kind === "text") return { kind: "text", prompt: draft.prompt.trim(), ...expires };
  const options = draft.options.map(({ label, description }) => {
    const trimmed = description?.trim() ?? "";
    return { label: label.trim(), ...(trimmed !== "" && { description: trimmed }) };
  });
  return {
    kind: "choice",
    prompt: draft.prompt.trim(),
    options,
    allowFreeform: draft.allowFreeform === true,
    ...expires,
  };
}

/** One durable commit stores answer, responder, time and continuation. Contract 6.9. */
export function acceptAnswer(
  context: ConversationContext,
  at: string,
  caller: Caller,
  answer: NonNullable<Question["answer"]>,
  runId: string,
): Step {
  const stored = answer.kind === "text" ? { ...answer, text: answer.text.trim() } : answer;
  const receipt: Question = {
    ...pending(context),
    status: "submitted",
    resolvedAt: at,
    resolvedBy: resolverOf(caller),
    answer: stored,
    continuation: { runId, state: "accepted" },
  };
  const run: Run = {
    runId,
    origin: { kind: "continuation", question: receipt, answer: stored },
    starter: caller.stamp,
  };
  const resolved = resolve(context, at, receipt, "submitted");
  return record(enqueue(resolved, run), at, { type: "turn", runId, phase: "accepted" });
}

/** The pending question becomes a cancelled receipt. Contract section 7. */
export function cancelQuestion(
  context: ConversationContext,
  at: string,
  reason: CancelReason,
  resolvedBy: Resolver = { kind: "service", id: context.serviceId },
): Step {
  const receipt: Question = { ...pending(context), status: "cancelled", resolvedAt: at, resolvedBy, reason };
  return resolve(context, at, receipt, "cancelled");
}

function resolve(
  context: ConversationContext,
  at: string,
  receipt: Question,
  outcome: "submitted" | "cancelled",
): Step {
  const kept = update(begin(context), { open: null, receipts: keepReceipt(context.receipts, receipt) });
  return record(revise(kept), at, { type: "input_resolved", requestId: receipt.requestId, outcome });
}

const pending = (context: ConversationContext): Question => {
  if (context.open === null) throw new Error("no question is pending");
  return context.open.question;
};

/** Only an operator and a device resolve; what else cancels is the service. */
export function resolverOf(caller: Caller): Resolver {
  const { kind, id } = caller.stamp;
  if (kind !== "operator" && kind !== "device") throw new Error(`${kind} resolved a question`);
  return { kind, id };
}

/** The run that waits longest becomes the active one. Its facts are looked at again before it starts. */
export function takeNextRun(context: ConversationContext): Step {
  const [next, ...waiting] = context.waiting;
  if (next === undefined) throw new Error("no run is waiting");
  return effect(update(begin(context), { active: next, waiting }), { type: "recheck", runId: next.runId });
}

interface RunEnd {
  readonly state: "completed" | "failed" | "cancelled";
  readonly reasonCode?: RunReason | (string & {});
  readonly summary?: string;
}

/** A run ends: its place, its receipt and the history say so. */
export function endRun(step: Step, at: string, runId: string, end: RunEnd): Step {
  const { context } = step;
  const reason = end.reasonCode === undefined ? {} : { reasonCode: end.reasonCode };
  const settled: SettledRun = {
    runId,
    state: end.state,
    ...reason,
    ...(end.summary !== undefined && { summary: end.summary }),
  };
  const ended = update(step, {
    active: context.active?.runId === runId ? null : context.active,
    waiting: context.waiting.filter((run) => run.runId !== runId),
    receipts: settleContinuation(context.receipts, { runId, state: end.state, ...reason }),
    settled: [...context.settled, settled].slice(-SETTLED_RUNS),
  });
  const { state: phase, ...rest } = end;
  return record(ended, at, { type: "turn", runId, phase, ...rest });
}

/** Takeover and reset cancel the run that is active and fail those that wait. Contract section 7, below the table. */
export function endRunsFor(context: ConversationContext, at: string, reasonCode: RunReason): Step {
  let step = begin(context);
  if (context.active !== null) {
    const { runId } = context.active;
    step = effect(endRun(step, at, runId, { state: "cancelled", reasonCode }), { type: "stop", runId });
  }
  return failRuns(step, at, context.waiting, "context_lost");
}

/** The service stops or started again: what was accepted or running fails, and never starts again. Section 8. */
export function failAllRuns(context: ConversationContext, at: string, reasonCode: RunReason): Step {
  const live = context.active === null ? context.waiting : [context.active, ...context.waiting];
  const failed = failRuns(begin(context), at, live, reasonCode);
  return context.active === null ? failed : effect(failed, { type: "stop", runId: context.active.runId });
}

const failRuns = (step: Step, at: string, runs: readonly Run[], reasonCode: RunReason): Step =>
  runs.reduce((each, { runId }) => endRun(each, at, runId, { state: "failed", reasonCode }), step);

/** The driver changes; questions and runs have transitions of their own for it. Contract sections 6 and 7. */
export const changeDriver = (context: ConversationContext, harness: string | null): Step =>
  revise(update(begin(context), { harness }));

/** A reset begins a new incarnation. Contract sections 1 and 7. */
export const rotateIncarnation = (context: ConversationContext, incarnationId: string): Step =>
  revise(update(begin(context), { incarnationId }));

/** The service that found the conversation takes it over. Contract section 8. */
export const adopt = (context: ConversationContext, serviceId: string): Step => update(begin(context), { serviceId });

/** An agent's own words enter the history; they leave the revision alone. Contract section 6. */
export const report = (context: ConversationContext, at: string, bodies: readonly EventBody[]): Step =>
  bodies.reduce((step, body) => record(step, at, body), begin(context));

/** Is there room for one more waiting run? Contract section 3. */
export const queueIsFull = (context: ConversationContext): boolean => context.waiting.length >= BOUNDS.queuedRuns;
