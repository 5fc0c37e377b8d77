import * as fc from "fast-check";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { complete, isQuestionDraft, parse } from "../../clients/tui/commands.js";
import * as edit from "../../clients/tui/input.js";
import { CONVERSATION, message, question, Sitting, snapshot } from "./sitting.js";

const test = suite("terminal input");
const at = (text: string, cursor = text.length): edit.Editor => ({ text, cursor });

test("the cursor moves and deletes by what a reader takes for one character", () => {
  for (const cluster of ["a", "é", "e\u0301", "日", "👩‍👩‍👧‍👦", "🇩🇪", "क्षि"]) {
    const editor = at(`x${cluster}`);
    assert.is(edit.left(editor).cursor, 1, cluster);
    assert.is(edit.right(at(`x${cluster}`, 1)).cursor, editor.text.length, cluster);
    assert.equal(edit.backspace(editor), at("x"), cluster);
  }
});

test("words and lines are deleted as in a shell", () => {
  assert.equal(edit.removeWord(at("one two  ")), at("one "));
  assert.equal(edit.removeToStart(at("one\ntwo three", 8)), { text: "one\nthree", cursor: 4 });
  assert.equal(edit.removeToEnd(at("one\ntwo three", 7)), { text: "one\ntwo", cursor: 7 });
  assert.equal(edit.vertical(at("one\ntwo", 6), -1), at("one\ntwo", 2));
  assert.is(edit.vertical(at("one"), -1), null);
});

test("whatever the keys, the cursor stays inside and the text has no control characters", () => {
  const steps = fc.constantFrom(
    edit.left,
    edit.right,
    edit.wordLeft,
    edit.wordRight,
    edit.lineStart,
    edit.lineEnd,
    edit.backspace,
    edit.remove,
    edit.removeWord,
    edit.removeToStart,
    edit.removeToEnd,
  );
  const typed = fc.string({ unit: "binary" }).map((text) => (editor: edit.Editor) => edit.insert(editor, text));
  return fc.assert(
    fc.property(fc.array(fc.oneof(steps, typed)), (keys) => {
      const editor = keys.reduce((current, key) => key(current), edit.EMPTY);
      assert.ok(editor.cursor >= 0 && editor.cursor <= editor.text.length);
      assert.not.match(editor.text, /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/);
    }),
  );
});

test("history goes back and forth and gives the unsent line back", () => {
  const sitting = Sitting.open();
  sitting.line("first");
  sitting.line("second");
  sitting.type("unsent");
  sitting.key("UP");
  assert.is(sitting.input, "second");
  sitting.key("UP", "UP");
  assert.is(sitting.input, "first");
  sitting.key("DOWN", "DOWN");
  assert.is(sitting.input, "unsent");
});

test("commands are read as written", () => {
  assert.equal(parse("/question"), { kind: "question", action: "read" });
  assert.equal(parse("/question answer 12"), { kind: "answer", option: 12 });
  assert.equal(parse("/question text  /quit --now\n<b>"), { kind: "answerText", text: "/quit --now\n<b>" });
  assert.equal(parse("/question text"), { kind: "answerMissing" });
  assert.equal(parse("/question text  "), { kind: "answerMissing" });
  assert.equal(parse("/open My project"), { kind: "open", which: "My project" });
  assert.equal(parse("/new"), { kind: "new", directory: "", command: [] });
  assert.equal(parse("/new /a b -- node agent.js"), { kind: "new", directory: "/a b", command: ["node", "agent.js"] });
  assert.equal(parse("/new -- agent"), { kind: "new", directory: "", command: ["agent"] });
  assert.equal(parse("yes"), { kind: "message", text: "yes" });
  for (const wrong of [
    "/question answer",
    "/question answer 0",
    "/question answer 1 2",
    "/question answer one",
    "/question answer 1.5",
    "/question cancel now",
    "/question Answer 1",
    "/question 2",
    "/questions",
    "/quit now",
    "/QUIT",
    "/question answer 1\n2",
  ]) {
    assert.is(parse(wrong).kind, "invalid", wrong);
  }
});

