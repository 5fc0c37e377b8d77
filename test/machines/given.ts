import { BEGINNING, type ConversationContext, type CredentialStamp } from "../../machines/context.js";
import { type ConversationState, type Decision, decide, openConversation } from "../../machines/decide.js";
import type { Effect, Reply } from "../../machines/effects.js";
import type { AskFacts, Caller, ConversationEvent, QuestionFacts, RunFacts } from "../../machines/facts.js";
import { questionResult } from "../../machines/views.js";
import type { ConversationEvent as StoredEvent } from "../../protocol/events.js";
import type { ChoiceDraft, Question, QuestionDraft, QuestionResult } from "../../protocol/question.js";

/** The world of the machine's tests: a conversation, who calls, and what happens to it, with ids and time of its own. */

type Of<T extends ConversationEvent["type"]> = Extract<ConversationEvent, { type: T }>;

/** What happens next, made from where the conversation stands: current ids and revision unless the test says others. */
export type Move = (state: ConversationState) => ConversationEvent;

export const uuid = (n: number): string => `00000000-0000-4000-8000-${n.toString(16).padStart(12, "0")}`;

/** Seconds after the beginning of the test's day. */
export const time = (seconds: number): string => new Date(Date.UTC(2026, 0, 1) + seconds * 1000).toISOString();

export const CONVERSATION = "conversation-1";

// Who calls.

const stamp = (kind: CredentialStamp["kind"], id: string): CredentialStamp => ({ kind, id, generation: 1 });

export const operator: Caller = { stamp: stamp("operator", "operator"), standing: "good" };
export const device: Caller = { stamp: stamp("device", "device-1"), standing: "good" };
export const otherDevice: Caller = { stamp: stamp("device", "device-2"), standing: "good" };
export const readOnlyDevice: Caller = { stamp: stamp("device", "device-3"), standing: "read_only" };
export const captain: Caller = { stamp: stamp("captain", "captain"), standing: "good" };

/** The agent of a run: its token names the run and ends with it. */
export const agentOf = (runId: string): Caller => ({
  stamp: stamp("agent", `agent-of-${runId}`),
  standing: "good",
  conversationId: CONVERSATION,
  runId,
});

/** An attached agent outside a run, whose credential the operator issued. */
export const attachedAgent: Caller = {
  stamp: stamp("agent", "attached-1"),
  standing: "good",
  conversationId: CONVERSATION,
  issuedBy: operator.stamp,
};

// The conversation.

const workspaceContext: ConversationContext = {
  conversationId: CONVERSATION,
  title: "work",
  scope: { kind: "workspace", workspaceId: "/work" },
  binding: { path: "/work", device: "1", inode: "2" },
  runner: { kind: "command", command: ["agent"] },
  ...BEGINNING,
  serviceId: "service-1",
  incarnationId: uuid(1),
};

export const conversation = (part: Partial<ConversationContext> = {}): ConversationState =>
  openConversation({ ...workspaceContext, ...part });

export const after = (state: ConversationState, ...moves: readonly Move[]): ConversationState =>
  moves.reduce((each, move) => decide(each, move(each)).next, state);

export const taking = (state: ConversationState, move: Move): Decision => decide(state, move(state));

// What was decided.

export const replyIn = ({ effects }: Decision): Reply => {
  const replies = repliesIn(effects);
  if (replies.length !== 1 || replies[0] === undefined) throw new Error(`${replies.length} replies to one request`);
  return replies[0];
};

export const repliesIn = (effects: readonly Effect[]): readonly Reply[] =>
  effects.flatMap((effect) => (effect.type === "reply" ? [effect.reply] : []));

/** The document that the caller gets. */
export const resultIn = (decision: Decision): QuestionResult => {
  const reply = replyIn(decision);
  if (reply.kind !== "question") throw new Error(`the reply was ${JSON.stringify(reply)}`);
  return questionResult(decision.next, reply);
};

export const eventsIn = ({ effects }: Decision): readonly StoredEvent[] =>
  effects.flatMap((effect) => (effect.type === "event" ? [effect.event] : []));

export const startsIn = ({ effects }: Decision): readonly string[] =>
  effects.flatMap((effect) => {
    if (effect.type === "start") return [effect.run.runId];
    return effect.type === "reply" && effect.reply.kind === "claimed" ? [effect.reply.run.runId] : [];
  });

export const stopsIn = ({ effects }: Decision): readonly string[] =>
  effects.flatMap((effect) => (effect.type === "stop" ? [effect.runId] : []));

// The questions.

export const pendingIn = ({ context }: ConversationState): Question => {
  if (context.open === null) throw new Error("no question is pending");
  return context.open.question;
};

export const newestReceipt = ({ context }: ConversationState): Question => {
  const receipt = context.receipts.at(-1);
  if (receipt === undefined) throw new Error("no receipt is kept");
  return receipt;
};

/** The newest question, wherever it stands. */
const newestIn = (state: ConversationState): Question => state.context.open?.question ?? newestReceipt(state);

export const activeRunId = ({ context }: ConversationState): string => {
  if (context.active === null) throw new Error("no run is active");
  return context.active.runId;
};

export const choice: ChoiceDraft = {
  kind: "choice",
  prompt: "Tabs or spaces?",
  options: [{ label: "Tabs" }, { label: "Spaces", description: "two of them" }],
};
export const openChoice: ChoiceDraft = { ...choice, allowFreeform: true };
export const text: QuestionDraft = { kind: "text", prompt: "Which name?" };

