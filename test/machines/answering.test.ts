import { suite } from "uvu";
import * as assert from "uvu/assert";
import { decide } from "../../machines/decide.js";
import type { Caller, QuestionFacts, Standing } from "../../machines/facts.js";
import { snapshotOf } from "../../machines/views.js";
import { checkResult } from "../../protocol/results.js";
import {
  after,
  agentOf,
  answer,
  answered,
  ask,
  asked,
  attachedAgent,
  cancel,
  cancelled,
  captain,
  choice,
  device,
  eventsIn,
  held,
  newestReceipt,
  operator,
  otherDevice,
  pendingIn,
  readOnlyDevice,
  replyIn,
  reset,
  resultIn,
  send,
  settle,
  startsIn,
  taking,
  text,
  time,
  uuid,
} from "./given.js";

const test = suite("answering and cancelling");

const refusedCallers: ReadonlyArray<readonly [who: string, caller: Caller, reason: string]> = [
  ["a captain", captain, "not_permitted"],
  ["the agent of the run", agentOf("run-0"), "not_permitted"],
  ["an attached agent", attachedAgent, "not_permitted"],
  ["a read-only device", readOnlyDevice, "device_read_only"],
  ["a revoked device", { ...device, standing: "revoked" }, "device_revoked"],
  ["an expired device", { ...device, standing: "expired" }, "credential_expired"],
  ["an expired operator token", { ...operator, standing: "expired" }, "credential_expired"],
  ["a rotated operator token", { ...operator, standing: "rotated" }, "not_permitted"],
  ["a rotated device token", { ...device, standing: "rotated" }, "not_permitted"],
  ["a captain whose token expired", { ...captain, standing: "expired" }, "not_permitted"],
];

for (const [who, caller, reason] of refusedCallers) {
  for (const [what, move] of [
    ["answering", answer],
    ["cancelling", cancel],
  ] as const) {
    test(`[6.1] ${who} is refused ${what} with ${reason}, and sees no question`, () => {
      const decision = taking(asked(), move({ caller }));
      const result = resultIn(decision);
      assert.is(result.status, "refused");
      assert.is(result.reason, reason);
      assert.is(result.question, undefined);
      assert.not(decision.changed);
    });
  }
}

for (const [who, caller] of [
  ["the operator", operator],
  ["an active device that asked for nothing", otherDevice],
] as const) {
  test(`[6.1, 2] ${who} may answer and may cancel`, () => {
    assert.is(resultIn(taking(asked(), answer({ caller }))).status, "resolved");
    assert.is(resultIn(taking(asked(), cancel({ caller }))).status, "resolved");
  });
}

for (const [what, move] of [
  ["answer", answer],
  ["cancellation", cancel],
] as const) {
  test(`[6.2] the ${what} of an earlier incarnation is stale_request and shows no question`, () => {
    const before = asked();
    const { incarnationId } = before.context;
    const decision = taking(after(before, reset()), move({ incarnationId }));
    assert.is(resultIn(decision).reason, "stale_request");
    assert.is(resultIn(decision).question, undefined);
    assert.not(decision.changed);
  });

  test(`[6.3] the ${what} of a request that nobody knows is unknown_request and starts nothing`, () => {
    for (const state of [after(asked(), settle()), answered(), cancelled()]) {
      const decision = taking(state, move({ requestId: uuid(99) }));
      assert.is(resultIn(decision).reason, "unknown_request");
      assert.is(resultIn(decision).question, undefined);
      assert.equal(
        decision.effects.map(({ type }) => type),
        ["reply"],
      );
      assert.not(decision.changed);
    }
  });
}

test("[6.4] a repeated answer returns the stored receipt after the revision moved", () => {
  const first = taking(asked(), answer());
  const moved = after(first.next, send(), send());
  const again = taking(moved, answer({ expectedRevision: 0, caller: device, runId: "run-other" }));
  assert.is(resultIn(again).status, "resolved");
  assert.equal(resultIn(again).question, resultIn(first).question);
  assert.not(again.changed);
});

test("[6.4] the same text after trimming is the same answer, and is stored trimmed", () => {
  const first = taking(asked(text), answer({ answer: { kind: "text", text: "  Ada \n" } }));
  assert.equal(resultIn(first).question?.answer, { kind: "text", text: "Ada" });
  const again = taking(first.next, answer({ answer: { kind: "text", text: "Ada" } }));
  assert.equal(resultIn(again).question, resultIn(first).question);
  const padded = taking(first.next, answer({ answer: { kind: "text", text: "\tAda  " } }));
  assert.is(resultIn(padded).status, "resolved");
});

test("[6.4] another answer is answer_conflict with the stored receipt", () => {
  const state = answered();
  const receipt = newestReceipt(state);
  const others = [
    { kind: "choice", optionId: receipt.options[1]?.optionId ?? "" },
    { kind: "choice", optionId: uuid(77) },
    { kind: "text", text: "Tabs" },
  ] as const;
  for (const other of others) {
    const decision = taking(state, answer({ answer: other }));
    assert.is(resultIn(decision).status, "refused");
    assert.is(resultIn(decision).reason, "answer_conflict");
    assert.equal(resultIn(decision).question, receipt);
    assert.not(decision.changed);
  }
});

