import { test } from "uvu";
import * as assert from "uvu/assert";
import { textOf } from "../../clients/device/html.js";
import { start, update } from "../../clients/device/update.js";
import { pageView, titleOf } from "../../clients/device/view/page.js";
import { ago, askerWords, choiceWords, until } from "../../clients/device/view/words.js";
import type { Question } from "../../protocol/question.js";

const NOW = Date.parse("2026-01-02T03:04:05.000Z");
const first = start(undefined, { now: NOW, notifications: "off", hidden: false, suggestedName: "iPhone" });
const words = (state: typeof first) => pageView(state).map(textOf).join(" ");

test("a browser that was never paired is told where the code comes from", () => {
  assert.match(words(first), /Pair this device.*clankie devices pair/);
  assert.not.match(words(first), /Waiting for you/);
});

test("an empty code is refused before anything is sent, in words that a screen reader is told", () => {
  const [state, effects] = update(first, { type: "pair_pressed" });
  assert.equal(effects, []);
  assert.match(state.announcement, /Type the code/);
  assert.match(words(state), /Type the code/);
});

test("nothing is shown as waiting before it was read", () => {
  const [state] = update(first, { type: "paired", deviceId: "d", name: "phone", mode: "active", kept: false });
  assert.match(words(state), /Reading…/);
  assert.not.match(words(state), /Nothing is waiting/);
  assert.match(words(state), /keeps nothing for this page/);
  assert.is(titleOf(state), "Clankie");
  const [empty] = update(state, { type: "inbox", inbox: {} });
  assert.match(words(empty), /Nothing is waiting/);
});

test("who asked, and what it can be answered with, is said in words", () => {
  const question: Question = {
    requestId: "00000000-0000-4000-8000-000000000001",
    incarnationId: "00000000-0000-4000-8000-000000000002",
    conversationId: "c",
    workspace: "/w",
    purpose: "preference",
    kind: "choice",
    prompt: "Which?",
    options: [
      { optionId: "00000000-0000-4000-8000-000000000003", label: "A" },
      { optionId: "00000000-0000-4000-8000-000000000004", label: "B" },
    ],
    allowFreeform: false,
    createdAt: "2026-01-02T03:04:00.000Z",
    originRunId: "session:operator",
    status: "pending",
  };
  assert.is(askerWords(question), "Asked by the operator");
  assert.is(askerWords({ ...question, originRunId: "session:x" }), "Asked by an attached agent");
  assert.is(askerWords({ ...question, originRunId: "run" }), "Asked by the agent");
  assert.is(choiceWords(question), "2 options");
  assert.is(choiceWords({ ...question, allowFreeform: true }), "2 options, or your own words");
});

test("times are said as a person would", () => {
  assert.is(ago("2026-01-02T03:04:00.000Z", NOW), "just now");
  assert.is(ago("2026-01-02T03:01:05.000Z", NOW), "3 min ago");
  assert.is(ago("2026-01-02T03:09:00.000Z", NOW), "just now", "a clock that is ahead is no reason for nonsense");
  assert.is(until("2026-01-02T04:04:05.000Z", NOW), "expires in 1 h");
  assert.is(until("2026-01-02T03:04:05.000Z", NOW), "expired");
});

test.run();