export const held: QuestionFacts = { workspaceIsSame: true, owner: "good", asker: "good" };
export const askHeld: AskFacts = { ...held, turn: "good" };
const runHeld: RunFacts = { workspaceIsSame: true, starter: "good" };

/** Ids nobody else has: they are made from the version, which grows with every change. */
const freshRun = ({ context }: ConversationState): string => `run-${context.version}`;
const fresh = ({ context }: ConversationState, kind: number): string => uuid(kind * 0x1000000 + context.version * 16);

const clock = ({ context }: ConversationState): string => time(context.version);

// What happens.

export const send =
  (part: Partial<Of<"message.send">> = {}): Move =>
  (state) => ({
    type: "message.send",
    at: clock(state),
    caller: operator,
    text: "go on",
    runId: freshRun(state),
    workspaceIsSame: true,
    ...part,
  });

export const begin =
  (facts: Partial<RunFacts> = {}, runId?: string): Move =>
  (state) => ({
    type: "run.begin",
    at: clock(state),
    runId: runId ?? activeRunId(state),
    facts: { ...runHeld, ...facts },
  });

export const claim =
  (part: Partial<Of<"run.claim">> = {}): Move =>
  (state) => ({
    type: "run.claim",
    at: clock(state),
    caller: attachedAgent,
    runId: state.context.active?.runId ?? "run-none",
    facts: runHeld,
    ...part,
  });

export const settle =
  (part: Partial<Of<"run.settle">> = {}): Move =>
  (state) => ({
    type: "run.settle",
    at: clock(state),
    caller: agentOf(part.runId ?? state.context.active?.runId ?? "run-none"),
    runId: state.context.active?.runId ?? "run-none",
    state: "completed",
    ...part,
  });

export const reportOf =
  (part: Partial<Of<"run.report">> = {}): Move =>
  (state) => ({
    type: "run.report",
    at: clock(state),
    caller: agentOf(state.context.active?.runId ?? "run-none"),
    runId: state.context.active?.runId ?? "run-none",
    bodies: [{ type: "message", text: "working" }],
    ...part,
  });

export const cancelRun =
  (runId?: string): Move =>
  (state) => ({ type: "run.cancel", at: clock(state), runId: runId ?? activeRunId(state) });

export const ask =
  (draft: QuestionDraft = openChoice, part: Partial<Of<"question.ask">> = {}): Move =>
  (state) => ({
    type: "question.ask",
    at: clock(state),
    caller: state.context.active === null ? attachedAgent : agentOf(state.context.active.runId),
    draft,
    requestId: fresh(state, 2),
    optionIds: Array.from({ length: 8 }, (_, index) => uuid(0x3000000 + state.context.version * 16 + index)),
    facts: askHeld,
    ...part,
  });

export const read =
  (part: Partial<Of<"question.read">> = {}): Move =>
  (state) => ({ type: "question.read", at: clock(state), facts: held, ...part });

export const answer =
  (part: Partial<Of<"question.answer">> = {}): Move =>
  (state) => ({
    type: "question.answer",
    at: clock(state),
    caller: operator,
    incarnationId: state.context.incarnationId,
    requestId: part.requestId ?? newestIn(state).requestId,
    expectedRevision: state.context.revision,
    facts: held,
    answer: part.answer ?? firstOption(newestIn(state)),
    runId: freshRun(state),
    ...part,
  });

const firstOption = ({ options }: Question): Of<"question.answer">["answer"] =>
  options[0] === undefined ? { kind: "text", text: "Ada" } : { kind: "choice", optionId: options[0].optionId };

export const cancel =
  (part: Partial<Of<"question.cancel">> = {}): Move =>
  (state) => ({
    type: "question.cancel",
    at: clock(state),
    caller: operator,
    incarnationId: state.context.incarnationId,
    requestId: part.requestId ?? newestIn(state).requestId,
    expectedRevision: state.context.revision,
    facts: held,
    ...part,
  });

export const reset =
  (expectedRevision?: number): Move =>
  (state) => ({
    type: "conversation.reset",
    at: clock(state),
    expectedRevision: expectedRevision ?? state.context.revision,
    incarnationId: fresh(state, 4),
  });

export const nativeClaim =
  (harness = "terminal"): Move =>
  (state) => ({ type: "native.claim", at: clock(state), harness });

export const nativeRelease = (): Move => (state) => ({ type: "native.release", at: clock(state) });

export const revoke =
  (credential: Of<"credential.revoked">["credential"]): Move =>
  (state) => ({ type: "credential.revoked", at: clock(state), credential });

export const interrupted =
  (...runIds: readonly string[]): Move =>
  (state) => ({ type: "commit.interrupted", at: clock(state), runIds });

export const restarted =
  (serviceId = "service-2"): Move =>
  (state) => ({ type: "service.restarted", at: clock(state), serviceId });

export const stopping = (): Move => (state) => ({ type: "service.stopping", at: clock(state) });

// Where most tests begin.

/** A run of the operator's is on. */
export const running = (part: Partial<ConversationContext> = {}): ConversationState =>
  after(conversation(part), send(), begin());

/** It asked, and the question is pending. */
export const asked = (draft: QuestionDraft = openChoice): ConversationState => after(running(), ask(draft));

/** The operator has chosen the first option; the continuation waits for the run that asked. */
export const answered = (draft: QuestionDraft = openChoice): ConversationState => after(asked(draft), answer());

/** The operator has cancelled it. */
export const cancelled = (draft: QuestionDraft = openChoice): ConversationState => after(asked(draft), cancel());
