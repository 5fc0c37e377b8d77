import { test } from "uvu";
import * as assert from "uvu/assert";
import type { Effect, Message } from "../../clients/device/message.js";
import { readFragment } from "../../clients/device/route.js";
import type { Paired, State } from "../../clients/device/state.js";
import { start, update } from "../../clients/device/update.js";
import type { Question, QuestionResult } from "../../protocol/question.js";

const NOW = Date.parse("2026-01-02T03:04:05.000Z");
const uuid = (n: number) => `00000000-0000-4000-8000-${String(n).padStart(12, "0")}`;

function question(n: number, more: Partial<Question> = {}): Question {
  return {
    requestId: uuid(n),
    incarnationId: uuid(100),
    conversationId: "c",
    workspace: "/w",
    purpose: "preference",
    kind: "choice",
    prompt: `Question ${n}?`,
    options: [
      { optionId: uuid(n + 10), label: "One" },
      { optionId: uuid(n + 20), label: "Two" },
    ],
    allowFreeform: true,
    createdAt: "2026-01-02T03:00:00.000Z",
    originRunId: "run",
    status: "pending",
    ...more,
  };
}

const result = (
  status: QuestionResult["status"],
  of?: Question,
  more: Partial<QuestionResult> = {},
): QuestionResult => ({
  status,
  conversationId: "c",
  revision: 7,
  ...(of === undefined ? {} : { question: of }),
  ...more,
});

const route = (n: number): Message => ({
  type: "route",
  route: { kind: "question", conversationId: "c", requestId: uuid(n) },
});
const read = (of: Question, revision = 7): Message => ({
  type: "read",
  requestId: of.requestId,
  outcome: { kind: "result", result: { ...result("ready", of), revision } },
});

/** Runs messages from a paired and connected page. */
function play(...messages: readonly Message[]): { state: State; paired: Paired; effects: readonly Effect[] } {
  let state = start(
    { deviceId: "d", name: "phone", drafts: {} },
    { now: NOW, notifications: "on", hidden: false, suggestedName: "Browser" },
  );
  const effects: Effect[] = [];
  for (const message of [{ type: "mode", mode: "active" }, { type: "connected" }, ...messages] as readonly Message[]) {
    const [next, more] = update(state, message);
    state = next;
    effects.push(...more);
  }
  if (state.session.kind !== "paired") throw new Error("no longer paired");
  return { state, paired: state.session, effects };
}

const sends = (effects: readonly Effect[]) => effects.filter(({ kind }) => kind === "send");
const armed: Message = { type: "armed", requestId: uuid(1) };
const pressed: Message = { type: "send_pressed", requestId: uuid(1) };
const chosen: Message = { type: "option_chosen", requestId: uuid(1), choice: uuid(11) };
const typed = (text: string, n = 1): Message => ({ type: "text_typed", requestId: uuid(n), text });

test("an answer is bound to the request and the revision that were read", () => {
  const { effects } = play(route(1), read(question(1)), armed, chosen, pressed);
  assert.equal(sends(effects), [
    {
      kind: "send",
      target: { conversationId: "c", incarnationId: uuid(100), requestId: uuid(1), expectedRevision: 7 },
      deed: { kind: "answer", answer: { kind: "choice", optionId: uuid(11) } },
    },
  ]);
});

test("nothing is sent before the card was on screen long enough, twice, unconnected, read-only or without a choice", () => {
  const tries: readonly (readonly Message[])[] = [
    [chosen, pressed],
    [armed, pressed],
    [armed, chosen, { type: "disconnected" }, pressed],
    [armed, chosen, { type: "mode", mode: "read-only" }, pressed],
    [armed, typed("  "), pressed],
    [armed, { type: "option_chosen", requestId: uuid(1), choice: uuid(99) }, pressed],
  ];
  for (const messages of tries) assert.equal(sends(play(route(1), read(question(1)), ...messages).effects), []);
  assert.is(sends(play(route(1), read(question(1)), armed, chosen, pressed, pressed, pressed).effects).length, 1);
});

test("[8.10] after an uncertain answer nothing is sent, also not by a press, until the receipt was read", () => {
  const uncertain: Message = { type: "sent", requestId: uuid(1), outcome: { kind: "uncertain" } };
  const before = [route(1), read(question(1)), armed, chosen, pressed, uncertain] as const;
  const waiting = play(...before, { type: "disconnected" }, { type: "connected" }, pressed, read(question(1)), pressed);
  assert.is(sends(waiting.effects).length, 1);
  assert.is(waiting.paired.cards[uuid(1)]?.attempt.kind, "uncertain");

  const receipt = question(1, { status: "submitted", answer: { kind: "choice", optionId: uuid(11) } });
  const recovered = (of: Question): Message => ({
    type: "sent",
    requestId: uuid(1),
    outcome: { kind: "recovered", result: result(of.status === "pending" ? "ready" : "resolved", of) },
  });
  assert.is(play(...before, recovered(receipt)).paired.cards[uuid(1)]?.shown?.question.status, "submitted");
  const lost = play(...before, recovered(question(1)));
  assert.is(lost.paired.cards[uuid(1)]?.attempt.kind, "not_stored");
  assert.is(sends(play(...before, recovered(question(1)), pressed).effects).length, 2, "by the person's own press");
});

