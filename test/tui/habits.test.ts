import { suite } from "uvu";
import * as assert from "uvu/assert";
import { waitingOf } from "../../clients/tui/state.js";
import { COMPOSITION_MS, GRACE_MS } from "../../clients/tui/update.js";
import {
  CONVERSATION,
  cancelled,
  inboxOf,
  message,
  question,
  ready,
  receipt,
  Sitting,
  snapshot,
  uuid,
} from "./sitting.js";

const test = suite("terminal habits");
const asked = question(1);
const withQuestion = (): Sitting => Sitting.open(80, 24, snapshot({ question: asked }));
const answersOf = (sitting: Sitting) => sitting.taken("answer").map(({ answer }) => answer);

test("ordinary text is a message and never an answer, also when it is “yes” or “1”", () => {
  const sitting = withQuestion();
  sitting.read(asked);
  for (const text of ["yes", "1", " /question answer 1", "question answer 1"]) sitting.line(text);
  assert.equal(
    sitting.taken("send").map(({ text }) => text),
    ["yes", "1", " /question answer 1", "question answer 1"],
  );
  assert.is(answersOf(sitting).length, 0);
});

test("a message sent while a question waits is said to have answered nothing", () => {
  const sitting = withQuestion();
  const accepted = () =>
    sitting.tell({ type: "sent", text: "yes", outcome: { kind: "accepted", runId: "run-3" } } as const);
  sitting.line("yes");
  accepted();
  assert.is(
    sitting.notice,
    "Sent: the service accepted your message. This is a message and did not answer the question: /question, then /question answer N.",
  );
  sitting.tell({ type: "resize", columns: 40, rows: 12 });
  accepted();
  assert.match(sitting.screen, /^Sent\. This is a message[^…]*\/question answer N\.$/m);
  sitting.tell({ type: "inbox", inbox: {} });
  accepted();
  assert.is(sitting.notice, "Sent: the service accepted your message.");
});

test("an incomplete command says the next step, and nothing is sent", () => {
  const sitting = withQuestion();
  sitting.line("/question text");
  assert.match(sitting.notice, /^No question is on screen: \/question reads it/);
  sitting.read(asked);
  sitting.line("/question text ");
  assert.match(sitting.notice, /^Write your answer behind it/);
  sitting.line("/question 2");
  assert.match(sitting.notice, /^Nothing was sent.*\/question answer 2$/);
  assert.is(answersOf(sitting).length + sitting.taken("send").length, 0);
});

test("an answer goes to the request and revision on screen", () => {
  const sitting = withQuestion();
  sitting.read(asked);
  sitting.line("/question answer 2");
  assert.equal(sitting.taken("answer"), [
    {
      type: "answer",
      target: {
        conversationId: CONVERSATION,
        incarnationId: asked.incarnationId,
        requestId: asked.requestId,
        expectedRevision: 4,
      },
      answer: { kind: "choice", optionId: asked.options[1]!.optionId },
    },
  ]);
});

test("the displayed revision is sent although a newer one is known, never the newer one", () => {
  const sitting = withQuestion();
  sitting.read(asked);
  sitting.tell({
    type: "snapshot",
    conversationId: CONVERSATION,
    snapshot: snapshot({ question: asked, revision: 9 }),
  });
  assert.match(sitting.screen, /changed since \(revision 9\): read it again/);
  sitting.line("/question text as you like");
  assert.is(sitting.taken("answer")[0]?.target.expectedRevision, 4);
});

test("a question that has not been read here cannot be answered", () => {
  const sitting = withQuestion();
  sitting.paint();
  sitting.wait(1_000);
  sitting.line("/question answer 1");
  assert.is(answersOf(sitting).length, 0);
  assert.match(sitting.notice, /No question is on screen, so nothing was sent/);
});

