import { suite } from "uvu";
import * as assert from "uvu/assert";
import { cells, wrap } from "../../clients/tui/layout.js";
import { titleOf, view } from "../../clients/tui/view.js";
import { CONVERSATION, inboxOf, message, question, receipt, Sitting, screenOf, snapshot, uuid } from "./sitting.js";

const test = suite("terminal view");

const SIZES = [
  [80, 24],
  [40, 12],
  [200, 60],
  [20, 6],
  [1, 1],
] as const;

const TEXTS = {
  plain: "Which of these files should I describe first, and how much detail do you want?",
  wide: "どのファイルを最初に説明しますか。詳しさも教えてください。".repeat(3),
  emoji: "👩‍👩‍👧‍👦 family, ❤️ heart, 🇩🇪 flag, 👍🏽 thumb ".repeat(4),
  combining: "e\u0301a\u0308o\u0302n\u0303 ".repeat(30),
  rightToLeft: "איזה קובץ לתאר קודם? أي ملف أصف أولاً؟ ".repeat(4),
  longWord: "x".repeat(300),
  manyLines: Array.from({ length: 50 }, (_, index) => `line ${index + 1} of the prompt`).join("\n"),
  hostile: "\u001b[2J\u001b]2;owned\u0007\u202egnihtyna\u202c\u0000\r",
};

function everythingOn(columns: number, rows: number, text: string): Sitting {
  const asked = question(1, {
    prompt: text,
    options: Array.from({ length: 8 }, (_, index) => ({
      optionId: uuid(100 + index),
      label: `${index + 1}: ${text.slice(0, 190)}`.replaceAll("\n", " "),
      description: text.slice(0, 500),
    })),
    expiresAt: "2026-05-01T11:00:00.000Z",
  });
  const sitting = Sitting.open(columns, rows, snapshot({ title: text.slice(0, 200), question: asked }));
  for (let index = 0; index < 5; index += 1) {
    sitting.tell({
      type: "event",
      conversationId: CONVERSATION,
      event: message(text, { role: index % 2 === 0 ? "agent" : "operator" }),
    });
  }
  sitting.read(asked);
  sitting.tell({ type: "failed", say: text });
  sitting.tell({ type: "paste", text: text.slice(0, 100) });
  return sitting;
}

for (const [columns, rows] of SIZES) {
  for (const [name, text] of Object.entries(TEXTS)) {
    test(`${columns}×${rows} ${name}: every page has exactly the rows, none wider than the screen, and the cursor inside`, () => {
      const sitting = everythingOn(columns, rows, text);
      for (const pane of ["conversation", "list", "waiting", "help"] as const) {
        sitting.state = { ...sitting.state, pane };
        const frame = view(sitting.state);
        assert.is(frame.rows.length, rows);
        for (const pieces of frame.rows) {
          for (const { at, line } of pieces) {
            const width = line.reduce((sum, { text: part }) => sum + cells(part), 0);
            assert.ok(
              at + width <= Math.max(columns, 2),
              `${at} + ${width} in ${pane}: ${line.map((part) => part.text).join("")}`,
            );
          }
        }
        assert.ok(frame.cursor.row >= 0 && frame.cursor.row < rows);
        assert.not.match(screenOf(frame).join(""), /[\u0000-\u001f\u007f-\u009f\u202a-\u202e]/);
      }
    });
  }
}

test("a 50-line prompt at 80×24 lets every option be reached, and the way to answer is always shown", () => {
  const asked = question(1, { prompt: TEXTS.manyLines });
  const sitting = Sitting.open(80, 24, snapshot({ question: asked }));
  sitting.read(asked);
  const seen = new Set<string>();
  for (let page = 0; page < 12; page += 1) {
    for (const row of sitting.screen.split("\n")) seen.add(row);
    assert.match(sitting.screen, /Answer: \/question answer 1…2 or \/question text WORDS/);
    sitting.key("PAGE_DOWN");
  }
  const all = [...seen].join("\n");
  for (let index = 1; index <= 50; index += 1) assert.match(all, new RegExp(`line ${index} of the prompt`));
  assert.match(all, / 1 {2}First/);
  assert.match(all, / 2 {2}Second/);
  assert.match(sitting.screen, / 2 {2}Second/, "the last page ends with the options");
});

test("40×12 shows a short question whole, and its title and ways to answer uncut", () => {
  const sitting = Sitting.open(40, 12, snapshot({ question: question(1) }));
  sitting.read(question(1));
  for (const part of [/number 1\?/, / 1 {2}First/, /the one on top/, / 2 {2}Second/, /One of these/]) {
    assert.match(sitting.screen, part);
  }
  assert.match(sitting.screen, /│ \/question answer N\|text WORDS\|cancel$/m);
  assert.not.match(sitting.screen, /│.*…|request |PgUp/);
  const long = question(1, { prompt: TEXTS.manyLines });
  const scrolled = Sitting.open(40, 12, snapshot({ question: long }));
  scrolled.read(long);
  scrolled.key("PAGE_DOWN", "PAGE_DOWN");
  assert.match(scrolled.screen, /^┌─ Question ─* \d+–\d+ of 54 · PgUp\/Dn $/m);
});