test("a draft belongs to its request: it survives a reconnect and never shows up in another question", () => {
  const { paired } = play(
    route(1),
    read(question(1)),
    armed,
    typed("mine"),
    { type: "disconnected" },
    { type: "connected" },
    read(question(1)),
    route(2),
    read(question(2)),
  );
  assert.equal(paired.drafts, { [uuid(1)]: { choice: "text", text: "mine" } });
});

test("who loses a race keeps the text and sees the receipt; who wins is done with the draft", () => {
  const other = question(1, {
    status: "submitted",
    answer: { kind: "choice", optionId: uuid(21) },
    resolvedBy: { kind: "operator", id: "operator" },
  });
  const before = [route(1), read(question(1)), armed, typed("mine"), pressed] as const;
  const lost = play(...before, {
    type: "sent",
    requestId: uuid(1),
    outcome: { kind: "result", result: result("refused", other, { reason: "answer_conflict" }) },
  });
  assert.is(lost.paired.drafts[uuid(1)]?.text, "mine");
  assert.equal(lost.paired.cards[uuid(1)]?.shown?.question, other);
  const own = question(1, { status: "submitted", answer: { kind: "text", text: "mine" } });
  const won = play(...before, {
    type: "sent",
    requestId: uuid(1),
    outcome: { kind: "result", result: result("resolved", own) },
  });
  assert.equal(won.paired.drafts, {});
});

test("a conflict, or a newer revision, has to be read again before anything more is sent", () => {
  const conflict: Message = {
    type: "sent",
    requestId: uuid(1),
    outcome: { kind: "result", result: result("revision_conflict", question(1), { revision: 8 }) },
  };
  const before = [route(1), read(question(1)), armed, chosen, pressed, conflict] as const;
  assert.is(sends(play(...before, pressed).effects).length, 1);
  const again = play(...before, { type: "read_again_pressed", requestId: uuid(1) }, read(question(1), 8), pressed);
  assert.equal(
    sends(again.effects).map((effect) => effect.kind === "send" && effect.target.expectedRevision),
    [7, 8],
  );
});

test("a token that is no longer good ends everything at once, whoever says so", () => {
  for (const news of [
    { type: "shut_out" },
    {
      type: "sent",
      requestId: uuid(1),
      outcome: { kind: "result", result: result("refused", undefined, { reason: "device_revoked" }) },
    },
  ] as const satisfies readonly Message[]) {
    const { state } = play(route(1), read(question(1)), armed, typed("mine"), pressed);
    const [next, effects] = update(state, news);
    assert.is(next.session.kind, "unpaired");
    assert.ok(effects.some(({ kind }) => kind === "forget"));
    assert.not.match(JSON.stringify(next), /mine|Question 1/);
  }
});

test("a notification is for questions that arrive unseen, not for those that were there", () => {
  const inbox = (...all: readonly Question[]): Message => ({
    type: "inbox",
    inbox: Object.fromEntries(all.map((one) => [one.requestId, { conversationId: "c", title: "t", question: one }])),
  });
  const hidden: Message = { type: "visibility", hidden: true, now: NOW };
  const notified = (...messages: readonly Message[]) =>
    play(...messages).effects.filter(({ kind }) => kind === "notify").length;
  assert.is(notified(hidden, inbox(question(1))), 0);
  assert.is(notified(inbox(question(1)), inbox(question(1), question(2))), 0);
  assert.is(notified(hidden, inbox(question(1)), inbox(question(1), question(2)), inbox(question(2))), 1);
  assert.equal(
    play(inbox(question(1)), inbox()).effects.filter(({ kind }) => kind === "withdraw"),
    [{ kind: "withdraw", requestId: uuid(1) }],
  );
});

test("an address names a place or a one-time code, whatever is in it", () => {
  assert.equal(readFragment("#ABCD-2345"), { kind: "code", code: "ABCD-2345" });
  assert.equal(readFragment("#/question/a%2Fb/r"), { kind: "question", conversationId: "a/b", requestId: "r" });
  for (const fragment of ["", "#", "#/", "#/nothing", "#/question/x", "#/question//"])
    assert.equal(readFragment(fragment), { kind: "inbox" });
  assert.equal(readFragment("#/conversation/%E0%A4%A"), { kind: "conversation", conversationId: "%E0%A4%A" });
});

test.run();
