import { suite } from "uvu";
import * as assert from "uvu/assert";
import { allTransitions, readChart } from "../../machines/chart/model.js";
import { takenBy } from "../../machines/chart/taken.js";
import { changesSomething } from "../../machines/chart/words.js";
import { conversationMachine } from "../../machines/conversation.js";
import { decide } from "../../machines/decide.js";
import { answer, asked, captain, conversation, reportOf, running, send, settle, taking, time } from "./given.js";
import { walkModel } from "./walk.js";

const test = suite("what an event takes on the chart");

const transitions = new Map(allTransitions(readChart()).map((each) => [each.id, each]));
const walked = [...walkModel()];
const always = "turn.idle always 1";

const guardHolds = (name: string, context: unknown, event: unknown): boolean => {
  const guards: { readonly [name: string]: unknown } = conversationMachine.implementations.guards;
  const guard = guards[name];
  if (typeof guard !== "function") throw new Error(`${name} is no guard of the machine`);
  return guard({ context, event }) === true;
};

test("[6] what is shown as taken is what the machine decided, over every path of the model", () => {
  const seen = new Set<string>();
  for (const { state, event, decision } of walked) {
    const { steps, changed } = takenBy(state, event, decision);
    for (const region of ["driver", "question", "turn"] as const) {
      const own = steps.filter((step) => step.region === region);
      let at: string = state.value[region];
      for (const { from, to } of own) {
        assert.is(from, at);
        at = to;
      }
      assert.is(at, decision.next.value[region], `${event.type} in ${region}`);
    }
    for (const { transition } of steps) seen.add(transition);
    assert.is(changed, decision.changed);
    assert.is(
      steps.some(({ actions, from, to }) => from !== to || changesSomething(actions[0] ?? null)),
      changed,
    );
  }
  assert.equal(
    [...transitions.keys()].filter((id) => !seen.has(id)),
    [],
    "never seen",
  );
});

test("[6] the guard that is shown is the first in the chart's order that holds", () => {
  for (const { state, event, decision } of walked) {
    for (const { transition, guard } of takenBy(state, event, decision).steps) {
      if (transition === always) continue;
      const taken = transitions.get(transition);
      assert.ok(taken);
      for (let place = 1; place < taken.place; place += 1) {
        const earlier = transitions.get(transition.replace(/\d+$/, String(place)));
        assert.ok(earlier?.guard);
        assert.not(guardHolds(earlier.guard, state.context, event), `${earlier.id} stood in the way of ${transition}`);
      }
      if (guard !== undefined) assert.ok(guardHolds(guard, state.context, event), transition);
    }
  }
});

test("[6.1] a refusal has its guard, its rule and its reason, and changes nothing", () => {
  const state = asked();
  const event = answer({ caller: captain })(state);
  assert.equal(takenBy(state, event, decide(state, event)), {
    event: "question.answer",
    steps: [
      {
        transition: "question.pending question.answer 1",
        region: "question",
        from: "pending",
        to: "pending",
        guard: "callerMayNotAnswer",
        rule: "6.1",
        actions: ["refuseCaller"],
      },
    ],
    changed: false,
    refused: true,
    reason: "not_permitted",
  });
});

test("[6.6] an answer that finds its context lost is refused and changes something", () => {
  const state = asked();
  const event = answer({ facts: { workspaceIsSame: false, owner: "good", asker: "good" }, at: time(9) })(state);
  const { changed, refused, reason, steps } = takenBy(state, event, decide(state, event));
  assert.equal([changed, refused, reason], [true, true, "question_cancelled"]);
  assert.equal(
    steps.map(({ from, to, rule }) => [from, to, rule]),
    [["pending", "cancelled", "6.6"]],
  );
});

test("[1] where a run that waits takes the free place, both transitions are shown", () => {
  const state = decide(running(), send()(running())).next;
  const event = settle()(state);
  const { steps } = takenBy(state, event, decide(state, event));
  assert.equal(
    steps.map(({ from, to }) => `${from} ${to}`),
    ["running idle", "idle accepted"],
  );
});

test("nothing that anybody wrote is in it", () => {
  const said = "a secret of the owner";
  const words = [send({ text: said })(conversation()), answer({ answer: { kind: "text", text: said } })(asked())];
  for (const [state, event] of [
    [conversation(), words[0]],
    [asked(), words[1]],
    [running(), reportOf({ bodies: [{ type: "message", text: said }] })(running())],
  ] as const) {
    if (event === undefined) throw new Error("no event");
    assert.not.match(
      JSON.stringify(
        takenBy(
          state,
          event,
          taking(state, () => event),
        ),
      ),
      /secret/,
    );
  }
});

test.run();