test("long labels wrap instead of being cut", () => {
  const label = `${"word ".repeat(38)}end`;
  const asked = question(1, {
    options: [
      { optionId: uuid(11), label },
      { optionId: uuid(12), label: "other" },
    ],
  });
  for (const [columns, rows] of [
    [80, 24],
    [40, 30],
  ] as const) {
    const sitting = Sitting.open(columns, rows, snapshot({ question: asked }));
    sitting.read(asked);
    const flat = sitting.screen.replaceAll(/[│\s]+/g, " ");
    assert.ok(flat.includes(label), `${columns} columns`);
  }
});

test("the card says what is asked, by whom, when, until when, and which request and revision it is", () => {
  const asked = question(1, { expiresAt: "2026-05-01T10:30:00.000Z" });
  const sitting = Sitting.open(80, 30, snapshot({ question: asked }));
  sitting.read(asked);
  for (const part of [
    "Question number 1?",
    " 1  First",
    "the one on top",
    " 2  Second",
    "One of these, or your own words.",
    "by run run-1",
    "in 30 min",
    `request ${asked.requestId}`,
    "revision 4",
    "/question cancel",
  ]) {
    assert.ok(sitting.screen.replaceAll(/\s+│?\s*/g, " ").includes(part.replaceAll(/\s+/g, " ")), part);
  }
});

test("the status line tells connection, authority, what waits, revision and driver", () => {
  const sitting = Sitting.open(120, 24, snapshot({ driver: { kind: "native", harness: "their-agent" } }));
  const status = () => sitting.screen.split("\n").at(-1) ?? "";
  assert.match(status(), /● connected as operator · 0 waiting · revision 4 · driver native \(their-agent\)/);
  sitting.tell({ type: "principal", principal: { kind: "device", id: "d", mode: "read-only" } });
  assert.match(status(), /READ-ONLY/);
  sitting.tell({
    type: "link",
    connection: { kind: "reconnecting", nextTryAt: sitting.at + 4_000, detail: "refused" },
  });
  assert.match(status(), /○ reconnecting in 4 s \(refused\)/);
});

test("the title counts what waits and cannot be broken out of", () => {
  const sitting = Sitting.open(80, 24, snapshot({ title: "a\u0007\u001b]2;b" }));
  assert.not.match(titleOf(sitting.state), /[\u0000-\u001f]/);
  sitting.tell({ type: "inbox", inbox: inboxOf(question(1)) });
  assert.match(titleOf(sitting.state), /^● 1 waiting · clankie: /);
});

test("a wide screen shows the conversations beside the open one, what waits first", () => {
  const sitting = Sitting.open(200, 60);
  sitting.tell({
    type: "conversations",
    conversations: [snapshot(), snapshot({ conversationId: "c-2", title: "Other" })],
  });
  sitting.tell({ type: "inbox", inbox: inboxOf(question(2, { conversationId: "c-2" })) });
  const rows = sitting.screen.split("\n");
  assert.match(rows[2] ?? "", /● 2 Other/);
  assert.match(rows[3] ?? "", /1 Project/);
});

test("whoever reads further up stays where they read when something arrives", () => {
  const sitting = Sitting.open(80, 24);
  for (let index = 0; index < 60; index += 1)
    sitting.tell({ type: "event", conversationId: CONVERSATION, event: message(`number ${index}.`) });
  assert.match(sitting.screen, /number 59\./);
  sitting.key("PAGE_UP", "PAGE_UP");
  const top = sitting.screen.split("\n")[1];
  sitting.tell({ type: "event", conversationId: CONVERSATION, event: message("and one more\nof two lines") });
  assert.is(sitting.screen.split("\n")[1], top);
});

test("a message that streams is shown once", () => {
  const sitting = Sitting.open(80, 24);
  for (const text of ["Hel", "Hello", "Hello there"]) {
    sitting.tell({
      type: "event",
      conversationId: CONVERSATION,
      event: message(text, { streaming: text !== "Hello there" } as never),
    });
  }
  assert.is(sitting.screen.match(/Hel/g)?.length, 1);
});

test("a receipt shows the answer, who gave it and what became of the continuation", () => {
  const asked = question(1);
  const sitting = Sitting.open(80, 24, snapshot({ question: asked }));
  sitting.read(asked);
  const failed = receipt(asked, { continuation: { runId: "run-2", state: "failed", reasonCode: "context_lost" } });
  sitting.tell({
    type: "snapshot",
    conversationId: CONVERSATION,
    snapshot: snapshot({ receipts: { [asked.requestId]: failed } }),
  });
  assert.match(sitting.screen, /✔ Answered: 2 “Second”, by device phone/);
  assert.match(sitting.screen, /run run-2 should have continued with it: failed \(context_lost\)/);
});

test("wrapping leaves nothing out but the spaces at a break", () => {
  for (const text of Object.values(TEXTS)) {
    for (const width of [2, 7, 40, 80]) {
      const lines = wrap(text, width);
      for (const line of lines)
        assert.ok(cells(line) <= width || [...new Intl.Segmenter().segment(line)].length === 1, line);
      assert.is(lines.join("").replaceAll(/\s/g, ""), text.replaceAll(/[ \n\t]/g, "").replaceAll(/\s/g, ""));
    }
  }
});

test.run();
