import type { Answer, Question, QuestionDraft } from "../../protocol/question.js";
import { BEGINNING, type ConversationContext, type CredentialStamp } from "../context.js";
import { type ConversationState, openConversation } from "../decide.js";
import type { AskFacts, Caller, ConversationEvent, QuestionFacts, RunFacts, Standing } from "../facts.js";

/**
 * A finite choice of things that happen to a conversation: enough to take every transition and to hear every reason.
 * The paths through the chart are made of these.
 */
export interface Move {
  /** Who does what, by its method or the service's own event, and under what circumstances. */
  readonly label: string;
  /** `null` where it cannot happen from there. */
  readonly from: (state: ConversationState) => ConversationEvent | null;
}

/** Where paths begin, and what happens there. */
export interface Beginning {
  readonly label: string;
  readonly state: ConversationState;
  readonly moves: readonly Move[];
}

// Ids and time that depend on nothing but where the conversation stands.

const uuid = (kind: number, n: number): string =>
  `00000000-0000-4000-8000-${(kind * 0x1000000 + n).toString(16).padStart(12, "0")}`;
const NOW = "2026-01-01T00:00:00.000Z";
const LATER = "2026-01-02T00:00:00.000Z";
const NOBODY = uuid(9, 9);

const CONTEXT: ConversationContext = {
  conversationId: "c",
  title: "c",
  scope: { kind: "workspace", workspaceId: "/w" },
  binding: { path: "/w", device: "1", inode: "1" },
  runner: { kind: "command", command: ["agent"] },
  ...BEGINNING,
  serviceId: "service-1",
  incarnationId: uuid(1, 0),
};

// Who calls.

const stamp = (kind: CredentialStamp["kind"], id: string): CredentialStamp => ({ kind, id, generation: 1 });
const caller = (kind: CredentialStamp["kind"], standing: Standing = "good"): Caller => ({
  stamp: stamp(kind, kind),
  standing,
});
const operator = caller("operator");
const agentOf = (runId: string): Caller => ({ ...caller("agent"), conversationId: "c", runId });
const attached = (issuer: CredentialStamp): Caller => ({ ...caller("agent"), conversationId: "c", issuedBy: issuer });

// Facts.

const held: QuestionFacts = { workspaceIsSame: true, owner: "good", asker: "good" };
const askHeld: AskFacts = { ...held, turn: "good" };
const runHeld: RunFacts = { workspaceIsSame: true, starter: "good" };

/** Ways in which a pending question's context is lost. */
const LOST: ReadonlyArray<readonly [why: string, facts: QuestionFacts, at: string]> = [
  ["the directory is another one by now", { ...held, workspaceIsSame: false }, NOW],
  ["the owner's credential was rotated", { ...held, owner: "rotated" }, NOW],
  ["past its expiry", held, LATER],
];

const draft: QuestionDraft = { kind: "choice", prompt: "?", options: [{ label: "a" }, { label: "b" }] };
const expiring: QuestionDraft = { ...draft, expiresInSeconds: 60 };
const otherDraft: QuestionDraft = { kind: "text", prompt: "?" };

// What the conversation knows.

const pending = ({ context }: ConversationState): Question | undefined => context.open?.question;
const newest = (state: ConversationState, status: Question["status"]): Question | undefined =>
  state.context.receipts.findLast((receipt) => receipt.status === status);

// The moves.

const send =
  (who: Caller, part: { readonly expectedRevision?: number; readonly workspaceIsSame?: boolean } = {}): Move["from"] =>
  ({ context }) => ({
    type: "message.send",
    at: NOW,
    caller: who,
    text: "m",
    runId: `r${context.eventSequence}`,
    workspaceIsSame: true,
    ...part,
  });

const begin =
  (facts: Partial<RunFacts> = {}): Move["from"] =>
  ({ context, value }) =>
    context.active === null || value.turn !== "accepted"
      ? null
      : { type: "run.begin", at: NOW, runId: context.active.runId, facts: { ...runHeld, ...facts } };