test("[6.4] a repeated answer shows how its continuation ended", () => {
  const state = after(answered(), settle());
  const { runId } = newestReceipt(state).continuation ?? {};
  const ended = after(state, (s) => ({ type: "run.cancel", at: time(99), runId: runId ?? String(s.context.version) }));
  const result = resultIn(taking(ended, answer()));
  assert.equal(result.question?.continuation, { runId, state: "cancelled", reasonCode: "run_cancelled" });
});

test("[6.4] a repeated answer is the stored receipt even where the context is lost, and while another question waits", () => {
  const state = after(answered(), ask(choice));
  const first = newestReceipt(state);
  const lost: QuestionFacts = { workspaceIsSame: false, owner: "revoked", asker: "revoked" };
  const decision = taking(state, answer({ requestId: first.requestId, facts: lost, answer: first.answer! }));
  assert.equal(resultIn(decision).question, first);
  assert.is(decision.next.context.open?.question.status, "pending");
});

test("[6.5] an answer to a cancelled question is question_cancelled with its receipt", () => {
  const state = cancelled();
  const decision = taking(state, answer());
  assert.is(resultIn(decision).reason, "question_cancelled");
  assert.equal(resultIn(decision).question, newestReceipt(state));
  assert.not(decision.changed);
});

const lostContexts: ReadonlyArray<readonly [why: string, facts: Partial<QuestionFacts>, reason: string]> = [
  ["the directory is another one", { workspaceIsSame: false }, "workspace_replaced"],
  ["the owner's credential is revoked", { owner: "revoked" }, "owner_revoked"],
  ["the asking agent's credential is revoked", { asker: "revoked" }, "owner_revoked"],
  ["the owner's credential is rotated", { owner: "rotated" }, "owner_context_lost"],
  ["the owner's credential is expired", { owner: "expired" }, "owner_context_lost"],
];

for (const [why, facts, reason] of lostContexts) {
  test(`[6.6] where ${why} an answer cancels the question with ${reason} and is refused with that receipt`, () => {
    const state = asked();
    const decision = taking(state, answer({ facts: { ...held, ...facts } }));
    const result = resultIn(decision);
    assert.is(result.status, "refused");
    assert.is(result.reason, "question_cancelled");
    assert.is(result.question?.status, "cancelled");
    assert.is(result.question?.reason, reason);
    assert.equal(result.question?.resolvedBy, { kind: "service", id: "service-1" });
    assert.is(decision.next.value.question, "cancelled");
    assert.is(decision.next.context.open, null);
    assert.is(decision.next.context.revision, state.context.revision + 1);
    assert.equal(
      eventsIn(decision).map(({ type }) => type),
      ["input_resolved"],
    );
    assert.equal(startsIn(decision), []);
    assert.is(decision.next.context.waiting.length, 0);
  });
}

test("[6.6] an owner's device that may only read by now still holds the context", () => {
  assert.is(resultIn(taking(asked(), answer({ facts: { ...held, owner: "read_only" } }))).status, "resolved");
});

test("[6.7] an answer at another revision is revision_conflict with the current revision and question", () => {
  const state = after(asked(), send());
  for (const move of [answer, cancel]) {
    for (const expectedRevision of [state.context.revision - 1, state.context.revision + 1, 0]) {
      const decision = taking(state, move({ expectedRevision }));
      const result = resultIn(decision);
      assert.is(result.status, "revision_conflict");
      assert.is(result.revision, state.context.revision);
      assert.equal(result.question, pendingIn(state));
      assert.is(result.reason, undefined);
      assert.not(decision.changed);
    }
  }
});

test("[6.8] an option of no question is unknown_option and consumes nothing", () => {
  const state = asked();
  const decision = taking(state, answer({ answer: { kind: "choice", optionId: uuid(5) } }));
  assert.is(resultIn(decision).reason, "unknown_option");
  assert.equal(resultIn(decision).question, pendingIn(state));
  assert.not(decision.changed);
  assert.is(resultIn(taking(decision.next, answer())).status, "resolved");
});

test("[6.8] text where only options are allowed is text_not_allowed and consumes nothing", () => {
  const state = asked(choice);
  const decision = taking(state, answer({ answer: { kind: "text", text: "yes" } }));
  assert.is(resultIn(decision).reason, "text_not_allowed");
  assert.not(decision.changed);
  assert.is(resultIn(taking(decision.next, answer())).status, "resolved");
});

test("[6.8] a text question takes text and knows no option", () => {
  const state = asked(text);
  assert.is(pendingIn(state).allowFreeform, true);
  assert.is(
    resultIn(taking(state, answer({ answer: { kind: "choice", optionId: uuid(5) } }))).reason,
    "unknown_option",
  );
  assert.is(resultIn(taking(state, answer({ answer: { kind: "text", text: "Ada" } }))).status, "resolved");
});

