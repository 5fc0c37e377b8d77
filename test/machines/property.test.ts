import fc from "fast-check";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { type ConversationState, type Decision, decide } from "../../machines/decide.js";
import type { Caller, ConversationEvent, Standing } from "../../machines/facts.js";
import { persist, restore } from "../../machines/persisted.js";
import { snapshotOf } from "../../machines/views.js";
import { checkEvent, checkResult } from "../../protocol/results.js";
import {
  agentOf,
  answer,
  ask,
  attachedAgent,
  begin,
  cancel,
  cancelRun,
  captain,
  choice,
  claim,
  conversation,
  device,
  eventsIn,
  interrupted,
  type Move,
  nativeClaim,
  nativeRelease,
  openChoice,
  operator,
  otherDevice,
  read,
  readOnlyDevice,
  repliesIn,
  reportOf,
  reset,
  restarted,
  revoke,
  send,
  settle,
  startsIn,
  stopping,
  text,
  time,
  uuid,
} from "./given.js";

const test = suite("whatever happens to a conversation");

const standing = fc.constantFrom<Standing>("good", "good", "good", "read_only", "rotated", "expired", "revoked");
const caller = fc.constantFrom<Caller>(operator, device, otherDevice, readOnlyDevice, captain, attachedAgent);
/** Mostly so. */
const mostly = fc.integer({ min: 0, max: 7 }).map((n) => n > 0);
const facts = fc.record({ workspaceIsSame: mostly, owner: standing, asker: standing });
const runFacts = fc.record({ workspaceIsSame: mostly, starter: standing });
const draft = fc.constantFrom(choice, openChoice, text, { ...choice, expiresInSeconds: 30 });
const pick = fc.nat({ max: 6 });
const seconds = fc.nat({ max: 100_000 });

/** Any run the conversation knows, or nobody's. */
function someRun({ context }: ConversationState, n: number): string {
  const runs = [context.active, ...context.waiting, ...context.settled.slice(-3)].flatMap((run) =>
    run === null ? [] : [run.runId],
  );
  return runs[n % (runs.length + 1)] ?? "run-nobody";
}

/** Any question the conversation knows, or nobody's. */
function someRequest({ context }: ConversationState, n: number): string {
  const known = [context.open?.question, ...context.receipts.slice(-3)].flatMap((q) => (q ? [q.requestId] : []));
  return known[n % (known.length + 1)] ?? uuid(9);
}

function someAnswer({ context }: ConversationState, n: number) {
  const optionId = context.open?.question.options[n]?.optionId ?? context.receipts.at(-1)?.options[n]?.optionId;
  return optionId === undefined
    ? ({ kind: "text", text: `text ${n}` } as const)
    : ({ kind: "choice", optionId } as const);
}

const target = (state: ConversationState, n: number, isCurrent: boolean) => ({
  requestId: isCurrent ? (state.context.open?.question.requestId ?? someRequest(state, n)) : someRequest(state, n),
  expectedRevision: isCurrent ? state.context.revision : n,
  incarnationId: n === 6 && !isCurrent ? uuid(4) : state.context.incarnationId,
});

const move: fc.Arbitrary<Move> = fc.oneof(
  { weight: 3, arbitrary: caller.map((c) => send({ caller: c })) },
  {
    weight: 4,
    arbitrary: fc.tuple(runFacts, pick, mostly).map(
      ([f, n, isActive]): Move =>
        (state) =>
          begin(f, isActive && state.context.active ? state.context.active.runId : someRun(state, n))(state),
    ),
  },
  {
    weight: 2,
    arbitrary: fc.tuple(runFacts, caller, pick).map(
      ([f, c, n]): Move =>
        (state) =>
          claim({ facts: f, caller: c, runId: someRun(state, n) })(state),
    ),
  },
  {
    weight: 3,
    arbitrary: fc.tuple(pick, pick, fc.constantFrom("completed", "failed")).map(
      ([n, other, end]): Move =>
        (state) =>
          settle({ runId: someRun(state, n), caller: agentOf(someRun(state, other === 0 ? n + 1 : n)), state: end })(
            state,
          ),
    ),
  },
  {
    weight: 1,
    arbitrary: pick.map(
      (n): Move =>
        (state) =>
          reportOf({ runId: someRun(state, n) })(state),
    ),
  },
  {
    weight: 1,
    arbitrary: pick.map(
      (n): Move =>
        (state) =>
          cancelRun(someRun(state, n))(state),
    ),
  },
  {
    weight: 6,
    arbitrary: fc.tuple(draft, facts, standing, fc.option(caller)).map(
      ([d, f, turn, c]): Move =>
        (state) =>
          ask(d, { facts: { ...f, turn }, ...(c && { caller: c }) })(state),
    ),
  },
  {
    weight: 2,
    arbitrary: fc.tuple(facts, pick, seconds).map(
      ([f, n, at]): Move =>
        (state) =>
          read({ facts: f, at: time(at), ...(n > 2 && { requestId: someRequest(state, n) }) })(state),
    ),
  },
  {
    weight: 5,
    arbitrary: fc.tuple(caller, standing, facts, pick, mostly, seconds).map(
      ([c, s, f, n, isCurrent, at]): Move =>
        (state) =>
          answer({
            caller: { ...c, standing: s },
            facts: f,
            at: time(at),
            answer: someAnswer(state, n % 3),
            ...target(state, n, isCurrent),
          })(state),
    ),
  },
  {
    weight: 2,
    arbitrary: fc.tuple(caller, facts, pick, mostly).map(
      ([c, f, n, isCurrent]): Move =>
        (state) =>
          cancel({ caller: c, facts: f, ...target(state, n, isCurrent) })(state),
    ),
  },
  {
    weight: 1,
    arbitrary: mostly.map(
      (ok): Move =>
        (state) =>
          reset(state.context.revision + (ok ? 0 : 1))(state),
    ),
  },
  { weight: 1, arbitrary: fc.constantFrom("terminal", "editor").map((harness) => nativeClaim(harness)) },
  { weight: 2, arbitrary: fc.constant(nativeRelease()) },
  { weight: 1, arbitrary: caller.map((c) => revoke({ kind: c.stamp.kind, id: c.stamp.id })) },
  {
    weight: 1,
    arbitrary: pick.map(
      (n): Move =>
        (state) =>
          interrupted(someRun(state, n))(state),
    ),
  },
  { weight: 1, arbitrary: fc.constantFrom(restarted(), stopping()) },
);