const claim =
  (who: (runId: string) => Caller, facts: Partial<RunFacts> = {}, runId?: string): Move["from"] =>
  ({ context }) => {
    const named = runId ?? context.active?.runId ?? "r-none";
    return { type: "run.claim", at: NOW, caller: who(named), runId: named, facts: { ...runHeld, ...facts } };
  };

const report =
  (who: (runId: string) => Caller, runId?: string): Move["from"] =>
  ({ context }) => {
    const named = runId ?? context.active?.runId ?? "r-none";
    const bodies = [{ type: "activity", phase: "thinking" }] as const;
    return { type: "run.report", at: NOW, caller: who(named), runId: named, bodies };
  };

const settle =
  (who: (runId: string) => Caller, runId?: string): Move["from"] =>
  ({ context }) => {
    const named = runId ?? context.active?.runId ?? "r-none";
    return { type: "run.settle", at: NOW, caller: who(named), runId: named, state: "completed" };
  };

const settleAlike: Move["from"] = ({ context }) => {
  const last = context.settled.findLast(({ state }) => state === "completed");
  return last === undefined
    ? null
    : { type: "run.settle", at: NOW, caller: agentOf(last.runId), runId: last.runId, state: "completed" };
};

const cancelRun =
  (which: (context: ConversationContext) => string | undefined): Move["from"] =>
  ({ context }) => {
    const runId = which(context);
    return runId === undefined ? null : { type: "run.cancel", at: NOW, runId };
  };

const asker = ({ context }: ConversationState): Caller =>
  context.active === null ? attached(operator.stamp) : agentOf(context.active.runId);

const ask =
  (
    what: QuestionDraft,
    facts: Partial<AskFacts> = {},
    who: (state: ConversationState) => Caller = asker,
  ): Move["from"] =>
  (state) => ({
    type: "question.ask",
    at: NOW,
    caller: who(state),
    draft: what,
    requestId: uuid(2, state.context.eventSequence),
    optionIds: [uuid(3, state.context.eventSequence * 2), uuid(3, state.context.eventSequence * 2 + 1)],
    facts: { ...askHeld, ...facts },
  });

const read =
  (which: (state: ConversationState) => string | undefined, facts = held, at = NOW): Move["from"] =>
  (state) => {
    const requestId = which(state);
    return requestId === undefined ? null : { type: "question.read", at, requestId, facts };
  };

interface Attempt {
  readonly caller?: Caller;
  readonly which?: (state: ConversationState) => Question | undefined;
  readonly requestId?: string;
  readonly incarnationId?: string;
  readonly revisionBehind?: number;
  readonly facts?: QuestionFacts;
  readonly at?: string;
  readonly answer?: (question: Question | undefined) => Answer;
}

const target = (state: ConversationState, attempt: Attempt) => {
  const question = (attempt.which ?? pending)(state);
  const requestId = attempt.requestId ?? question?.requestId;
  if (requestId === undefined) return null;
  return {
    question,
    part: {
      at: attempt.at ?? NOW,
      caller: attempt.caller ?? operator,
      requestId,
      incarnationId: attempt.incarnationId ?? state.context.incarnationId,
      expectedRevision: state.context.revision - (attempt.revisionBehind ?? 0),
      facts: attempt.facts ?? held,
    },
  };
};

const option =
  (index: number) =>
  (question: Question | undefined): Answer => ({
    kind: "choice",
    optionId: question?.options[index]?.optionId ?? NOBODY,
  });

const answer =
  (attempt: Attempt = {}): Move["from"] =>
  (state) => {
    const at = target(state, attempt);
    if (at === null) return null;
    const runId = `r${state.context.eventSequence}`;
    return { type: "question.answer", ...at.part, answer: (attempt.answer ?? option(0))(at.question), runId };
  };

const cancel =
  (attempt: Attempt = {}): Move["from"] =>
  (state) => {
    const at = target(state, attempt);
    return at === null ? null : { type: "question.cancel", ...at.part };
  };

