import { suite } from "uvu";
import * as assert from "uvu/assert";
import { decide } from "../../machines/decide.js";
import { persist, restore } from "../../machines/persisted.js";
import { snapshotOf } from "../../machines/views.js";
import { checkResult } from "../../protocol/results.js";
import {
  after,
  answer,
  answered,
  ask,
  asked,
  attachedAgent,
  begin,
  cancelled,
  conversation,
  nativeClaim,
  operator,
  reset,
  restarted,
  running,
  send,
  settle,
} from "./given.js";

const test = suite("the stored conversation");

type State = ReturnType<typeof conversation>;

const states: ReadonlyArray<readonly [what: string, state: State]> = [
  ["new", conversation()],
  ["without a workspace", conversation({ scope: { kind: "global" }, binding: null })],
  ["accepted", after(conversation(), send())],
  ["running", running()],
  ["asked", asked()],
  [
    "asked by an attached agent",
    after(conversation({ runner: { kind: "attached" } }), ask(undefined, { caller: attachedAgent })),
  ],
  ["answered", answered()],
  ["its continuation running", after(answered(), settle(), begin())],
  ["settled", after(answered(), settle(), begin(), settle({ state: "failed", reasonCode: "x", summary: "y" }))],
  ["cancelled", cancelled()],
  ["native", after(asked(), nativeClaim())],
  ["reset", after(answered(), reset())],
  ["restarted", after(answered(), restarted())],
  ["queueing", after(running(), send(), send())],
];

/** Through JSON, as a store does. */
const stored = (state: State): { readonly envelope: unknown; readonly receipts: ReadonlyMap<string, unknown> } => ({
  envelope: JSON.parse(JSON.stringify(persist(state))),
  receipts: new Map(state.context.receipts.map((each) => [each.requestId, JSON.parse(JSON.stringify(each))])),
});

for (const [what, state] of states) {
  test(`[8.9] a conversation that is ${what} comes back from the store as it was, and goes on alike`, () => {
    const { envelope, receipts } = stored(state);
    const restored = restore(envelope, receipts);
    if (!restored.ok) throw new Error(restored.fault);
    assert.equal(restored.state.value, state.value);
    assert.equal(restored.state.context, state.context);
    assert.equal(snapshotOf(restored.state), snapshotOf(state));
    for (const move of [send(), restarted(), reset(), nativeClaim("editor")]) {
      const one = decide(state, move(state));
      const other = decide(restored.state, move(restored.state));
      assert.equal(other.effects, one.effects);
      assert.equal(persist(other.next), persist(one.next));
    }
    const shown = checkResult("conversation_show", { conversation: snapshotOf(restored.state) });
    assert.ok(shown.ok, JSON.stringify(shown));
  });
}

/** A copy in which the value at the path is another one, or gone. */
function damaged(document: unknown, path: readonly string[], value?: unknown): unknown {
  const copy = structuredClone(document) as Record<string, unknown>;
  let here = copy;
  for (const name of path.slice(0, -1)) here = here[name] as Record<string, unknown>;
  const last = path.at(-1) ?? "";
  if (value === undefined) delete here[last];
  else here[last] = value;
  return copy;
}

const context = ["state", "context"];
const damages: ReadonlyArray<readonly [what: string, path: readonly string[], value?: unknown]> = [
  ["no format", ["format"]],
  ["a format of the future", ["format"], 2],
  ["a format that is text", ["format"], "1"],
  ["a field too many", ["note"], "x"],
  ["a field too many inside", [...context, "note"], "x"],
  ["no context", context],
  ["no revision", [...context, "revision"]],
  ["a negative revision", [...context, "revision"], -1],
  ["a version that disagrees", ["version"], 1_000_000],
  ["an unknown state", ["state", "value", "question"], "asking"],
  ["a state pending without a question", [...context, "open"], null],
  ["a question in a state without one", ["state", "value", "question"], "none"],
  ["a turn running without a run", [...context, "active"], null],
  ["a run in an idle turn", ["state", "value", "turn"], "idle"],
  ["a native driver without a harness", ["state", "value", "driver"], "native"],
  ["a harness of the service's", [...context, "harness"], "terminal"],
  ["an incarnation that is no UUID", [...context, "incarnationId"], "x"],
  ["no ids of receipts", ["receiptIds"]],
  ["a receipt id that is not there", ["receiptIds"], ["00000000-0000-4000-8000-00000000dead"]],
  ["waiting runs that are no list", [...context, "waiting"], {}],
];

for (const [what, path, value] of damages) {
  test(`[8.9] a stored state with ${what} is a fault and never an empty conversation`, () => {
    const { envelope, receipts } = stored(asked());
    const restored = restore(damaged(envelope, path, value), receipts);
    assert.not(restored.ok);
    if (!restored.ok) assert.ok(restored.fault.length > 0);
  });
}

test("[8.9] a receipt that is missing, damaged or another one's is a fault of its conversation", () => {
  const { envelope, receipts } = stored(answered());
  const [[requestId, receipt]] = [...receipts] as [[string, unknown]];
  assert.ok(restore(envelope, receipts).ok);
  assert.not(restore(envelope, new Map()).ok);
  assert.not(restore(envelope, new Map([[requestId, damaged(receipt, ["status"], "lost")]])).ok);
  assert.not(restore(envelope, new Map([[requestId, damaged(receipt, ["prompt"])]])).ok);
  const other = "00000000-0000-4000-8000-00000000dead";
  assert.not(restore(envelope, new Map([[requestId, damaged(receipt, ["requestId"], other)]])).ok);
  assert.not(restore(envelope, new Map([[requestId, damaged(receipt, ["status"], "pending")]])).ok);
});

for (const nonsense of [null, undefined, "", "{}", 7, [], {}, { format: 1 }, { format: Number.NaN }]) {
  test(`[8.9] ${JSON.stringify(nonsense) ?? "nothing"} is no conversation`, () => {
    assert.not(restore(nonsense, new Map()).ok);
  });
}

test("[8.3] a restored conversation repeats the receipt to the one who answered before", () => {
  const state = answered();
  const { envelope, receipts } = stored(state);
  const restored = restore(envelope, receipts);
  if (!restored.ok) throw new Error(restored.fault);
  const decision = decide(restored.state, answer({ caller: operator })(restored.state));
  assert.not(decision.changed);
  assert.equal(decision.effects, [
    { type: "reply", reply: { kind: "question", status: "resolved", requestId: state.context.receipts[0]?.requestId } },
  ]);
});

test.run();
