import {
  type AnswerSeen,
  canonical,
  entry,
  type Findings,
  type History,
  type Operation,
  type QuestionSeen,
  questionResultOf,
  questionsOf,
  snapshotsOf,
} from "./operations.js";
import type { ViolationKind } from "./records.js";

/**
 * Linearizability of the answer-once register that each request is: asked once, answered or cancelled once, then only
 * read until it is evicted. The search goes through the history in order and keeps every state that some order of what
 * is under way can have led to, each once. An operation without a reply may have taken effect at any moment until the
 * service started again, or never; so may one that was told `storage_unavailable`.
 */
type State =
  | { readonly is: "none" }
  | { readonly is: "pending" }
  /** What nobody has seen yet is null: it is bound by the first who sees it. */
  | { readonly is: "submitted"; readonly answer: string; readonly receipt: string | null }
  | { readonly is: "cancelled"; readonly receipt: string | null }
  | { readonly is: "gone" };

interface Step {
  readonly operation: Operation;
  /** The states that taking effect in this state may lead to; none: it cannot have taken effect here. */
  readonly takes: (state: State) => readonly State[];
  readonly sees: "pending" | "receipt" | "nothing" | "other";
}

interface Config {
  readonly state: State;
  readonly done: ReadonlySet<number>;
}

const keyOf = ({ state, done }: Config): string => `${canonical(state)} ${[...done].sort((a, b) => a - b).join()}`;

/** Errors after which nobody knows whether the change was stored. */
const UNCERTAIN = new Set(["storage_unavailable", "question_state_unavailable", "internal_error"]);

/** How many receipts a conversation keeps, and how many bytes of them may be evicted for. Contract section 3. */
const KEPT = 32;
const KEPT_BYTES = 400_000;

const receiptKey = ({ continuation, ...question }: QuestionSeen): string =>
  canonical({ ...question, runId: continuation?.runId });

const answerKey = (answer: AnswerSeen | undefined): string =>
  canonical(answer?.kind === "text" ? { ...answer, text: answer.text?.trim() } : answer);

/** Is this question, as it was seen, what the register holds, and what does seeing it bind? */
function sees(question: QuestionSeen): (state: State) => readonly State[] {
  switch (question.status) {
    case "pending":
      return (state) => (state.is === "pending" ? [state] : []);
    case "submitted": {
      const bound: State = { is: "submitted", answer: answerKey(question.answer), receipt: receiptKey(question) };
      return (state) =>
        state.is === "submitted" &&
        state.answer === bound.answer &&
        (state.receipt === null || state.receipt === bound.receipt)
          ? [state.receipt === null ? bound : state]
          : [];
    }
    case "cancelled": {
      const bound: State = { is: "cancelled", receipt: receiptKey(question) };
      return (state) =>
        state.is === "cancelled" && (state.receipt === null || state.receipt === bound.receipt)
          ? [state.receipt === null ? bound : state]
          : [];
    }
    default:
      return question.status satisfies never;
  }
}

const isNot =
  (...states: readonly State["is"][]) =>
  (state: State): readonly State[] =>
    states.includes(state.is) ? [] : [state];

const isOneOf =
  (...states: readonly State["is"][]) =>
  (state: State): readonly State[] =>
    states.includes(state.is) ? [state] : [];