const resolving = (method: string, resolve: (attempt?: Attempt) => Move["from"]): readonly Move[] => [
  { label: `operator: ${method}`, from: resolve() },
  { label: `captain: ${method}`, from: resolve({ caller: caller("captain"), requestId: NOBODY }) },
  {
    label: `read-only device: ${method}`,
    from: resolve({ caller: caller("device", "read_only"), requestId: NOBODY }),
  },
  { label: `revoked device: ${method}`, from: resolve({ caller: caller("device", "revoked"), requestId: NOBODY }) },
  {
    label: `operator with an expired token: ${method}`,
    from: resolve({ caller: caller("operator", "expired"), requestId: NOBODY }),
  },
  {
    label: `operator: ${method} of an earlier incarnation`,
    from: resolve({ incarnationId: NOBODY, requestId: NOBODY }),
  },
  { label: `operator: ${method} of a request nobody knows`, from: resolve({ requestId: NOBODY }) },
  { label: `operator: ${method} at an earlier revision`, from: resolve({ revisionBehind: 1 }) },
  {
    label: `operator: ${method} of a submitted question`,
    from: resolve({ which: (state) => newest(state, "submitted") }),
  },
  {
    label: `operator: ${method} of a cancelled question`,
    from: resolve({ which: (state) => newest(state, "cancelled") }),
  },
  ...LOST.map(([why, facts, at]) => ({ label: `operator: ${method}, ${why}`, from: resolve({ facts, at }) })),
];

const SEND: Move = { label: "operator: conversation_send", from: send(operator) };
const BEGIN: readonly Move[] = [
  { label: "service: run.begin", from: begin() },
  { label: "service: run.begin, the directory is another one by now", from: begin({ workspaceIsSame: false }) },
  { label: "service: run.begin, who started it was revoked", from: begin({ starter: "revoked" }) },
];
const SETTLE: Move = { label: "agent: run_settle", from: settle(agentOf) };
const ASK: Move = { label: "agent: request_user_input", from: ask(draft) };
const anotherRun = (): Caller => agentOf("r-other");