test("[6.9] one decision stores answer, responder, time and run, writes both events and raises the revision by one", () => {
  const state = asked();
  const decision = taking(state, answer({ caller: device, at: time(500), runId: "run-next" }));
  const { question, ...result } = resultIn(decision);
  assert.is(result.status, "resolved");
  assert.equal(question?.answer, { kind: "choice", optionId: pendingIn(state).options[0]?.optionId });
  assert.equal(question?.resolvedBy, { kind: "device", id: "device-1" });
  assert.is(question?.resolvedAt, time(500));
  assert.equal(question?.continuation, { runId: "run-next", state: "accepted" });
  assert.is(result.revision, state.context.revision + 1);
  assert.equal(
    eventsIn(decision).map(({ cursor, occurredAt, conversationId, schemaVersion, ...body }) => body),
    [
      { revision: result.revision, type: "input_resolved", requestId: question?.requestId, outcome: "submitted" },
      { revision: result.revision, type: "turn", runId: "run-next", phase: "accepted" },
    ],
  );
  assert.is(result.safeCursor, eventsIn(decision).at(-1)?.cursor);
  assert.is(decision.next.context.version, state.context.version + 1);
  assert.is(decision.next.value.question, "submitted");
  assert.equal(Object.keys(snapshotOf(decision.next).receipts), [question?.requestId]);
  assert.is(snapshotOf(decision.next).question, null);
});

test("[6.9] the reply is the only thing said to the caller, and the continuation is not started by the answer", () => {
  const whileRunning = taking(asked(), answer());
  assert.is(replyIn(whileRunning).kind, "question");
  assert.equal(startsIn(whileRunning), []);
  const whileIdle = taking(after(asked(), settle()), answer());
  assert.equal(startsIn(whileIdle), []);
  assert.equal(
    whileIdle.effects.flatMap((effect) => (effect.type === "recheck" ? [effect.runId] : [])),
    [newestReceipt(whileIdle.next).continuation?.runId],
  );
});

test("[7 cancelled_by_owner] an owner's cancellation stores who and when, and raises the revision by one", () => {
  const state = asked();
  const decision = taking(state, cancel({ caller: device, at: time(500) }));
  const result = resultIn(decision);
  assert.is(result.status, "resolved");
  assert.is(result.question?.status, "cancelled");
  assert.is(result.question?.reason, "cancelled_by_owner");
  assert.equal(result.question?.resolvedBy, { kind: "device", id: "device-1" });
  assert.is(result.question?.resolvedAt, time(500));
  assert.is(result.question?.continuation, undefined);
  assert.is(result.revision, state.context.revision + 1);
  assert.equal(
    eventsIn(decision).map((event) => (event.type === "input_resolved" ? event.outcome : event.type)),
    ["cancelled"],
  );
});

test("[6.5, 7 cancelled_by_owner] a repeated cancellation returns the stored cancelled receipt as resolved", () => {
  const state = after(cancelled(), send());
  const decision = taking(state, cancel({ expectedRevision: 0, caller: device }));
  assert.is(resultIn(decision).status, "resolved");
  assert.equal(resultIn(decision).question, newestReceipt(state));
  assert.not(decision.changed);
});

test("[6.5] cancelling what something else cancelled returns that receipt as resolved", () => {
  const state = after(asked(), answer({ facts: { ...held, workspaceIsSame: false } }));
  const result = resultIn(taking(state, cancel()));
  assert.is(result.status, "resolved");
  assert.is(result.question?.reason, "workspace_replaced");
});

test("[6.4] cancelling a submitted question is already_submitted with the receipt", () => {
  const state = answered();
  const decision = taking(state, cancel());
  assert.is(resultIn(decision).status, "refused");
  assert.is(resultIn(decision).reason, "already_submitted");
  assert.equal(resultIn(decision).question, newestReceipt(state));
  assert.not(decision.changed);
});

test("[4] every result of answering and cancelling is a strict QuestionResult", () => {
  const states = [asked(), asked(choice), asked(text), answered(), cancelled(), after(asked(), reset())];
  for (const state of states) {
    const moves = [
      answer(),
      answer({ caller: captain }),
      answer({ requestId: uuid(9) }),
      answer({ expectedRevision: 0 }),
      answer({ facts: { ...held, workspaceIsSame: false } }),
    ];
    for (const move of moves) {
      const checked = checkResult("input_answer", resultIn(taking(state, move)));
      assert.ok(checked.ok, JSON.stringify(checked));
    }
    const checked = checkResult("input_cancel", resultIn(decide(state, cancel()(state))));
    assert.ok(checked.ok, JSON.stringify(checked));
  }
});

test("[6.9] standing is looked at on this very call: the device that answered cannot repeat once it is revoked", () => {
  const state = after(asked(), answer({ caller: device }));
  const standings: readonly Standing[] = ["good", "revoked", "expired", "rotated", "read_only"];
  const replies = standings.map((standing) => resultIn(taking(state, answer({ caller: { ...device, standing } }))));
  assert.equal(
    replies.map(({ reason }) => reason),
    [undefined, "device_revoked", "credential_expired", "not_permitted", "device_read_only"],
  );
});

test.run();