/** What an operation says about one request, or null where it says nothing. */
function stepOf(operation: Operation, requestId: string): Step | null {
  const { method, outcome, params } = operation;
  const step = (takes: Step["takes"], saw: Step["sees"] = "other"): Step => ({ operation, takes, sees: saw });
  const isTarget = params["requestId"] === requestId;
  const changes = (method === "input_answer" || method === "input_cancel") && isTarget;

  if (outcome.kind === "open" || (outcome.kind === "error" && UNCERTAIN.has(outcome.code))) {
    if (!changes) return null;
    return method === "input_answer"
      ? step((state) =>
          state.is === "pending"
            ? [{ is: "submitted", answer: answerKey(params["answer"] as AnswerSeen), receipt: null }]
            : [],
        )
      : step((state) => (state.is === "pending" ? [{ is: "cancelled", receipt: null }] : []));
  }
  if (outcome.kind === "error") return null;

  const result = questionResultOf(operation);
  if (result !== undefined) {
    const { question, status, reason } = result;
    if (method === "request_user_input") {
      if (question?.requestId !== requestId) return null;
      return reason === "already_pending"
        ? step(sees(question), "pending")
        : step((state) => (state.is === "none" ? [{ is: "pending" }] : []), "pending");
    }
    const saw = question === undefined ? "nothing" : question.status === "pending" ? "pending" : "receipt";
    if (method === "input_get") {
      if (question?.requestId === requestId) return step(sees(question), saw);
      if (isTarget) return reason === "unknown_request" ? step(isOneOf("none", "gone"), "nothing") : null;
      return params["requestId"] === undefined ? step(isNot("pending"), "nothing") : null;
    }
    if (!isTarget) return null;
    if (status === "resolved") {
      if (question === undefined) return step(() => []);
      if (method === "input_answer") {
        if (
          question.status !== "submitted" ||
          answerKey(question.answer) !== answerKey(params["answer"] as AnswerSeen)
        ) {
          return step(() => []);
        }
        const bound: State = { is: "submitted", answer: answerKey(question.answer), receipt: receiptKey(question) };
        const seen = sees(question);
        return step((state) => (state.is === "pending" ? [bound] : seen(state)), saw);
      }
      if (question.status !== "cancelled") return step(() => []);
      const bound: State = { is: "cancelled", receipt: receiptKey(question) };
      const seen = sees(question);
      return step((state) => (state.is === "pending" ? [bound] : seen(state)), saw);
    }
    if (status === "revision_conflict") return step(isOneOf("pending"), "pending");
    switch (reason) {
      case "stale_request":
        return step(isNot("pending"), "other");
      case "unknown_request":
        return step(isOneOf("none", "gone"), "nothing");
      case "unknown_option":
      case "text_not_allowed":
        return step(isOneOf("pending"), "pending");
      case "answer_conflict":
      case "already_submitted":
      case "question_cancelled": {
        if (question === undefined) return step(() => []);
        const wanted = reason === "question_cancelled" ? "cancelled" : "submitted";
        const isSame = answerKey(question.answer) === answerKey(params["answer"] as AnswerSeen | undefined);
        if (question.status !== wanted || (reason === "answer_conflict" && isSame)) return step(() => []);
        return step(sees(question), saw);
      }
      default:
        return null;
    }
  }

  const conversationId = params["conversationId"];
  for (const snapshot of snapshotsOf(operation)) {
    const question = snapshot.question?.requestId === requestId ? snapshot.question : snapshot.receipts[requestId];
    if (question !== undefined) return step(sees(question), question.status === "pending" ? "pending" : "receipt");
    if (snapshot.conversationId === conversationId) return step(isOneOf("none", "gone"), "nothing");
  }
  const question = questionsOf(operation).find((each) => each.requestId === requestId);
  return question === undefined ? null : step(sees(question), question.status === "pending" ? "pending" : "receipt");
}

interface Request {
  readonly requestId: string;
  readonly conversationId: string;
  firstMention: number;
  lastMention: number;
}

/** Checks every request of the history. */
export function checkRegisters(history: History, findings: Findings): void {
  const requests = new Map<string, Request>();
  const operationsOf = new Map<string, Operation[]>();
  const mention = (requestId: string, conversationId: string, operation: Operation): void => {
    const request = entry(requests, requestId, () => ({
      requestId,
      conversationId,
      firstMention: operation.invokedAt,
      lastMention: 0,
    }));
    request.firstMention = Math.min(request.firstMention, operation.invokedAt);
    request.lastMention = Math.max(
      request.lastMention,
      Number.isFinite(operation.endedAt) ? operation.endedAt : operation.invokedAt,
    );
  };
  const sizes: { readonly conversationId: string; readonly at: number; readonly bytes: number }[] = [];
  const sized = new Set<string>();
  for (const operation of history.operations) {
    const conversations = new Set<string>();
    const { conversationId, requestId } = operation.params;
    if (typeof conversationId === "string") conversations.add(conversationId);
    for (const question of questionsOf(operation)) {
      mention(question.requestId, question.conversationId, operation);
      conversations.add(question.conversationId);
      if (!sized.has(question.requestId)) {
        sized.add(question.requestId);
        sizes.push({
          conversationId: question.conversationId,
          at: operation.endedAt,
          bytes: JSON.stringify(question).length,
        });
      }
    }
    if (typeof requestId === "string" && typeof conversationId === "string" && requests.has(requestId)) {
      mention(requestId, conversationId, operation);
    }
    if (operation.method === "request_user_input" && operation.outcome.kind !== "result") {
      sizes.push({ conversationId: String(conversationId), at: operation.invokedAt, bytes: 0 });
    }
    for (const id of conversations) entry(operationsOf, id, () => []).push(operation);
  }
  const sizesOf = new Map<string, { at: number; bytes: number }[]>();
  for (const { conversationId, ...size } of sizes) entry(sizesOf, conversationId, () => []).push(size);

  for (const request of requests.values()) {
    const others = sizesOf.get(request.conversationId) ?? [];
    const mayEvict = (at: number): boolean => {
      let count = 0;
      let bytes = 0;
      for (const size of others) {
        if (size.at > at) continue;
        count += 1;
        bytes += size.bytes;
      }
      return count > KEPT || bytes > KEPT_BYTES;
    };
    checkRequest(history, request, operationsOf.get(request.conversationId) ?? [], mayEvict, findings);
  }
}

