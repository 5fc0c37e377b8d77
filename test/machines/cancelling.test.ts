import { suite } from "uvu";
import * as assert from "uvu/assert";
import type { Decision } from "../../machines/decide.js";
import type { Question } from "../../protocol/question.js";
import {
  activeRunId,
  after,
  answer,
  answered,
  ask,
  asked,
  attachedAgent,
  begin,
  cancelRun,
  choice,
  conversation,
  device,
  eventsIn,
  held,
  nativeClaim,
  nativeRelease,
  newestReceipt,
  openChoice,
  operator,
  otherDevice,
  pendingIn,
  read,
  replyIn,
  reset,
  restarted,
  resultIn,
  revoke,
  running,
  send,
  settle,
  startsIn,
  stopping,
  stopsIn,
  taking,
  time,
  uuid,
} from "./given.js";

const test = suite("why a question is cancelled");

/** The question was cancelled by the service itself, in one event, and no run was started over it. */
function cancelledBy(decision: Decision, reason: Question["reason"], service = "service-1"): Question {
  const receipt = newestReceipt(decision.next);
  assert.is(decision.next.context.open, null);
  assert.is(decision.next.value.question, "cancelled");
  assert.is(receipt.status, "cancelled");
  assert.is(receipt.reason, reason);
  assert.equal(receipt.resolvedBy, { kind: "service", id: service });
  assert.is(receipt.answer, undefined);
  const resolved = eventsIn(decision).filter(({ type }) => type === "input_resolved");
  assert.equal(
    resolved.map((event) => event.type === "input_resolved" && event.outcome),
    ["cancelled"],
  );
  assert.equal(startsIn(decision), []);
  return receipt;
}

test("[7 conversation_reset] a reset cancels the question, rotates the incarnation and ends the runs", () => {
  const state = after(asked(), send());
  const active = activeRunId(state);
  const decision = taking(state, reset());
  const receipt = cancelledBy(decision, "conversation_reset");
  assert.is(receipt.incarnationId, state.context.incarnationId);
  assert.is.not(decision.next.context.incarnationId, state.context.incarnationId);
  assert.equal(replyIn(decision), { kind: "conversation" });
  assert.equal(stopsIn(decision), [active]);
  assert.equal(
    eventsIn(decision).flatMap((e) => (e.type === "turn" ? [[e.runId === active, e.phase, e.reasonCode]] : [])),
    [
      [true, "cancelled", "conversation_reset"],
      [false, "failed", "context_lost"],
    ],
  );
  assert.is(decision.next.value.turn, "idle");
});

test("[7 conversation_reset] a reset at another revision conflicts and changes nothing, in any region", () => {
  const state = after(asked(), send());
  const decision = taking(state, reset(state.context.revision - 1));
  assert.equal(replyIn(decision), { kind: "conflict" });
  assert.not(decision.changed);
  assert.equal(decision.effects.length, 1);
});

test("[7 native_takeover] a native claim cancels the question and the accepted continuation never starts", () => {
  const state = asked();
  const decision = taking(state, nativeClaim());
  cancelledBy(decision, "native_takeover");
  assert.equal(decision.next.value.driver, "native");
  assert.equal(replyIn(decision), { kind: "conversation" });

  const taken = taking(answered(), nativeClaim());
  const receipt = newestReceipt(taken.next);
  assert.is(receipt.status, "submitted");
  assert.is(receipt.continuation?.state, "failed");
  assert.is(receipt.continuation?.reasonCode, "context_lost");
  const runId = receipt.continuation?.runId ?? "";
  assert.equal(startsIn(taking(taken.next, begin({}, runId))), []);
});

test("[7 native_takeover] the run that is active is cancelled and stopped; a release begins afresh", () => {
  const state = asked();
  const active = activeRunId(state);
  const taken = taking(state, nativeClaim());
  assert.equal(stopsIn(taken), [active]);
  const released = after(taken.next, nativeRelease());
  assert.is(released.value.turn, "idle");
  assert.is(released.context.waiting.length, 0);
  const next = taking(after(released, send()), begin());
  assert.is(startsIn(next).length, 1);
  assert.is.not(startsIn(next)[0], active);
});

test("[7 native_takeover] claiming again with the same harness changes nothing, with another one the revision grows", () => {
  const taken = after(conversation(), nativeClaim("terminal"));
  assert.not(taking(taken, nativeClaim("terminal")).changed);
  const other = taking(taken, nativeClaim("editor"));
  assert.is(other.next.context.harness, "editor");
  assert.is(other.next.context.revision, taken.context.revision + 1);
});

const own = pendingIn(asked());

for (const [what, state, credential] of [
  ["the operator token that started the asking turn", asked(), operator.stamp],
  [
    "the device that started the asking turn",
    after(conversation(), send({ caller: device }), begin(), ask()),
    device.stamp,
  ],
  [
    "the asking agent's own credential",
    after(conversation(), ask(choice, { caller: attachedAgent })),
    attachedAgent.stamp,
  ],
  [
    "the issuer of the asking agent's credential",
    after(conversation(), ask(choice, { caller: attachedAgent })),
    operator.stamp,
  ],
] as const) {
  test(`[7 owner_revoked] revoking ${what} cancels at once`, () => {
    const decision = taking(state, revoke({ kind: credential.kind, id: credential.id }));
    cancelledBy(decision, "owner_revoked");
    assert.is(decision.next.context.revision, state.context.revision + 1);
  });
}