test("a question that came after the displayed one is not answered in its place", () => {
  const sitting = withQuestion();
  sitting.read(asked);
  const later = question(2);
  sitting.tell({
    type: "snapshot",
    conversationId: CONVERSATION,
    snapshot: snapshot({ question: later, receipts: { [asked.requestId]: receipt(asked) }, revision: 6 }),
  });
  sitting.tell({ type: "inbox", inbox: inboxOf(later) });
  assert.match(sitting.screen, /A question waits: Question number 2/);
  sitting.line("/question answer 1");
  assert.equal(
    sitting.taken("answer").map(({ target }) => target.requestId),
    [asked.requestId],
    "the receipt on screen is what the command names; the service refuses it",
  );
});

test("what was typed before the question was painted does not answer it", () => {
  const sitting = withQuestion();
  sitting.line("/question");
  sitting.type("/question answer 1");
  sitting.reply(ready(asked));
  sitting.key("ENTER");
  assert.is(answersOf(sitting).length, 0, "it was not on screen yet");
  sitting.look();
  assert.is(answersOf(sitting).length, 0);
  assert.is(sitting.input, "");
  sitting.key("UP");
  assert.is(sitting.input, "/question answer 1", "and the text is kept");
});

test("a short grace after the painting does not answer it either; brought back and sent after a look, it does", () => {
  const sitting = withQuestion();
  sitting.line("/question");
  sitting.reply(ready(asked));
  sitting.paint();
  sitting.wait(GRACE_MS - 50);
  sitting.line("/question answer 1");
  assert.is(answersOf(sitting).length, 0);
  assert.match(sitting.notice, /before the question was on screen/);
  sitting.key("ENTER");
  assert.is(answersOf(sitting).length, 0, "Enter twice is no second look");
  sitting.wait(GRACE_MS);
  sitting.key("UP", "ENTER");
  assert.equal(answersOf(sitting), [{ kind: "choice", optionId: asked.options[0]!.optionId }]);
});

test("what arrives never touches the text being typed nor its cursor", () => {
  const sitting = Sitting.open();
  sitting.type("tell me abuot");
  sitting.key("LEFT", "LEFT");
  const { editor } = sitting.state;
  sitting.tell({ type: "inbox", inbox: inboxOf(asked) });
  sitting.tell({
    type: "snapshot",
    conversationId: CONVERSATION,
    snapshot: snapshot({ question: asked, revision: 5 }),
  });
  sitting.tell({ type: "event", conversationId: CONVERSATION, event: message("hello") });
  sitting.tell({ type: "resize", columns: 40, rows: 12 });
  sitting.tell({ type: "link", connection: { kind: "reconnecting", nextTryAt: 0, detail: "" } });
  assert.equal(sitting.state.editor, editor);
  assert.is(sitting.state.card, null, "no card pushes itself in front");
});

test("digits are literal while text is written", () => {
  const sitting = withQuestion();
  sitting.read(asked);
  sitting.type("/question text at 15:00, 1 or 2");
  assert.is(sitting.input, "/question text at 15:00, 1 or 2");
  assert.is(answersOf(sitting).length, 0);
  sitting.key("ENTER");
  assert.equal(answersOf(sitting), [{ kind: "text", text: "at 15:00, 1 or 2" }]);
});

test("Escape and view keys hide or leave; only /question cancel cancels", () => {
  const sitting = withQuestion();
  sitting.read(asked);
  sitting.key("PAGE_DOWN", "PAGE_UP", "UP", "DOWN", "CTRL_L", "ESCAPE", "ESCAPE", "TAB", "CTRL_U");
  sitting.line("/help");
  sitting.key("ESCAPE");
  assert.is(sitting.taken("cancelQuestion").length, 0);
  sitting.line("/question cancel");
  assert.is(sitting.taken("cancelQuestion").length, 0, "the question is hidden");
  sitting.read(asked);
  sitting.line("/question cancel");
  assert.is(sitting.taken("cancelQuestion").length, 1);
  sitting.key("CTRL_C");
  assert.equal(sitting.taken("quit"), [{ type: "quit" }]);
  assert.is(sitting.taken("cancelQuestion").length, 1);
});

