import { suite } from "uvu";
import * as assert from "uvu/assert";
import { snapshotOf } from "../../machines/views.js";
import {
  activeRunId,
  after,
  agentOf,
  answer,
  answered,
  ask,
  asked,
  attachedAgent,
  begin,
  cancelRun,
  captain,
  claim,
  conversation,
  device,
  eventsIn,
  interrupted,
  nativeClaim,
  newestReceipt,
  operator,
  replyIn,
  reportOf,
  restarted,
  resultIn,
  running,
  send,
  settle,
  startsIn,
  stopsIn,
  taking,
} from "./given.js";

const test = suite("messages and runs");

const turns = (decision: Parameters<typeof eventsIn>[0]) =>
  eventsIn(decision).flatMap((event) =>
    event.type === "turn"
      ? [[event.runId, event.phase, ...(event.reasonCode === undefined ? [] : [event.reasonCode])]]
      : [],
  );

const attached = () => conversation({ runner: { kind: "attached" } });

test("[5] a message enters the history, raises the revision by one and its run waits to be looked at", () => {
  const decision = taking(conversation(), send({ text: "hello", runId: "run-a" }));
  assert.equal(replyIn(decision), { kind: "accepted", runId: "run-a" });
  assert.is(decision.next.context.revision, 1);
  assert.equal(
    eventsIn(decision).map((e) => (e.type === "message" ? [e.role, e.text, e.streaming] : e.type)),
    [["operator", "hello", false], "turn"],
  );
  assert.equal(turns(decision), [["run-a", "accepted"]]);
  assert.equal(snapshotOf(decision.next).activeRun, { runId: "run-a", state: "accepted" });
  assert.equal(startsIn(decision), []);
});

test("[4] a captain's message is external, a device's the operator's", () => {
  const roles = [captain, device, operator].map((caller) =>
    eventsIn(taking(conversation(), send({ caller }))).flatMap((e) => (e.type === "message" ? [e.role] : [])),
  );
  assert.equal(roles, [["external"], ["operator"], ["operator"]]);
});

test("[5] a message at another revision conflicts, one without a revision does not", () => {
  const state = running();
  const decision = taking(state, send({ expectedRevision: 0 }));
  assert.equal(replyIn(decision), { kind: "conflict" });
  assert.not(decision.changed);
  assert.is(replyIn(taking(state, send({ expectedRevision: state.context.revision }))).kind, "accepted");
});

test("[5] a message is refused while a harness drives, and where the directory is another one", () => {
  assert.equal(replyIn(taking(after(conversation(), nativeClaim()), send())), {
    kind: "fault",
    code: "ineligible_conversation",
    reason: "native_driver",
  });
  assert.equal(replyIn(taking(conversation(), send({ workspaceIsSame: false }))), {
    kind: "fault",
    code: "ineligible_conversation",
    reason: "workspace_replaced",
  });
});

test("[6] one run at a time: the next is looked at only when the one before has ended", () => {
  const state = after(running(), send({ runId: "run-2" }), send({ runId: "run-3" }));
  assert.is(snapshotOf(state).queuedRuns, 2);
  assert.equal(startsIn(taking(state, begin({}, "run-2"))), []);
  const settled = taking(state, settle());
  assert.equal(
    settled.effects.flatMap((e) => (e.type === "recheck" ? [e.runId] : [])),
    ["run-2"],
  );
  assert.is(snapshotOf(settled.next).queuedRuns, 1);
  assert.equal(startsIn(taking(settled.next, begin())), ["run-2"]);
});

test("[3] sixteen runs wait, the seventeenth message and an answer then are queue_full and consume nothing", () => {
  const full = after(asked(), ...Array.from({ length: 16 }, () => send()));
  assert.is(full.context.waiting.length, 16);
  for (const move of [send(), answer()]) {
    const decision = taking(full, move);
    assert.equal(replyIn(decision), { kind: "fault", code: "queue_full" });
    assert.not(decision.changed);
  }
  const later = after(full, settle());
  assert.is(resultIn(taking(later, answer())).status, "resolved");
});

test("[6] a continuation waits for the run that asked, and then starts once", () => {
  const state = answered();
  const { runId } = newestReceipt(state).continuation ?? { runId: "" };
  assert.equal(startsIn(taking(state, begin({}, runId))), []);
  const idle = after(state, settle());
  const started = taking(idle, begin());
  assert.equal(startsIn(started), [runId]);
  assert.equal(startsIn(taking(started.next, begin({}, runId))), []);
  const done = after(started.next, settle());
  assert.is(newestReceipt(done).continuation?.state, "completed");
  assert.equal(startsIn(taking(done, begin({}, runId))), []);
});

