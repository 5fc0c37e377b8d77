import { suite } from "uvu";
import * as assert from "uvu/assert";
import type { QuestionDraft } from "../../protocol/question.js";
import { checkEvent, checkResult } from "../../protocol/results.js";
import {
  after,
  agentOf,
  answer,
  ask,
  asked,
  askHeld,
  attachedAgent,
  begin,
  cancelled,
  captain,
  choice,
  conversation,
  device,
  eventsIn,
  nativeClaim,
  operator,
  pendingIn,
  replyIn,
  resultIn,
  running,
  send,
  settle,
  taking,
  text,
  time,
} from "./given.js";

const test = suite("asking");

test("[5] asking returns the pending request at once, bound to incarnation, workspace and run", () => {
  const state = running();
  const decision = taking(state, ask(choice, { at: time(7) }));
  const { question, status, revision } = resultIn(decision);
  assert.is(status, "ready");
  assert.is(revision, state.context.revision + 1);
  assert.is(question?.status, "pending");
  assert.is(question?.incarnationId, state.context.incarnationId);
  assert.is(question?.workspace, "/work");
  assert.is(question?.purpose, "preference");
  assert.is(question?.originRunId, state.context.active?.runId);
  assert.is(question?.createdAt, time(7));
  assert.is(question?.expiresAt, undefined);
  assert.is(question?.allowFreeform, false);
  assert.is(new Set(question?.options.map(({ optionId }) => optionId)).size, 2);
  assert.ok(checkResult("request_user_input", resultIn(decision)).ok);
});

test("[4] the event of a question has exactly the fields of older clients", () => {
  for (const draft of [choice, text]) {
    const [event, ...rest] = eventsIn(taking(running(), ask(draft)));
    assert.is(rest.length, 0);
    assert.ok(checkEvent(event).ok);
    assert.equal(Object.keys(event ?? {}).sort(), [
      "conversationId",
      "cursor",
      "inputKind",
      "occurredAt",
      "options",
      "prompt",
      "requestId",
      "revision",
      "schemaVersion",
      "type",
    ]);
  }
});

test("[5] an attached agent outside a run asks in its session's name", () => {
  const decision = taking(conversation(), ask(text, { caller: attachedAgent }));
  assert.is(resultIn(decision).question?.originRunId, "session:attached-1");
});

test("[5] the operator may ask in person", () => {
  assert.is(resultIn(taking(conversation(), ask(text, { caller: operator }))).status, "ready");
});

for (const [what, state, caller, reason] of [
  [
    "a conversation without a workspace",
    conversation({ scope: { kind: "global" }, binding: null }),
    operator,
    "not_workspace",
  ],
  ["a native seat", after(conversation(), nativeClaim()), operator, "native_driver"],
  ["a run a captain started", after(conversation(), send({ caller: captain }), begin()), undefined, "no_owner_turn"],
  ["the token of another run", running(), agentOf("run-of-yesterday"), "no_owner_turn"],
  [
    "an attached agent whose credential a captain issued",
    conversation(),
    { ...attachedAgent, issuedBy: captain.stamp },
    "no_owner_turn",
  ],
] as const) {
  test(`[5] asking in ${what} is ineligible_conversation with ${reason}`, () => {
    const decision = taking(state, ask(choice, caller && { caller }));
    assert.equal(replyIn(decision), { kind: "fault", code: "ineligible_conversation", reason });
    assert.not(decision.changed);
  });
}

for (const [what, facts, reason] of [
  ["the turn's credential was rotated", { turn: "rotated" }, "owner_context_lost"],
  ["the turn's credential was revoked", { turn: "revoked" }, "owner_context_lost"],
  ["the directory is another one", { workspaceIsSame: false }, "workspace_replaced"],
] as const) {
  test(`[5] asking where ${what} is ineligible_conversation with ${reason}`, () => {
    const decision = taking(running(), ask(choice, { facts: { ...askHeld, ...facts } }));
    assert.equal(replyIn(decision), { kind: "fault", code: "ineligible_conversation", reason });
    assert.not(decision.changed);
  });
}

const same: readonly QuestionDraft[] = [
  choice,
  { ...choice, prompt: "  Tabs or spaces?\n" },
  { ...choice, allowFreeform: false },
  {
    ...choice,
    options: [
      { label: " Tabs", description: " " },
      { label: "Spaces", description: "two of them " },
    ],
  },
];

same.forEach((draft, index) => {
  test(`[7] asking again with the same draft returns the pending question, however it is written (${index})`, () => {
    const state = asked(choice);
    const decision = taking(state, ask(draft));
    const result = resultIn(decision);
    assert.is(result.status, "ready");
    assert.is(result.reason, "already_pending");
    assert.equal(result.question, pendingIn(state));
    assert.not(decision.changed);
  });
});

const different: readonly QuestionDraft[] = [
  text,
  { ...choice, prompt: "Spaces or tabs?" },
  { ...choice, allowFreeform: true },
  { ...choice, expiresInSeconds: 60 },
  { ...choice, options: [{ label: "Spaces", description: "two of them" }, { label: "Tabs" }] },
  { ...choice, options: [{ label: "Tabs" }, { label: "Spaces" }] },
];

different.forEach((draft, index) => {
  test(`[7] another draft while one is pending is question_pending with its id, and replaces nothing (${index})`, () => {
    const state = asked(choice);
    const decision = taking(state, ask(draft));
    assert.equal(replyIn(decision), {
      kind: "fault",
      code: "question_pending",
      requestId: pendingIn(state).requestId,
    });
    assert.not(decision.changed);
  });
});

test("[7] a turn that is no owner's neither sees nor cancels the pending question", () => {
  const state = after(asked(), settle(), send({ caller: captain }), begin());
  const decision = taking(state, ask(choice, { facts: { ...askHeld, workspaceIsSame: false } }));
  assert.equal(replyIn(decision), { kind: "fault", code: "ineligible_conversation", reason: "no_owner_turn" });
  assert.not(decision.changed);
});

test("[7] a turn whose own credential is gone is refused while the question of another owner stays", () => {
  const state = after(asked(), settle(), send({ caller: device }), begin());
  const decision = taking(state, ask(choice, { facts: { ...askHeld, turn: "revoked" } }));
  assert.equal(replyIn(decision), { kind: "fault", code: "ineligible_conversation", reason: "owner_context_lost" });
  assert.is(decision.next.value.question, "pending");
});

test("[3] there is at most one pending question, and after it is resolved the next may be asked", () => {
  for (const state of [after(asked(), answer()), cancelled()]) {
    const decision = taking(state, ask(text));
    assert.is(resultIn(decision).status, "ready");
    assert.is(decision.next.value.question, "pending");
  }
});

test.run();