test("Escape puts an unsent answer aside with its question and brings it back with it", () => {
  const sitting = withQuestion();
  sitting.read(asked);
  sitting.type("/question text half a thou");
  sitting.key("ESCAPE");
  assert.is(sitting.input, "");
  sitting.read(asked);
  assert.is(sitting.input, "/question text half a thou");
  sitting.line("ght");
  assert.equal(answersOf(sitting), [{ kind: "text", text: "half a thought" }]);
});

test("an unsent answer survives a reconnect", () => {
  const sitting = withQuestion();
  sitting.read(asked);
  sitting.type("/question text half");
  sitting.tell({ type: "link", connection: { kind: "reconnecting", nextTryAt: 0, detail: "" } });
  sitting.tell({ type: "inbox", inbox: null });
  sitting.tell({ type: "snapshot", conversationId: CONVERSATION, snapshot: null });
  assert.match(sitting.screen, /From before the connection was lost/);
  sitting.key("ENTER");
  assert.is(answersOf(sitting).length, 0, "what was not read again is not answered");
  sitting.tell({ type: "link", connection: { kind: "connected" } });
  sitting.tell({ type: "snapshot", conversationId: CONVERSATION, snapshot: snapshot({ question: asked }) });
  assert.is(sitting.taken("readQuestion").at(-1)?.requestId, asked.requestId, "it is read again by itself");
  sitting.reply(ready(asked));
  sitting.look();
  assert.is(sitting.input, "/question text half");
  sitting.key("ENTER");
  assert.equal(answersOf(sitting), [{ kind: "text", text: "half" }]);
});

test("an unsent answer never shows up in the next question", () => {
  const sitting = withQuestion();
  sitting.read(asked);
  sitting.line("/question");
  sitting.type("/question text for the first");
  const later = question(2);
  sitting.reply(ready(later, 6));
  sitting.look();
  assert.is(sitting.input, "");
  assert.not.match(sitting.screen, /for the first/);
  sitting.line("/question answer 1");
  assert.equal(
    sitting.taken("answer").map(({ target }) => target.requestId),
    [later.requestId],
  );
  assert.is(sitting.state.drafts[asked.requestId], "/question text for the first");
});

test("a three-line paste is one answer", () => {
  const sitting = withQuestion();
  sitting.read(asked);
  sitting.type("/question text ");
  sitting.paste("one\r\ntwo\rthree\n");
  assert.is(answersOf(sitting).length, 0);
  sitting.key("ENTER");
  assert.equal(answersOf(sitting), [{ kind: "text", text: "one\ntwo\nthree" }]);
});

test("pasted lines go into the input and run no command", () => {
  const sitting = withQuestion();
  sitting.read(asked);
  sitting.paste("/question cancel\n/quit\n");
  assert.is(sitting.input, "/question cancel\n/quit\n");
  sitting.wait(1_000);
  sitting.key("ENTER");
  assert.is(sitting.taken("cancelQuestion").length + sitting.taken("quit").length, 0);
  assert.match(sitting.notice, /A command has one line/);
});

test("an Enter that comes with composed text submits nothing", () => {
  const sitting = Sitting.open();
  sitting.tell({ type: "text", text: "日本語" });
  sitting.key("ENTER");
  assert.is(sitting.taken("send").length, 0);
  assert.is(sitting.input, "日本語");
  sitting.wait(COMPOSITION_MS);
  sitting.key("ENTER");
  assert.equal(
    sitting.taken("send").map(({ text }) => text),
    ["日本語"],
  );
});