type Moment =
  | { readonly at: number; readonly is: "invoke" | "end"; readonly step: Step }
  | { readonly at: number; readonly is: "start" };

function checkRequest(
  history: History,
  request: Request,
  operations: readonly Operation[],
  mayEvict: (at: number) => boolean,
  findings: Findings,
): void {
  const moments: Moment[] = history.starts.slice(1).map((at) => ({ at, is: "start" as const }));
  let wasAsked = false;
  for (const operation of operations) {
    if (operation.invokedAt > request.lastMention || operation.endedAt < request.firstMention) continue;
    const step = stepOf(operation, request.requestId);
    if (step === null) continue;
    if (operation.method === "request_user_input" && questionResultOf(operation)?.reason === undefined) wasAsked = true;
    moments.push({ at: operation.invokedAt, is: "invoke", step });
    const ended = operation.outcome.kind === "result";
    if (ended) moments.push({ at: operation.endedAt, is: "end", step });
  }
  moments.sort((one, other) => one.at - other.at);

  let active: Step[] = [];
  let configs = new Map<string, Config>();
  const initial: Config = { state: { is: "none" }, done: new Set() };
  configs.set(keyOf(initial), initial);

  for (const moment of moments) {
    switch (moment.is) {
      case "invoke":
        active.push(moment.step);
        break;
      case "start": {
        const reached = closure(configs, active, wasAsked, mayEvict(moment.at));
        configs = new Map();
        active = active.filter(({ operation }) => operation.invokedAt > moment.at);
        for (const { state } of reached.values()) {
          const config: Config = {
            state: state.is === "pending" ? { is: "cancelled", receipt: null } : state,
            done: new Set(),
          };
          configs.set(keyOf(config), config);
        }
        break;
      }
      case "end": {
        const { op } = moment.step.operation;
        const reached = closure(configs, active, wasAsked, mayEvict(moment.at));
        const before = configs;
        configs = new Map();
        active = active.filter((step) => step !== moment.step);
        for (const { state, done } of reached.values()) {
          if (!done.has(op)) continue;
          const left = new Set(done);
          left.delete(op);
          const config = { state, done: left };
          configs.set(keyOf(config), config);
        }
        if (configs.size === 0) {
          const states = [...before.values()].map(({ state }) => state);
          findings.add(
            kindOf(moment.step, states, history, moment.at),
            moment.at,
            `request ${request.requestId}: op ${op} (${moment.step.operation.method}) fits no order: the register is ${[
              ...new Set(states.map(canonical)),
            ].join(" or ")}`,
          );
          return;
        }
        break;
      }
      default:
        moment satisfies never;
    }
  }
}

function kindOf(step: Step, states: readonly State[], history: History, at: number): ViolationKind {
  const isTerminal = states.every(({ is }) => is === "submitted" || is === "cancelled");
  if (step.sees === "nothing" && isTerminal) return "acknowledged_lost";
  const wasRestarted = history.starts.slice(1).some((start) => start < at);
  const isUnbound = states.some((state) => state.is === "cancelled" && state.receipt === null);
  return step.sees === "pending" && wasRestarted && isUnbound ? "pending_after_start" : "not_linearizable";
}

/** Every state that what is under way can lead to from here. */
function closure(
  configs: ReadonlyMap<string, Config>,
  active: readonly Step[],
  wasAsked: boolean,
  mayEvict: boolean,
): ReadonlyMap<string, Config> {
  const reached = new Map<string, Config>();
  const waiting: Config[] = [];
  const visit = (config: Config): void => {
    const eager = readAll(config, active);
    const key = keyOf(eager);
    if (reached.has(key)) return;
    reached.set(key, eager);
    waiting.push(eager);
  };
  for (const config of configs.values()) visit(config);
  for (let config = waiting.pop(); config !== undefined; config = waiting.pop()) {
    const { state, done } = config;
    // What the service does by itself, and an ask of which nobody got the reply.
    if (state.is === "none" && !wasAsked) visit({ state: { is: "pending" }, done });
    if (state.is === "pending") visit({ state: { is: "cancelled", receipt: null }, done });
    if (mayEvict && (state.is === "submitted" || state.is === "cancelled")) visit({ state: { is: "gone" }, done });
    for (const { operation, takes } of active) {
      if (done.has(operation.op)) continue;
      for (const next of takes(state)) visit({ state: next, done: new Set([...done, operation.op]) });
    }
  }
  return reached;
}

/** What only reads may as well read now: that takes nothing from any later order. */
function readAll(config: Config, active: readonly Step[]): Config {
  const { state, done } = config;
  const reads = active.filter(
    ({ operation, takes }) => !done.has(operation.op) && takes(state).some((next) => next === state),
  );
  return reads.length === 0
    ? config
    : { state, done: new Set([...done, ...reads.map(({ operation }) => operation.op)]) };
}