for (const [why, facts, reason] of [
  ["the directory is another one", { workspaceIsSame: false }, "context_lost"],
  ["the responder's credential was revoked", { starter: "revoked" }, "responder_revoked"],
  ["the responder's credential was rotated", { starter: "rotated" }, "responder_revoked"],
  ["the responder's credential expired", { starter: "expired" }, "responder_revoked"],
  ["the responder's device may only read now", { starter: "read_only" }, "responder_revoked"],
] as const) {
  test(`[6] where ${why} the continuation fails with ${reason}, is never started, and the receipt stays submitted`, () => {
    const state = after(answered(), settle());
    const decision = taking(state, begin(facts));
    const receipt = newestReceipt(decision.next);
    assert.equal(startsIn(decision), []);
    assert.is(receipt.status, "submitted");
    assert.equal(receipt.continuation, { runId: activeRunId(state), state: "failed", reasonCode: reason });
    assert.equal(turns(decision), [[activeRunId(state), "failed", reason]]);
    assert.is(decision.next.value.turn, "idle");
    assert.is(decision.next.context.revision, state.context.revision);
  });
}

test("[6] a continuation that may not start hands its place to the next run", () => {
  const state = after(answered(), send({ runId: "run-behind" }), settle());
  const decision = taking(state, begin({ starter: "revoked" }));
  assert.is(decision.next.value.turn, "accepted");
  assert.is(activeRunId(decision.next), "run-behind");
});

test("[6] a message's run fails where its sender was revoked, and starts where the token was only rotated", () => {
  const state = after(conversation(), send());
  assert.equal(
    turns(taking(state, begin({ starter: "revoked" }))).map(([, , reason]) => reason),
    ["sender_revoked"],
  );
  assert.is(startsIn(taking(state, begin({ starter: "rotated" }))).length, 1);
});

test("[5] an attached agent claims the run once; a second claim is forbidden", () => {
  const state = after(attached(), send());
  const first = taking(state, claim());
  assert.is(replyIn(first).kind, "claimed");
  assert.is(first.next.value.turn, "running");
  for (const decision of [
    taking(first.next, claim()),
    taking(after(first.next, settle()), claim({ runId: "run-0" })),
  ]) {
    assert.equal(replyIn(decision), { kind: "fault", code: "forbidden" });
    assert.not(decision.changed);
  }
});

test("[10] the run of a command is the service's to start; nobody claims it", () => {
  assert.equal(replyIn(taking(after(conversation(), send()), claim())), { kind: "fault", code: "forbidden" });
});

test("[5] another run than the active one, and with another run's token, is not claimed, reported on or settled", () => {
  const state = after(attached(), send());
  const on = after(state, claim());
  const stranger = agentOf("run-of-another");
  for (const decision of [
    taking(state, claim({ runId: "run-unknown" })),
    taking(state, claim({ caller: stranger })),
    taking(conversation(), claim()),
    taking(state, reportOf()),
    taking(on, reportOf({ caller: stranger })),
    taking(on, reportOf({ runId: "run-unknown", caller: attachedAgent })),
    taking(on, settle({ caller: stranger })),
    taking(on, settle({ runId: "run-unknown" })),
    taking(state, settle()),
    taking(conversation(), settle()),
    taking(conversation(), reportOf()),
  ]) {
    assert.equal(replyIn(decision), { kind: "fault", code: "forbidden" });
    assert.not(decision.changed);
  }
});

test("[5] only the attached agent that claimed a run reports on it and settles it", () => {
  const state = after(attached(), send(), claim());
  const other: typeof attachedAgent = { ...attachedAgent, stamp: { ...attachedAgent.stamp, id: "attached-2" } };
  const rotated: typeof attachedAgent = { ...attachedAgent, stamp: { ...attachedAgent.stamp, generation: 2 } };
  for (const move of [reportOf, settle]) {
    const refused = taking(state, move({ caller: other }));
    assert.equal(replyIn(refused), { kind: "fault", code: "forbidden" });
    assert.not(refused.changed);
    for (const caller of [attachedAgent, rotated, operator]) assert.ok(taking(state, move({ caller })).changed);
  }
  const ended = after(state, settle({ caller: attachedAgent, runId: activeRunId(state) }));
  assert.equal(
    replyIn(taking(ended, settle({ caller: attachedAgent, runId: activeRunId(state) }))),
    { kind: "done" },
    "repeated alike",
  );
});

test("[5] nobody attached reports on or settles the run of a command", () => {
  const state = after(conversation(), send(), begin());
  for (const move of [reportOf, settle]) {
    assert.equal(replyIn(taking(state, move({ caller: attachedAgent }))), { kind: "fault", code: "forbidden" });
  }
});

test("[6] a claim looks at the run's facts as a start does", () => {
  const state = after(attached(), send());
  const decision = taking(state, claim({ facts: { workspaceIsSame: false, starter: "good" } }));
  assert.equal(replyIn(decision), { kind: "fault", code: "forbidden", reason: "context_lost" });
  assert.equal(startsIn(decision), []);
  assert.is(decision.next.value.turn, "idle");
});

test("[6] what an agent reports enters the history and leaves the revision alone", () => {
  const state = running();
  const decision = taking(
    state,
    reportOf({
      bodies: [
        { type: "message", text: "one", streaming: true },
        { type: "activity", phase: "thinking" },
        { type: "tool", toolCallId: "t", name: "read", phase: "started" },
      ],
    }),
  );
  assert.equal(
    eventsIn(decision).map((e) => (e.type === "message" ? `${e.role} ${e.streaming}` : e.type)),
    ["agent true", "activity", "tool"],
  );
  assert.is(decision.next.context.revision, state.context.revision);
  assert.is(decision.next.context.version, state.context.version + 1);
});