test("“sent” is said with the receipt in hand and not before", () => {
  const sitting = withQuestion();
  sitting.read(asked);
  sitting.line("/question answer 2");
  assert.match(sitting.screen, /Sending your answer/);
  assert.not.match(sitting.screen, /Sent and stored|Answered/);
  const stored = receipt(asked, { resolvedBy: { kind: "operator", id: "operator" } });
  sitting.tell({
    type: "responded",
    requestId: asked.requestId,
    outcome: { kind: "settled", result: { ...ready(stored, 5), status: "resolved" } },
  });
  assert.match(
    sitting.notice,
    /Sent and stored: 2 “Second”, by the operator — run run-2 continues with it: accepted, not finished/,
  );
  assert.match(sitting.screen, /✔ Answered: 2 “Second”/);
});

test("what is said of a continuation follows the snapshot, and a late reply takes nothing back", () => {
  const sitting = withQuestion();
  const accepted = receipt(asked);
  const completed = receipt(asked, { continuation: { runId: "run-2", state: "completed" } });
  const snapshotWith = (stored: typeof accepted, revision: number) =>
    sitting.tell({
      type: "snapshot",
      conversationId: CONVERSATION,
      snapshot: snapshot({ receipts: { [asked.requestId]: stored }, revision }),
    });
  const reply = () =>
    sitting.tell({
      type: "responded",
      requestId: asked.requestId,
      outcome: { kind: "settled", result: { ...ready(accepted, 5), status: "resolved" } },
    });
  sitting.read(asked);
  sitting.line("/question answer 2");
  reply();
  assert.match(sitting.notice, /accepted, not finished/);
  snapshotWith(completed, 6);
  assert.match(sitting.notice, /Sent and stored: 2 “Second”.*run run-2 continued with it: completed/);
  assert.not.match(sitting.screen, /accepted, not finished/);

  const late = withQuestion();
  late.read(asked);
  late.line("/question answer 2");
  late.tell({
    type: "snapshot",
    conversationId: CONVERSATION,
    snapshot: snapshot({ receipts: { [asked.requestId]: completed }, revision: 6 }),
  });
  late.tell({
    type: "responded",
    requestId: asked.requestId,
    outcome: { kind: "settled", result: { ...ready(accepted, 5), status: "resolved" } },
  });
  late.line("/question");
  late.reply(ready(accepted, 5));
  assert.not.match(late.screen, /accepted, not finished/);
  assert.match(late.screen, /completed/);
});

test("an answer on its way is not sent a second time", () => {
  const sitting = withQuestion();
  sitting.read(asked);
  sitting.line("/question answer 2");
  sitting.line("/question answer 2");
  sitting.line("/question cancel");
  assert.is(answersOf(sitting).length, 1);
  assert.is(sitting.taken("cancelQuestion").length, 0);
  assert.match(sitting.notice, /your earlier answer is on its way/);
});

test("[8.10] an uncertain answer is shown as uncertain until its receipt is read, and is not sent again", () => {
  const sitting = withQuestion();
  sitting.read(asked);
  sitting.line("/question answer 2");
  sitting.tell({ type: "responded", requestId: asked.requestId, outcome: { kind: "uncertain", say: "lost" } });
  assert.match(sitting.notice, /^Uncertain/);
  assert.not.match(sitting.screen, /Sent and stored/);
  sitting.tell({ type: "link", connection: { kind: "reconnecting", nextTryAt: 0, detail: "" } });
  sitting.tell({ type: "link", connection: { kind: "connected" } });
  assert.is(answersOf(sitting).length, 1);
  assert.match(sitting.screen, /Uncertain: sent, no reply came/);
  const result = { ...ready(receipt(asked), 5), status: "resolved" as const };
  sitting.tell({ type: "receiptRead", requestId: asked.requestId, outcome: { kind: "result", result } });
  assert.match(sitting.notice, /Sent and stored/);
  assert.is(answersOf(sitting).length, 1);
});

