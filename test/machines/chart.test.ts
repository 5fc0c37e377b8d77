import { suite } from "uvu";
import * as assert from "uvu/assert";
import { createMachine } from "xstate";
import { runChart } from "../../clients/cli/local/chart.js";
import { definitionJson } from "../../machines/chart/definition.js";
import { chartOf, marksOf } from "../../machines/chart/live.js";
import { mermaid } from "../../machines/chart/mermaid.js";
import { allTransitions, type ChartRegion, inWords, readChart } from "../../machines/chart/model.js";
import { svg } from "../../machines/chart/svg.js";
import { chartText } from "../../machines/chart/text.js";
import { snapshotOf } from "../../machines/views.js";
import { after, answered, asked, cancelled, conversation, nativeClaim, send, settle } from "./given.js";

const test = suite("the chart as it is shown");

const chart = readChart();
const transitions = allTransitions(chart);

for (const [format, content] of [
  ["svg", svg()],
  ["text", chartText()],
  ["mermaid", mermaid().replaceAll(/\s+/g, " ")],
] as const) {
  test(`[9] ${format} shows every state, event, guard and effect with its section`, () => {
    for (const { states } of chart) for (const { name } of states) assert.ok(content.includes(name), name);
    for (const { event, guard, effect, rule } of transitions) {
      for (const each of [event, guard && inWords(guard), effect && inWords(effect), rule]) {
        assert.ok(each === null || content.includes(each), `${event}: ${each}`);
      }
    }
  });
}

test("[9] the JSON is the machine: what createMachine makes of it has the same chart", () => {
  const again = createMachine(JSON.parse(definitionJson()));
  assert.equal(readChart(again), chart);
});

test("[9] the SVG is the same every time, well-formed, light and dark, and fetches nothing", () => {
  const content = svg();
  assert.is(svg(), content);
  assert.match(content, /prefers-color-scheme:dark/);
  assert.not.match(content, /href|url\(|<script|@import/);
  const open: string[] = [];
  for (const [, close, name, , empty] of content.matchAll(/<(\/?)([a-z]+)((?:\s[a-zA-Z-]+="[^"<>]*")*)(\/?)>/g)) {
    if (close === "/") assert.is(open.pop(), name);
    else if (empty !== "/") open.push(name ?? "");
  }
  assert.equal(open, []);
  assert.is(content.match(/class="now"/), null);
});

test("[4] where a conversation is on the chart is read from its snapshot alone", () => {
  for (const state of [
    conversation(),
    after(conversation(), send()),
    asked(),
    answered(),
    cancelled(),
    after(cancelled(), settle()),
    after(answered(), nativeClaim()),
  ]) {
    assert.equal(chartOf(snapshotOf(state)).now, state.value);
  }
});

test("[2] what may happen next, and for whom", () => {
  const live = chartOf(snapshotOf(asked()));
  const whoMay = (event: string) => live.possible.find((each) => each.event === event)?.who;
  assert.equal(whoMay("question.answer"), ["operator", "active device"]);
  assert.equal(whoMay("question.cancel"), ["operator", "active device"]);
  assert.equal(whoMay("conversation.reset"), ["operator"]);
  assert.equal(whoMay("native.claim"), ["operator", "captain"]);
  assert.equal(whoMay("run.settle"), ["operator", "agent"]);
  assert.equal(whoMay("service.restarted"), ["service"]);
  assert.is(whoMay("native.release"), undefined, "nothing changes by it");
  assert.equal(
    live.answering.map(({ who, may, reason }) => [who, may, reason]),
    [
      ["operator", true, undefined],
      ["active device", true, undefined],
      ["read-only device", false, "device_read_only"],
      ["captain", false, "not_permitted"],
      ["agent", false, "not_permitted"],
    ],
  );
});

test("[4] nothing is asked in a native seat, and nothing is answered where nothing is pending", () => {
  const live = chartOf(snapshotOf(after(conversation(), nativeClaim())));
  const events = live.possible.map(({ event }) => event);
  assert.not(events.includes("question.ask"));
  assert.not(events.includes("question.answer"));
  assert.not(events.includes("message.send"));
  assert.ok(events.includes("native.release"));
  assert.equal(live.answering, []);
});

test("[3] a full queue takes no message", () => {
  const full = after(conversation(), ...Array.from({ length: 17 }, () => send()));
  assert.not(chartOf(snapshotOf(full)).possible.some(({ event }) => event === "message.send"));
});

test("[9] the lit states and transitions are in the text and in the SVG", async () => {
  const snapshot = snapshotOf(asked());
  const marks = marksOf(chartOf(snapshot));
  assert.equal([...marks.states], ["driver.service", "question.pending", "turn.running"]);
  assert.is(svg(marks).match(/class="now"/g)?.length, 3);
  let written = "";
  const status = await runChart({
    format: "text",
    conversation: snapshot,
    write: (part) => {
      written += part;
    },
  });
  assert.is(status, 0);
  assert.match(written, /^ {2}\* pending: /m);
  assert.match(written, /^ {2}read-only device: no, device_read_only$/m);
});

test("[9] a guard or an action without a name, and a transition without its section, are refused", () => {
  const unnamed = (transition: object) =>
    readChart(
      createMachine({
        initial: "a",
        states: {
          a: { initial: "b", meta: { rule: "1" }, states: { b: { meta: { rule: "1" }, on: { go: transition } } } },
        },
      }),
    );
  assert.throws(() => unnamed({ guard: () => true, meta: { rule: "1" } }), /no name/);
  assert.throws(() => unnamed({ actions: "x" }), /which section/);
  const [region] = unnamed({ actions: "x", meta: { rule: "1" } }) as [ChartRegion];
  assert.is(region.states[0]?.transitions[0]?.effect, "x");
});

test.run();