test("[5] settling repeated alike is done, otherwise forbidden, wherever the turn is by then", () => {
  const first = running();
  const runId = activeRunId(first);
  const how = { runId, state: "failed", reasonCode: "exit_status", summary: "exit 3" } as const;
  const settled = taking(first, settle(how));
  assert.equal(turns(settled), [[runId, "failed", "exit_status"]]);
  assert.equal(stopsIn(settled), [runId]);
  for (const state of [settled.next, after(settled.next, send()), after(settled.next, send(), begin())]) {
    const alike = taking(state, settle(how));
    assert.equal(replyIn(alike), { kind: "done" });
    assert.not(alike.changed);
    for (const other of [{ state: "completed" }, { reasonCode: "signalled" }, { summary: "exit 4" }] as const) {
      const decision = taking(state, settle({ ...how, ...other }));
      assert.equal(replyIn(decision), { kind: "fault", code: "forbidden" });
      assert.not(decision.changed);
    }
    const stranger = taking(state, settle({ ...how, caller: agentOf("run-of-another") }));
    assert.equal(replyIn(stranger), { kind: "fault", code: "forbidden" }, "only the agent of that run settles it");
  }
});

test("[6] the end of a run leaves the revision and a pending question alone", () => {
  const state = asked();
  const decision = taking(state, settle());
  assert.is(decision.next.context.revision, state.context.revision);
  assert.is(decision.next.value.question, "pending");
});

test("[5] a waiting run is cancelled without touching the active one; an ended one is done; an unknown one is not", () => {
  const state = after(running(), send({ runId: "run-waiting" }));
  const decision = taking(state, cancelRun("run-waiting"));
  assert.equal(turns(decision), [["run-waiting", "cancelled", "run_cancelled"]]);
  assert.is(decision.next.value.turn, "running");
  const again = taking(decision.next, cancelRun("run-waiting"));
  assert.equal(replyIn(again), { kind: "done" });
  assert.not(again.changed);
  for (const each of [decision.next, after(decision.next, settle())]) {
    assert.equal(replyIn(taking(each, cancelRun("run-nobody"))), {
      kind: "fault",
      code: "unknown_conversation",
      reason: "unknown_run",
    });
    assert.equal(replyIn(taking(each, cancelRun("run-waiting"))), { kind: "done" });
  }
});

test("[6] a cancelled continuation stays submitted and never starts", () => {
  const state = answered();
  const { runId } = newestReceipt(state).continuation ?? { runId: "" };
  const decision = taking(state, cancelRun(runId));
  assert.equal(newestReceipt(decision.next).continuation, { runId, state: "cancelled", reasonCode: "run_cancelled" });
  assert.equal(startsIn(taking(after(decision.next, settle()), begin({}, runId))), []);
});

test("[8.2] a start fails what was accepted, waiting or running, stops it, and none ever starts again", () => {
  const state = after(answered(), send());
  const runs = [activeRunId(state), ...state.context.waiting.map(({ runId }) => runId)];
  const decision = taking(state, restarted());
  assert.equal(
    turns(decision),
    runs.map((runId) => [runId, "failed", "service_restarted"]),
  );
  assert.is(decision.next.value.turn, "idle");
  assert.is(decision.next.context.waiting.length, 0);
  assert.is(newestReceipt(decision.next).continuation?.reasonCode, "service_restarted");
  for (const runId of runs) assert.equal(startsIn(taking(decision.next, begin({}, runId))), []);
});

test("[8.1, 8.3] a start cancels the pending question and keeps every receipt as it was", () => {
  const state = after(answered(), settle(), begin(), settle(), send(), begin(), ask());
  const decision = taking(state, restarted());
  assert.is(decision.next.value.question, "cancelled");
  assert.equal(decision.next.context.receipts.slice(0, -1), state.context.receipts);
  assert.is(newestReceipt(decision.next).reason, "service_restarted");
});

test("[8.8] an answer found durable after an unknown commit is submitted, its continuation failed and not run", () => {
  const waiting = answered();
  const idle = after(asked(), settle(), answer());
  for (const state of [waiting, idle]) {
    const { runId } = newestReceipt(state).continuation ?? { runId: "" };
    const decision = taking(state, interrupted(runId));
    const receipt = newestReceipt(decision.next);
    assert.is(receipt.status, "submitted");
    assert.equal(receipt.continuation, { runId, state: "failed", reasonCode: "acceptance_interrupted" });
    assert.equal(startsIn(taking(decision.next, begin({}, runId))), []);
    assert.is(resultIn(taking(decision.next, answer())).question?.continuation?.reasonCode, "acceptance_interrupted");
  }
});

test("[8.8] an unknown commit of somebody else's run leaves these runs alone", () => {
  for (const state of [answered(), conversation()]) assert.not(taking(state, interrupted("run-other")).changed);
});

test.run();