test("what became of an uncertain answer stays said while the question on screen is read again", () => {
  const sitting = withQuestion();
  sitting.read(asked);
  sitting.line("/question answer 2");
  sitting.tell({ type: "responded", requestId: asked.requestId, outcome: { kind: "uncertain", say: "lost" } });
  sitting.tell({ type: "link", connection: { kind: "reconnecting", nextTryAt: 0, detail: "" } });
  sitting.tell({ type: "link", connection: { kind: "connected" } });
  const result = { ...ready(receipt(asked), 5), status: "resolved" as const };
  sitting.tell({ type: "snapshot", conversationId: CONVERSATION, snapshot: snapshot({ revision: 5 }) });
  sitting.tell({ type: "receiptRead", requestId: asked.requestId, outcome: { kind: "result", result } });
  sitting.reply(result);
  assert.match(sitting.notice, /Sent and stored/);
});

test("[8.10] an uncertain answer whose question still waits keeps its text and says so", () => {
  const sitting = withQuestion();
  sitting.read(asked);
  sitting.line("/question text mine");
  sitting.tell({ type: "responded", requestId: asked.requestId, outcome: { kind: "uncertain", say: "lost" } });
  sitting.tell({ type: "receiptRead", requestId: asked.requestId, outcome: { kind: "result", result: ready(asked) } });
  assert.match(sitting.notice, /not stored so far: the question still waits/);
  sitting.key("UP");
  assert.is(sitting.input, "/question text mine");
});

test("the loser of a race keeps the text it wrote and sees who won", () => {
  const sitting = withQuestion();
  sitting.read(asked);
  sitting.line("/question text mine was better");
  const winner = receipt(asked);
  sitting.tell({
    type: "snapshot",
    conversationId: CONVERSATION,
    snapshot: snapshot({ receipts: { [asked.requestId]: winner }, revision: 5 }),
  });
  sitting.tell({
    type: "responded",
    requestId: asked.requestId,
    outcome: { kind: "settled", result: { ...ready(winner, 5), status: "refused", reason: "answer_conflict" } },
  });
  assert.match(sitting.notice, /Not stored: another answer was stored first: device phone answered 2 “Second”/);
  assert.match(sitting.screen, /You wrote, and it was not stored: .*mine was better/);
  sitting.key("UP");
  assert.is(sitting.input, "/question text mine was better");
});

test("a question that is resolved elsewhere changes on screen at once and says where", () => {
  const sitting = withQuestion();
  sitting.read(asked);
  sitting.type("/question text not yet rea");
  sitting.tell({
    type: "snapshot",
    conversationId: CONVERSATION,
    snapshot: snapshot({ receipts: { [asked.requestId]: receipt(asked) }, revision: 5 }),
  });
  sitting.tell({ type: "inbox", inbox: {} });
  assert.match(sitting.screen, /✔ Answered: 2 “Second”, by device phone/);
  assert.match(sitting.notice, /Resolved elsewhere: device phone answered 2 “Second”/);
  assert.is(sitting.input, "/question text not yet rea");
});

test("[6.7] a conflict says that the conversation changed, asks to read again and forgets the displayed question", () => {
  const sitting = withQuestion();
  sitting.read(asked);
  sitting.line("/question answer 1");
  sitting.tell({
    type: "responded",
    requestId: asked.requestId,
    outcome: { kind: "settled", result: { ...ready(asked, 7), status: "revision_conflict" } },
  });
  assert.match(
    sitting.notice,
    /conversation changed since you read the question \(revision 4, now 7\).*read it again with \/question/,
  );
  assert.is(sitting.state.card, null);
  sitting.line("/question answer 1");
  assert.is(answersOf(sitting).length, 1, "the question of the conflict is not taken for read");
  sitting.read(asked, 7);
  sitting.line("/question answer 1");
  assert.is(sitting.taken("answer").at(-1)?.target.expectedRevision, 7);
});

