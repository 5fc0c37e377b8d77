import { suite } from "uvu";
import * as assert from "uvu/assert";
import type { Link } from "../../clients/link.js";
import { ask, CHOICE, Cuttable, type Screen, ServedWorld } from "./world.js";

interface Context {
  world: ServedWorld;
  link: Link;
  conversationId: string;
}

const test = suite<Context>("terminal in a pseudo-terminal");

let served: ServedWorld;

test.before(async () => {
  served = await ServedWorld.start();
});
test.after(async () => {
  await served.end();
});
test.before.each(async (context) => {
  context.world = served;
  context.link = await served.link();
  context.conversationId = await served.conversation(context.link);
});
test.after.each(async ({ world, link }) => {
  await world.left();
  // what still waits would be counted in the next test
  const { questions } = await (await world.link()).call("input_list", { status: "pending" });
  for (const { conversationId, incarnationId = "", revision = 0, question } of questions) {
    if (question !== undefined) {
      const { requestId } = question;
      await link.cancelQuestion({ conversationId, incarnationId, requestId, expectedRevision: revision });
    }
  }
});

test("a question arrives, is read, answered by number and stored", async ({ world, link, conversationId }) => {
  const screen = world.tui([conversationId]);
  await screen.shows("connected as operator");
  const { question } = await ask(link, conversationId);
  await screen.shows("A question waits: Which file should I describe first?");
  await screen.until(
    "the bell and the title",
    () => screen.bells === 1 && (screen.titles.at(-1) ?? "").startsWith("● 1 waiting"),
  );
  await screen.read();
  await screen.shows(/ 1 {2}README\.md/);
  await screen.answer("/question answer 2");
  await screen.shows("✔ Answered: 2 “package.json”, by the operator");
  const stored = await link.call("input_get", { conversationId, requestId: question?.requestId ?? "" });
  assert.equal(stored.question?.answer, { kind: "choice", optionId: question?.options[1]?.optionId });
  await screen.shows("0 waiting");
});

test("a bracketed three-line paste is one answer", async ({ world, link, conversationId }) => {
  const { question } = await ask(link, conversationId);
  const screen = world.tui([conversationId]);
  await screen.read();
  screen.send("/question text ");
  await screen.shows("› /question text");
  screen.send("\u001b[200~one\r\n15:00 two\rthree\u001b[201~");
  await screen.shows("15:00 two");
  await screen.submit();
  await screen.shows("Answered");
  const stored = await link.call("input_get", { conversationId, requestId: question?.requestId ?? "" });
  assert.equal(stored.question?.answer, { kind: "text", text: "one\n15:00 two\nthree" });
});

test("pasted commands go into the input and are not run, with brackets or without", async ({
  world,
  link,
  conversationId,
}) => {
  await ask(link, conversationId);
  const screen = world.tui([conversationId]);
  await screen.read();
  screen.send("\u001b[200~/question cancel\r/quit\r\u001b[201~");
  await screen.shows("› /question cancel");
  screen.send("\u0015\u007f\u0015\u007f\u0015");
  screen.send("/question cancel\r/quit\rx");
  await screen.shows("› /question cancel");
  assert.is((await link.call("input_get", { conversationId })).question?.status, "pending");
  assert.is(screen.exit, undefined);
});

test("a conflict says so and forgets the question; read again it can be answered", async ({
  world,
  link,
  conversationId,
}) => {
  await ask(link, conversationId);
  const screen = world.tui([conversationId]);
  await screen.read();
  await link.call("conversation_send", { conversationId, message: "something else" });
  await screen.shows("The conversation has changed since");
  await screen.answer("/question answer 1");
  await screen.shows("read it again with /question");
  await screen.shows("A question waits");
  await screen.read();
  await screen.answer("/question answer 1");
  await screen.shows("✔ Answered: 1 “README.md”");
});

test("answered elsewhere, the card changes at once, and the loser keeps what it wrote", async ({
  world,
  link,
  conversationId,
}) => {
  const { question, incarnationId = "", revision = 0 } = await ask(link, conversationId);
  const screen = world.tui([conversationId]);
  await screen.read();
  screen.send("/question text mine");
  await screen.shows("› /question text mine");
  const optionId = question?.options[0]?.optionId ?? "";
  const target = { conversationId, incarnationId, requestId: question?.requestId ?? "", expectedRevision: revision };
  await link.answer(target, { kind: "choice", optionId });
  await screen.shows("Resolved elsewhere: the operator answered 1 “README.md”");
  await screen.shows("› /question text mine");
  await screen.submit(/you began to type|another answer was stored/);
  await screen.shows("Not stored: another answer was stored first");
  screen.send("\u001b[A");
  await screen.shows("› /question text mine");
});

test("a service that was restarted: the question is shown as cancelled, and the unsent answer stays", async ({
  world,
  link,
  conversationId,
}) => {
  await ask(link, conversationId);
  const screen = world.tui([conversationId]);
  await screen.read();
  screen.send("/question text half");
  await screen.shows("› /question text half");
  await world.kill();
  await screen.shows("reconnecting");
  await screen.shows("From before the connection was lost");
  await world.serve();
  await screen.shows("connected as operator");
  await screen.shows("Cancelled: the service was restarted");
  await screen.shows("› /question text half");
});

