import { suite } from "uvu";
import * as assert from "uvu/assert";
import { documentedReasons } from "../../machines/chart/document.js";
import { allTransitions, type ChartTransition, inWords, readChart } from "../../machines/chart/model.js";
import { explore } from "../../machines/chart/paths.js";
import { EFFECTS, EVENTS, GUARDS } from "../../machines/chart/words.js";
import { conversationMachine } from "../../machines/conversation.js";

/** Nothing in the chart is left untried: found by walking the machine's own graph, and running it. */

const test = suite("the chart is complete");

const chart = readChart();
const transitions = allTransitions(chart);
const found = explore(chart);

/** What would be left untested. */
const promise = ({ from, event, place, guard, effect, to, rule }: ChartTransition): string =>
  `[${rule}] in ${from}, ${event} ${place}: ${guard === null ? "otherwise" : `if ${inWords(guard)}`}, ` +
  `${effect === null ? "nothing" : inWords(effect)}${to === null ? "" : `, to ${to}`}`;

test("[8.9] every transition is taken", () => {
  assert.equal(
    transitions.filter(({ id }) => !found.transitions.has(id)).map(promise),
    [],
    "never taken: no sequence of moves (machines/chart/moves.ts) keeps this promise",
  );
});

test("[6.9] every guard stands in the way somewhere, and lets through somewhere", () => {
  const guarded = transitions.filter(({ guard }) => guard !== null);
  assert.ok(guarded.length > 50);
  assert.equal(guarded.filter(({ id }) => !found.transitions.has(id)).map(promise), [], "never true");
  assert.equal(guarded.filter(({ id }) => !found.passedOver.has(id)).map(promise), [], "never false");
});

test("[4] no state is unreachable, and none is a dead end", () => {
  for (const region of chart) {
    for (const { id, name, transitions: own } of region.states) {
      assert.ok(found.states.has(id), `${id} is never reached`);
      const leaves = own.filter(({ id: each, to }) => to !== null && to !== name && found.transitions.has(each));
      assert.ok(leaves.length > 0, `${id} is a dead end`);
    }
  }
});

test("[6.9] every event of a question or a run is heard wherever the conversation stands", () => {
  const heard = (region: string, events: readonly string[]) => {
    for (const state of chart.find(({ name }) => name === region)?.states ?? []) {
      for (const event of events) {
        const last = state.transitions.filter((each) => each.event === event).at(-1);
        assert.ok(last !== undefined && last.guard === null, `${state.id} may leave ${event} without a reply`);
      }
    }
  };
  heard("question", ["question.answer", "question.cancel", "question.ask", "question.read"]);
  heard("turn", ["run.claim", "run.report", "run.settle", "run.cancel"]);
  heard("driver", ["message.send", "native.claim", "native.release"]);
});

/** The codes of the contract that the machine decides, read from its sections 5 to 8 and not from the code. */
const CODES = [
  // 6
  "refused not_permitted",
  "refused device_read_only",
  "refused device_revoked",
  "refused credential_expired",
  "refused stale_request",
  "refused unknown_request",
  "refused answer_conflict",
  "refused already_submitted",
  "refused question_cancelled",
  "refused unknown_option",
  "refused text_not_allowed",
  "revision_conflict",
  "turn failed context_lost",
  "turn failed responder_revoked",
  // 7
  "cancelled cancelled_by_owner",
  "cancelled conversation_reset",
  "cancelled native_takeover",
  "cancelled owner_revoked",
  "cancelled run_cancelled",
  "cancelled service_restarted",
  "cancelled owner_context_lost",
  "cancelled workspace_replaced",
  "cancelled expired",
  "ready already_pending",
  "error question_pending",
  // 3, 5, 8
  "error queue_full",
  "error forbidden",
  "error ineligible_conversation no_owner_turn",
  "turn failed service_restarted",
  "turn failed acceptance_interrupted",
];

test("[7] every code of the contract is reached by exactly one documented path", () => {
  const documented = documentedReasons(transitions, found).map(({ reason }) => reason);
  for (const code of CODES) {
    assert.is(documented.filter((each) => each === code).length, 1, `${code} is not documented once`);
  }
  assert.is(new Set(documented).size, documented.length);
});

test("[4] every name in the chart is explained, and nothing else is", () => {
  const names = (of: (each: ChartTransition) => string | null) =>
    [...new Set(transitions.flatMap((each) => of(each) ?? []))].toSorted();
  assert.equal(
    names(({ guard }) => guard),
    Object.keys(GUARDS).toSorted(),
  );
  assert.equal(
    names(({ effect }) => effect),
    Object.keys(EFFECTS).toSorted(),
  );
  assert.equal(
    names(({ event }) => (event === "always" ? null : event)),
    Object.keys(EVENTS).toSorted(),
  );
});

test("[4] every guard and action that the machine has is used in the chart", () => {
  const { guards = {}, actions = {} } = conversationMachine.implementations;
  assert.equal(Object.keys(guards).toSorted(), Object.keys(GUARDS).toSorted());
  assert.equal(Object.keys(actions).toSorted(), Object.keys(EFFECTS).toSorted());
});

test("[6.8, 6.9] what only says something stores nothing, and what is said to store does", () => {
  for (const { id, effect } of transitions) {
    const way = found.transitions.get(id);
    if (way === undefined || effect === null) continue;
    const alone = way.taken.length === 1;
    if (alone) assert.is(way.changed, EFFECTS[effect]?.changes, `${id}: ${effect}`);
  }
});

test.run();