test("the count of waiting questions is the number of questions that /question list shows", () => {
  const questions = [question(1), question(2, { conversationId: "c-2" }), question(3, { conversationId: "c-3" })];
  const sitting = Sitting.open();
  for (let count = 0; count <= questions.length; count += 1) {
    sitting.tell({ type: "inbox", inbox: inboxOf(...questions.slice(0, count)) });
    sitting.line("/question list");
    assert.match(sitting.screen, new RegExp(`· ${count} waiting`));
    for (const [index, { prompt }] of questions.entries()) assert.is(sitting.screen.includes(prompt), index < count);
    assert.is(waitingOf(sitting.state).length, count);
  }
});

test("the bell rings once for each question that arrives, and not for those that waited at the start", () => {
  const sitting = withQuestion();
  assert.is(sitting.taken("bell").length, 0);
  const later = question(2, { conversationId: "c-2" });
  sitting.tell({ type: "inbox", inbox: inboxOf(asked, later) });
  sitting.tell({ type: "inbox", inbox: inboxOf(later) });
  sitting.tell({ type: "inbox", inbox: null });
  sitting.tell({ type: "inbox", inbox: inboxOf(asked, later) });
  assert.is(sitting.taken("bell").length, 1);
});

test("a reset takes the displayed question away", () => {
  const sitting = withQuestion();
  sitting.read(asked);
  sitting.tell({
    type: "snapshot",
    conversationId: CONVERSATION,
    snapshot: snapshot({ incarnationId: uuid(901), revision: 6 }),
  });
  assert.is(sitting.state.card, null);
  assert.match(sitting.notice, /was reset/);
});

test("a cancelled question shows why and by whom", () => {
  const sitting = withQuestion();
  sitting.read(asked);
  sitting.line("/question cancel");
  sitting.tell({
    type: "responded",
    requestId: asked.requestId,
    outcome: { kind: "settled", result: { ...ready(cancelled(asked), 5), status: "resolved" } },
  });
  assert.match(sitting.notice, /^Cancelled: the owner cancelled it \(the operator\)/);
});

test("the refusals of section 6 are said in words and keep the text", () => {
  const reasons = [
    "not_permitted",
    "device_read_only",
    "device_revoked",
    "credential_expired",
    "stale_request",
    "unknown_request",
    "unknown_option",
    "text_not_allowed",
  ] as const;
  for (const reason of reasons) {
    const sitting = withQuestion();
    sitting.read(asked);
    sitting.line("/question text mine");
    sitting.tell({
      type: "responded",
      requestId: asked.requestId,
      outcome: { kind: "settled", result: { status: "refused", conversationId: CONVERSATION, reason } },
    });
    assert.match(sitting.notice, /^Not stored: [a-z]/, reason);
    assert.not.match(sitting.notice, reason);
    sitting.key("UP");
    assert.is(sitting.input, "/question text mine");
  }
});

test("an option that is not there sends nothing", () => {
  const sitting = withQuestion();
  sitting.read(asked);
  sitting.line("/question answer 3");
  assert.is(answersOf(sitting).length, 0);
  assert.match(sitting.notice, /has no option 3; nothing was sent. It has options 1 to 2/);
});

test("a conversation keeps its number while the order of the list changes", () => {
  const sitting = new Sitting(80, 24, null);
  sitting.tell({ type: "link", connection: { kind: "connected" } });
  const others = ["a", "b", "c"].map((name) => snapshot({ conversationId: name, title: `Title ${name}` }));
  sitting.tell({ type: "conversations", conversations: others });
  assert.match(sitting.screen, /▸ {3}1 {2}Title a/);
  sitting.tell({ type: "inbox", inbox: inboxOf(question(5, { conversationId: "c" })) });
  const lines = sitting.screen.split("\n");
  assert.ok(lines.findIndex((line) => line.includes("Title c")) < lines.findIndex((line) => line.includes("Title a")));
  sitting.line("/open 3");
  assert.is(sitting.taken("open").at(-1)?.conversationId, "c");
});

test.run();