test("[8.10] cut between sending and the reply, an answer is uncertain until its receipt is read, and sent once", async ({
  world,
  link,
  conversationId,
}) => {
  await ask(link, conversationId);
  const way = await Cuttable.to(world.url);
  try {
    const screen = world.tui([conversationId], { env: { CLANKIE_URL: way.url } });
    await screen.read();
    screen.send("/question answer 1");
    await screen.shows("› /question answer 1");
    way.arm();
    await screen.submit(/you began to type|Uncertain/);
    await screen.shows("reconnecting");
    assert.not.match(screen.text, /Sent and stored|✔ Answered/);
    const { conversation } = await link.call("conversation_show", { conversationId });
    assert.is(Object.keys(conversation.receipts).length, 1);
    way.mend();
    await screen.shows("Sent and stored: 1 “README.md”");
    const after = await link.call("conversation_show", { conversationId });
    assert.is(after.conversation.revision, conversation.revision);
  } finally {
    way.close();
  }
});

test("it redraws at every size, and 40 columns cut nothing off the question", async ({
  world,
  link,
  conversationId,
}) => {
  const label = "a label that is longer than forty columns and therefore has to be wrapped";
  await ask(link, conversationId, {
    ...CHOICE,
    options: [{ label }, { label: "日本語の選択肢 👩‍👩‍👧‍👦 e\u0301 שלום" }],
  } as typeof CHOICE);
  const screen = world.tui([conversationId], { columns: 200, rows: 60 });
  await screen.read();
  for (const [columns, rows] of [
    [40, 30],
    [80, 24],
    [200, 60],
    [40, 12],
  ] as const) {
    screen.resize(columns, rows);
    await screen.until(`${columns}×${rows}`, () => {
      const lines = screen.text.split("\n");
      return (
        (lines[0] ?? "").includes("clankie │") &&
        (lines.at(-1) ?? "").includes("connected") &&
        screen.text.includes("Question")
      );
    });
    if (rows === 12) continue;
    await screen.until("the whole label", () => screen.text.replaceAll(/[│\s]+/g, " ").includes(label));
  }
});

test("text from the service cannot control the terminal", async ({ world, link, conversationId }) => {
  const screen = world.tui([conversationId]);
  await screen.shows("connected as operator");
  await link.call("conversation_send", { conversationId, message: "\u001b[2J\u001b]2;owned\u0007\u202eevil" });
  await screen.shows("evil");
  await screen.shows("connected as operator");
  assert.not.ok(screen.titles.some((title) => title.startsWith("owned")));
});

/** A fault of ours, at a moment the test chooses. */
const FAULT = "--import=data:text/javascript,process.on('SIGUSR2',()=>{throw%20new%20Error('on%20purpose')})";

const ENDS = [
  { name: "/quit", end: (screen: Screen) => screen.line("/quit"), status: 0 },
  { name: "Ctrl-C on an empty line", end: (screen: Screen) => screen.send("\u0003"), status: 0 },
  { name: "SIGTERM", end: (screen: Screen) => screen.signal("SIGTERM"), status: 143 },
  { name: "SIGINT", end: (screen: Screen) => screen.signal("SIGINT"), status: 130 },
  { name: "SIGHUP", end: (screen: Screen) => screen.signal("SIGHUP"), status: 129 },
  { name: "a crash", end: (screen: Screen) => screen.signal("SIGUSR2"), status: 1 },
] as const;

for (const { name, end, status } of ENDS) {
  test(`the terminal is restored after ${name}`, async ({ world, conversationId }) => {
    const screen = world.tui([conversationId], { shell: true, env: { NODE_OPTIONS: FAULT } });
    await screen.shows("connected as operator");
    assert.is(screen.emulator.buffer.active.type, "alternate");
    assert.ok(screen.emulator.modes.bracketedPasteMode);
    await end(screen);
    await screen.shows("END");
    await screen.shows(`status ${status}`);
    assert.is(screen.emulator.buffer.active.type, "normal");
    assert.not.ok(screen.emulator.modes.bracketedPasteMode);
    assert.ok(screen.emulator.modes.wraparoundMode);
    assert.match(screen.text, /(?<!-)icanon/);
    assert.match(screen.text, /(?<!-)echo /);
    if (name === "a crash") assert.match(screen.text, /on purpose/);
  });
}

test("without a terminal it says so and ends with 2", async ({ world }) => {
  const { code, stderr, stdout } = await world.without(["tui"]);
  assert.is(code, 2);
  assert.match(stderr, /needs a terminal/);
  assert.is(stdout, "");
});

test("a token that the service refuses ends it with 8", async ({ world }) => {
  const screen = world.tui([], { token: "wrong", shell: true });
  await screen.shows("status 8");
  await screen.shows("the service does not accept this token");
  assert.is(screen.emulator.buffer.active.type, "normal");
});

test("--no-bell and --no-title keep the terminal quiet", async ({ world, link, conversationId }) => {
  const screen = world.tui([conversationId, "--no-bell", "--no-title"]);
  await screen.shows("connected as operator");
  await ask(link, conversationId);
  await screen.shows("A question waits");
  assert.is(screen.bells, 0);
  assert.equal(screen.titles, []);
});

test("a first look without a conversation: the list, what waits on top, opened with Enter", async ({
  world,
  link,
  conversationId,
}) => {
  const other = await world.conversation(link, "Another");
  await ask(link, other);
  const screen = world.tui();
  await screen.shows(/▸ ● \d+ {2}Another\n.*waits for an answer[\s\S]*Project/);
  screen.send("\r");
  await screen.shows("A question waits");
  assert.match(screen.text, /clankie │ \d+ Another/);
  await screen.line(`/open ${conversationId}`);
  await screen.shows(/clankie │ \d+ Project/);
});

test("a chat message is accepted and shows in the transcript", async ({ world, conversationId }) => {
  const screen = world.tui([conversationId]);
  await screen.shows("connected as operator");
  await screen.line("yes");
  await screen.shows("Sent: the service accepted your message.");
  await screen.shows("you › yes");
});

test.run();