test("[7 owner_revoked] revoking somebody else's credential leaves the question pending", () => {
  const decision = taking(asked(), revoke({ kind: "device", id: otherDevice.stamp.id }));
  assert.not(decision.changed);
  assert.not(taking(asked(), revoke({ kind: "device", id: operator.stamp.id })).changed);
});

test("[7 run_cancelled] cancelling the run that asked cancels its question, stops it and frees the turn", () => {
  const state = asked();
  const decision = taking(state, cancelRun());
  cancelledBy(decision, "run_cancelled");
  assert.equal(stopsIn(decision), [own.originRunId]);
  assert.is(decision.next.value.turn, "idle");
  assert.equal(replyIn(decision), { kind: "done" });
});

test("[7 run_cancelled] cancelling another run leaves the question pending", () => {
  const waiting = after(asked(), send());
  const decision = taking(waiting, cancelRun(waiting.context.waiting[0]?.runId));
  assert.is(decision.next.value.question, "pending");
  assert.is(decision.next.value.turn, "running");

  const later = after(asked(), settle(), send(), begin());
  assert.is(taking(later, cancelRun()).next.value.question, "pending");
});

test("[7 service_restarted] a start cancels what was pending and takes the conversation over", () => {
  const decision = taking(asked(), restarted("service-2"));
  cancelledBy(decision, "service_restarted", "service-2");
  assert.is(decision.next.context.serviceId, "service-2");
});

const uses = [
  ["input_get", read()],
  ["input_get by its id", (s: ReturnType<typeof asked>) => read({ requestId: pendingIn(s).requestId })(s)],
] as const;

for (const [why, facts, reason] of [
  ["rotated", { owner: "rotated" }, "owner_context_lost"],
  ["expired", { owner: "expired" }, "owner_context_lost"],
  ["of a replaced directory", { workspaceIsSame: false }, "workspace_replaced"],
] as const) {
  for (const [what, move] of uses) {
    test(`[7 ${reason}] ${what} finds the context ${why}: cancelled, and shown as resolved`, () => {
      const state = asked();
      const decision = taking(state, (s) => ({ ...move(s), facts: { ...held, ...facts } }) as ReturnType<typeof move>);
      cancelledBy(decision, reason);
      assert.is(resultIn(decision).status, "resolved");
      assert.is(resultIn(decision).question?.reason, reason);
    });
  }
}

test("[7 owner_context_lost] a use finds the credential of the asking turn rotated", () => {
  cancelledBy(taking(asked(), read({ facts: { ...held, owner: "rotated" } })), "owner_context_lost");
});

test("[7 workspace_replaced] a use finds another directory", () => {
  cancelledBy(taking(asked(), read({ facts: { ...held, workspaceIsSame: false } })), "workspace_replaced");
});

test("[7 expired] a question is cancelled at the first use at or past its expiry, and not before", () => {
  const state = after(running(), ask({ ...choice, expiresInSeconds: 60 }, { at: time(100) }));
  assert.is(pendingIn(state).expiresAt, time(160));
  const before = taking(state, read({ at: time(159) }));
  assert.is(resultIn(before).status, "ready");
  assert.not(before.changed);
  cancelledBy(taking(state, read({ at: time(160) })), "expired");
  const late = taking(state, answer({ at: time(161) }));
  cancelledBy(late, "expired");
  assert.is(resultIn(late).reason, "question_cancelled");
});

test("[7 expired] a question without an expiry is never cancelled because time passed", () => {
  const decision = taking(asked(), read({ at: time(10 * 365 * 86_400) }));
  assert.is(resultIn(decision).status, "ready");
  assert.not(decision.changed);
});

test("[7 workspace_replaced] asking again where the context is lost cancels, and the caller asks again afresh", () => {
  const state = asked();
  const lost = { ...held, turn: "good", workspaceIsSame: false } as const;
  const decision = taking(state, ask(openChoice, { facts: lost }));
  cancelledBy(decision, "workspace_replaced");
  assert.equal(
    decision.effects.map(({ type }) => type),
    ["event", "again"],
  );
});

test("[7 run_cancelled] a stop of the service fails its runs and leaves the question to the next start", () => {
  const decision = taking(asked(), stopping());
  assert.is(decision.next.value.question, "pending");
  assert.is(decision.next.value.turn, "idle");
  assert.equal(
    eventsIn(decision).map((e) => (e.type === "turn" ? [e.phase, e.reasonCode] : e.type)),
    [["failed", "service_restarted"]],
  );
});

test("[6.3] reading a request nobody knows is refused, reading nothing in particular is ready", () => {
  for (const state of [running(), asked(), answered()]) {
    assert.is(resultIn(taking(state, read({ requestId: uuid(9) }))).reason, "unknown_request");
  }
  const none = resultIn(taking(answered(), read()));
  assert.is(none.status, "ready");
  assert.is(none.question, undefined);
  assert.is(none.reason, undefined);
});

test("[7 owner_context_lost] reading a kept receipt looks at no context and is resolved", () => {
  const state = after(answered(), ask(choice));
  const { requestId } = newestReceipt(state);
  const decision = taking(state, read({ requestId, facts: { ...held, owner: "expired" } }));
  assert.is(resultIn(decision).status, "resolved");
  assert.is(resultIn(decision).question?.requestId, requestId);
  assert.is(decision.next.value.question, "pending");
});

test.run();