/** What the caller is told without anything having changed. */
const isRefusal = ({ effects }: Decision): boolean =>
  repliesIn(effects).some(
    (reply) =>
      reply.kind === "conflict" ||
      (reply.kind === "fault" && reply.reason === undefined) ||
      (reply.kind === "question" &&
        (reply.status === "revision_conflict" ||
          (reply.status === "refused" && reply.reason !== "question_cancelled"))),
  );

/** What an event of this kind is answered with; the service's own get no reply. */
const repliesTo = (event: ConversationEvent, decision: Decision): number => {
  switch (event.type) {
    case "run.begin":
    case "credential.revoked":
    case "commit.interrupted":
    case "service.restarted":
    case "service.stopping":
      return 0;
    case "question.ask":
      return decision.effects.some(({ type }) => type === "again") ? 0 : 1;
    default:
      return 1;
  }
};

interface Past {
  readonly started: Set<string>;
  readonly over: Set<string>;
  readonly answers: Map<string, string>;
}

function checkStep(state: ConversationState, event: ConversationEvent, decision: Decision, past: Past): void {
  const before = state.context;
  const now = decision.next.context;
  assert.ok(now.revision >= before.revision, "the revision never shrinks");
  assert.is(now.version, before.version + (decision.changed ? 1 : 0), "the version counts changes");
  assert.ok(now.receipts.length <= 32, "at most 32 receipts");
  assert.is(
    decision.next.value.question === "pending",
    now.open !== null,
    "at most one pending, where the chart says so",
  );
  assert.is(decision.next.value.turn === "idle", now.active === null);
  assert.is(decision.next.value.driver === "native", now.harness !== null);
  assert.ok(now.waiting.length <= 16, "at most sixteen wait");
  assert.ok(now.active !== null || now.waiting.length === 0, "nothing waits for nobody");
  if (decision.next.value.driver === "native") assert.is(now.open, null, "no question lives in a native seat");

  if (isRefusal(decision)) assert.not(decision.changed, "a refusal changes nothing");
  if (!decision.changed) assert.is(decision.next, state);
  if (event.type === "question.read" && decision.changed) assert.is(now.open, null, "a read only ever cancels");

  assert.is(repliesIn(decision.effects).length, repliesTo(event, decision), `one reply to ${event.type}`);

  let sequence = before.eventSequence;
  for (const each of eventsIn(decision)) {
    sequence += 1;
    assert.is(Number(each.cursor), sequence, "cursors are contiguous");
    assert.ok(each.revision >= before.revision && each.revision <= now.revision);
    const checked = checkEvent(each);
    assert.ok(checked.ok, JSON.stringify(checked));
  }
  assert.is(now.eventSequence, sequence);
  if (eventsIn(decision).length > 0) assert.ok(decision.changed, "events come with a change");

  for (const runId of startsIn(decision)) {
    assert.not(past.started.has(runId), `${runId} starts once`);
    assert.not(past.over.has(runId), `${runId} is over and never starts`);
    past.started.add(runId);
  }
  for (const { runId } of now.settled) past.over.add(runId);

  for (const receipt of now.receipts) {
    const { continuation: _, ...rest } = receipt;
    const said = JSON.stringify(rest);
    assert.is(past.answers.get(receipt.requestId) ?? said, said, "a receipt is what it was when it was stored");
    past.answers.set(receipt.requestId, said);
    assert.is(receipt.status === "submitted", receipt.answer !== undefined && receipt.continuation !== undefined);
    assert.is(receipt.status === "cancelled", receipt.reason !== undefined);
    if (receipt.status === "cancelled")
      assert.is(receipt.continuation, undefined, "a cancelled question starts nothing");
  }
}

test("[6.9] any sequence of events keeps every promise that does not depend on what is asked", () => {
  fc.assert(
    fc.property(fc.array(move, { maxLength: 60, size: "max" }), fc.boolean(), (moves, isAttached) => {
      let state = conversation(isAttached ? { runner: { kind: "attached" } } : {});
      const past: Past = { started: new Set(), over: new Set(), answers: new Map() };
      for (const each of moves) {
        const event = each(state);
        const decision = decide(state, event);
        checkStep(state, event, decision, past);
        state = decision.next;
      }
      const shown = checkResult("conversation_show", { conversation: snapshotOf(state) });
      assert.ok(shown.ok, JSON.stringify(shown));
      const kept = new Map<string, unknown>(state.context.receipts.map((receipt) => [receipt.requestId, receipt]));
      const restored = restore(JSON.parse(JSON.stringify(persist(state))), kept);
      if (!restored.ok) throw new Error(restored.fault);
      assert.equal(restored.state.context, state.context);
    }),
    { numRuns: 300, includeErrorInReport: true },
  );
});

test.run();