test("a draft of a question is what begins an answer or a cancellation", () => {
  for (const text of ["/question answer 1", "/question text ", "/question cancel"]) assert.ok(isQuestionDraft(text));
  for (const text of ["/question", "/question list", "/question texture", "text", " /question text a"])
    assert.not.ok(isQuestionDraft(text));
});

test("Tab completes commands, options and conversations", () => {
  const context = { options: 2, conversations: [{ number: 7, title: "x" }] };
  assert.is(complete("/que", context), "/question");
  assert.is(complete("/question a", context), "/question answer ");
  assert.is(complete("/question t", context), "/question text ");
  assert.is(complete("/o", context), "/open ");
  assert.is(complete("/open", context), "/open ");
  assert.is(complete("/open ", context), "/open 7");
  assert.is(complete("hello", context), "hello");
});

test("a message is said to be sent when the service accepted it, and kept when it was not", () => {
  const sitting = Sitting.open();
  sitting.line("hello");
  assert.is(sitting.notice, "Sending…");
  sitting.tell({ type: "sent", text: "hello", outcome: { kind: "accepted", runId: "r" } });
  assert.match(sitting.notice, /^Sent/);
  sitting.line("again");
  sitting.tell({ type: "sent", text: "again", outcome: { kind: "uncertain", say: "lost" } });
  assert.match(sitting.notice, /went before the reply/);
  assert.is(sitting.taken("send").length, 2);
  sitting.key("UP");
  assert.is(sitting.input, "again");
});

test("a paste that is too long is cut and said to be", () => {
  const sitting = Sitting.open();
  sitting.paste("x".repeat(edit.INPUT_LIMIT + 1));
  assert.is(sitting.input.length, edit.INPUT_LIMIT);
  assert.match(sitting.notice, /was cut/);
});

test("the arrows choose in the list by conversation, not by place", () => {
  const sitting = new Sitting(80, 24, null);
  sitting.tell({ type: "link", connection: { kind: "connected" } });
  sitting.tell({
    type: "conversations",
    conversations: ["a", "b", "c"].map((id) => snapshot({ conversationId: id, title: id })),
  });
  sitting.key("DOWN");
  sitting.tell({
    type: "inbox",
    inbox: { x: { conversationId: "c", title: "c", question: question(3, { conversationId: "c" }) } },
  });
  sitting.key("ENTER");
  assert.is(sitting.taken("open").at(-1)?.conversationId, "b");
});

test("Enter opens what waits when nothing was chosen, and the chosen row is always on screen", () => {
  const sitting = new Sitting(80, 24, null);
  sitting.tell({ type: "link", connection: { kind: "connected" } });
  const ids = Array.from({ length: 40 }, (_, index) => `c-${index + 100}`);
  sitting.tell({ type: "conversations", conversations: ids.map((id) => snapshot({ conversationId: id, title: id })) });
  for (const direction of ["DOWN", "UP"]) {
    for (let press = 0; press < 41; press += 1) {
      sitting.key(direction);
      assert.match(sitting.screen, /▸ /);
    }
  }
  const fresh = new Sitting(80, 24, null);
  fresh.tell({ type: "link", connection: { kind: "connected" } });
  fresh.tell({ type: "conversations", conversations: ids.map((id) => snapshot({ conversationId: id, title: id })) });
  const asked = question(3, { conversationId: "c-120" });
  fresh.tell({ type: "inbox", inbox: { x: { conversationId: "c-120", title: "c-120", question: asked } } });
  fresh.key("ENTER");
  assert.is(fresh.taken("open").at(-1)?.conversationId, "c-120");
});

test("what comes of a conversation that was left is not shown in the one that is open", () => {
  const sitting = Sitting.open();
  sitting.tell({ type: "event", conversationId: "another", event: message("not here") });
  sitting.tell({ type: "snapshot", conversationId: "another", snapshot: snapshot({ revision: 99 }) });
  assert.not.match(sitting.screen, /not here|revision 99/);
  assert.is(sitting.state.open?.conversationId, CONVERSATION);
});

test.run();