/** Of two ways that are as short, the one that stands first here is told. */
const EVERYTHING: readonly Move[] = [
  ...resolving("input_cancel", cancel),
  ...resolving("input_answer", answer),
  SEND,
  {
    label: "operator: conversation_send at another revision",
    from: (s) => send(operator, { expectedRevision: s.context.revision + 1 })(s),
  },
  {
    label: "operator: conversation_send, the directory is another one by now",
    from: send(operator, { workspaceIsSame: false }),
  },
  ...BEGIN,
  {
    label: "service: run.begin of a run that is not the active one",
    from: ({ value }) =>
      value.turn === "accepted" ? { type: "run.begin", at: NOW, runId: "r-none", facts: runHeld } : null,
  },
  { label: "agent: run_claim", from: claim(() => attached(operator.stamp)) },
  { label: "agent: run_event", from: report(agentOf) },
  { label: "agent of another run: run_event", from: report(anotherRun) },
  { label: "agent: run_event of a run that is not the active one", from: report(agentOf, "r-none") },
  SETTLE,
  { label: "agent: run_settle again alike", from: settleAlike },
  { label: "agent of another run: run_settle", from: settle(anotherRun) },
  { label: "agent: run_settle of a run that is not the active one", from: settle(agentOf, "r-none") },
  { label: "operator: run_cancel of the active run", from: cancelRun(({ active }) => active?.runId) },
  { label: "operator: run_cancel of a waiting run", from: cancelRun(({ waiting }) => waiting[0]?.runId) },
  { label: "operator: run_cancel of an ended run", from: cancelRun(({ settled }) => settled.at(-1)?.runId) },
  { label: "operator: run_cancel of a run nobody knows", from: cancelRun(() => "r-none") },
  ASK,
  { label: "agent: request_user_input with an expiry", from: ask(expiring) },
  { label: "agent: request_user_input with another draft", from: (s) => (pending(s) ? ask(otherDraft)(s) : null) },
  {
    label: "agent whose credential a captain issued: request_user_input",
    from: ask(draft, {}, () => attached(stamp("captain", "captain"))),
  },
  { label: "agent: request_user_input, its turn's credential was rotated", from: ask(draft, { turn: "rotated" }) },
  {
    label: "agent: request_user_input, the directory is another one by now",
    from: ask(draft, { workspaceIsSame: false }),
  },
  { label: "anyone: input_get", from: ({ value: _ }) => ({ type: "question.read", at: NOW, facts: held }) },
  { label: "anyone: input_get of a receipt", from: read((s) => s.context.receipts.at(-1)?.requestId) },
  { label: "anyone: input_get of a request nobody knows", from: read(() => NOBODY) },
  ...LOST.map(([why, facts, at]) => ({
    label: `anyone: input_get, ${why}`,
    from: read((s) => pending(s)?.requestId, facts, at),
  })),
  {
    label: "operator: input_answer of a submitted question with another answer",
    from: answer({ which: (state) => newest(state, "submitted"), answer: option(1) }),
  },
  { label: "operator: input_answer with an option it does not have", from: answer({ answer: option(7) }) },
  { label: "operator: input_answer with text", from: answer({ answer: () => ({ kind: "text", text: "t" }) }) },
  {
    label: "operator: credential_revoke of what the asking turn was started under",
    from: ({ context }) =>
      context.open === null ? null : { type: "credential.revoked", at: NOW, credential: context.open.owner },
  },
  {
    label: "operator: device_revoke of another device",
    from: () => ({ type: "credential.revoked", at: NOW, credential: { kind: "device", id: "other" } }),
  },
  { label: "operator: conversation_reset", from: reset(0) },
  { label: "operator: conversation_reset at another revision", from: reset(1) },
  { label: "operator: native_claim", from: () => ({ type: "native.claim", at: NOW, harness: "terminal" }) },
  {
    label: "operator: native_claim for another harness",
    from: ({ value }) => (value.driver === "native" ? { type: "native.claim", at: NOW, harness: "other" } : null),
  },
  { label: "operator: native_release", from: () => ({ type: "native.release", at: NOW }) },
  {
    label: "service: the commit with the active run was of unknown outcome and found durable",
    from: interrupted(({ active }) => active?.runId),
  },
  {
    label: "service: the commit with a waiting run was of unknown outcome and found durable",
    from: interrupted(({ waiting }) => waiting.at(-1)?.runId),
  },
  { label: "service: started again", from: () => ({ type: "service.restarted", at: NOW, serviceId: "service-2" }) },
  { label: "service: stopping", from: () => ({ type: "service.stopping", at: NOW }) },
];

function reset(ahead: number): Move["from"] {
  return ({ context }) => ({
    type: "conversation.reset",
    at: NOW,
    expectedRevision: context.revision + ahead,
    incarnationId: uuid(1, context.revision + 1),
  });
}

function interrupted(which: (context: ConversationContext) => string | undefined): Move["from"] {
  return ({ context }) => {
    const runId = which(context);
    return runId === undefined ? null : { type: "commit.interrupted", at: NOW, runIds: [runId] };
  };
}

/** What an attached agent may do with runs; the rest is as with a command. */
const CLAIMING: readonly Move[] = [
  SEND,
  { label: "agent: run_claim", from: claim(() => attached(operator.stamp)) },
  { label: "agent of another run: run_claim", from: claim(anotherRun) },
  { label: "agent: run_claim of a run that is not the active one", from: claim(agentOf, {}, "r-none") },
  {
    label: "agent: run_claim, the directory is another one by now",
    from: claim(() => attached(operator.stamp), { workspaceIsSame: false }),
  },
  SETTLE,
];

const LOOKING: readonly Move[] = [SEND, ...BEGIN, ASK];

/** Longest first in what happens there; the first that reaches something tells the way. */
export const BEGINNINGS: readonly Beginning[] = [
  { label: "a workspace conversation", state: openConversation(CONTEXT), moves: EVERYTHING },
  {
    label: "a workspace conversation with an attached agent",
    state: openConversation({ ...CONTEXT, runner: { kind: "attached" } }),
    moves: CLAIMING,
  },
  {
    label: "a conversation without a workspace",
    state: openConversation({ ...CONTEXT, scope: { kind: "global" }, binding: null }),
    moves: LOOKING,
  },
];
