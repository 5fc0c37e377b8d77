import type { Browser } from "playwright-core";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { launch, openViewer, pairedViewer, press, type Viewer } from "./viewer.js";
import { startWorld, type Talk, type World } from "./world.js";

interface Context {
  world: World;
  browser: Browser;
  talk: Talk;
  viewer: Viewer;
}

const page = suite<Context>("the page: answering");

page.before(async (context) => {
  context.world = await startWorld();
  context.browser = await launch();
});

page.after(async ({ browser, world }) => {
  await browser?.close();
  await world?.stop();
});

page.before.each(async (context) => {
  context.talk = await context.world.conversation("payments");
  context.viewer = await pairedViewer(context.browser, context.world);
});

page.after.each(async ({ viewer }) => {
  assert.equal(viewer.faults, [], "no other host, no violation of the policy, no exception");
  await viewer.close();
});

const send = (viewer: Viewer) => press(viewer.page.getByRole("button", { name: "Send answer" }));

page(
  "[2] a one-time code pairs a device; the token is in no address, and the code works once",
  async ({ world, browser, viewer }) => {
    assert.not.match(viewer.page.url(), /[?#]./);
    const code = await world.pairingCode();
    const other = await openViewer(browser, world.url);
    await other.page.goto(`${world.url}/#${code}`);
    assert.is(await other.page.getByLabel("One-time code").inputValue(), code, "the code in the fragment is filled in");
    assert.not.match(other.page.url(), /#./, "and does not stay in the address");
    await other.pair(code, "Second phone");
    assert.ok((await world.devices()).some(({ name }) => name === "Second phone"));

    const third = await openViewer(browser, world.url);
    await third.page.getByLabel("One-time code").fill(code);
    await third.page.getByRole("button", { name: "Pair" }).click();
    await third.page.getByRole("alert").getByText("wrong, was used already, or has expired").waitFor();
    await other.close();
    await third.close();
  },
);

page(
  "[6.9] an option that is chosen and sent is stored, and its receipt follows the continuation",
  async ({ talk, viewer }) => {
    const question = await talk.ask("Which way?", ["Left", { label: "Right", description: "The longer one" }]);
    await viewer.page.getByRole("link", { name: /Which way/ }).click();
    const button = viewer.page.getByRole("button", { name: "Send answer" });
    assert.ok(await button.isDisabled(), "nothing can be sent before something is chosen");
    await viewer.page.getByRole("radio", { name: /Right/ }).check();
    await send(viewer);
    await viewer.page.getByRole("heading", { name: "Answer stored" }).waitFor();
    const text = await viewer.text();
    assert.match(text, /By you, on this device/);
    assert.match(text, /Accepted/);

    const stored = await talk.receipt(question.requestId);
    assert.equal(stored.answer, { kind: "choice", optionId: question.options[1]!.optionId });
    const { runId } = stored.continuation!;
    await talk.agent.call("run_claim", { runId });
    await viewer.page.getByText("The agent is working with this answer now.").waitFor();
    await talk.agent.call("run_settle", { runId, state: "completed" });
    await viewer.page.getByText("Completed", { exact: true }).waitFor();
  },
);

page("[6.9] an answer in one's own words keeps its lines, and Ctrl+Enter sends it once", async ({ talk, viewer }) => {
  const question = await talk.ask("What should it say?");
  await viewer.open(talk, question);
  await viewer.page.getByLabel("Your answer").fill("one\n  two");
  await viewer.page.locator("[data-moved]").waitFor({ state: "detached" });
  await viewer.page.getByLabel("Your answer").press("Control+Enter");
  await viewer.page.getByRole("heading", { name: "Answer stored" }).waitFor();
  assert.equal((await talk.receipt(question.requestId)).answer, { kind: "text", text: "one\n  two" });
});

page(
  "a double tap sends once, and a tap that was on its way when the question came does nothing",
  async ({ talk, viewer, world }) => {
    const question = await talk.ask("Twice?", ["Yes", "No"]);
    await viewer.open(talk, question);
    const sent: string[] = [];
    viewer.page.on("websocket", () => {});
    const client = await viewer.context.newCDPSession(viewer.page);
    await client.send("Network.enable");
    client.on("Network.webSocketFrameSent", ({ response }) => sent.push(response.payloadData));
    await viewer.page.getByRole("radio", { name: "Yes" }).check();
    const button = viewer.page.getByRole("button", { name: "Send answer" });
    await button.and(viewer.page.locator(":not([data-moved])")).dblclick();
    await viewer.page.getByRole("heading", { name: "Answer stored" }).waitFor();
    assert.is(sent.filter((frame) => frame.includes("input_answer")).length, 1);

    // the next question is there at once; what is pressed in the same moment is not for it
    const next = await talk.ask("Next?", ["Yes", "No"]);
    await viewer.page.goto(`${world.url}/#/question/${talk.conversationId}/${next.requestId}`);
    const option = viewer.page.getByRole("radio", { name: "Yes" });
    await option.waitFor();
    await option.evaluate((element) => (element as unknown as { click(): void }).click());
    assert.not.ok(await option.isChecked(), "an option that has only just appeared cannot be chosen");
    assert.is((await talk.receipt(next.requestId)).status, "pending");
  },
);

page("cancelling asks first, and then the question is cancelled for everybody", async ({ talk, viewer }) => {
  const question = await talk.ask("Shall I?", ["Yes", "No"]);
  await viewer.open(talk, question);
  await press(viewer.page.getByRole("button", { name: "Cancel question" }));
  await viewer.page.getByRole("button", { name: "Keep it" }).click();
  assert.is((await talk.receipt(question.requestId)).status, "pending");
  await press(viewer.page.getByRole("button", { name: "Cancel question" }));
  await viewer.page.keyboard.press("Escape");
  assert.is((await talk.receipt(question.requestId)).status, "pending", "Escape leaves the dialog and cancels nothing");
  await press(viewer.page.getByRole("button", { name: "Cancel question" }));
  await press(viewer.page.getByRole("button", { name: "Cancel it" }));
  await viewer.page.getByRole("heading", { name: "Cancelled" }).waitFor();
  assert.is((await talk.receipt(question.requestId)).reason, "cancelled_by_owner");
});

page(
  "[6.7] a conversation that moved on has to be read again before anything is sent",
  async ({ talk, viewer, world }) => {
    const question = await talk.ask("Which?", ["One", "Two"], { allowFreeform: true });
    await viewer.open(talk, question);
    await viewer.page.getByRole("radio", { name: /own words/ }).check();
    await viewer.page.getByLabel("Your answer").fill("neither");
    await world.operator.call("conversation_send", { conversationId: talk.conversationId, message: "by the way" });
    await viewer.page.getByText("The conversation has changed since you read this question.").waitFor();
    assert.is(await viewer.page.getByRole("button", { name: "Send answer" }).count(), 0);
    await viewer.page.getByRole("button", { name: "Read the question again" }).click();
    assert.is(await viewer.page.getByLabel("Your answer").inputValue(), "neither", "the draft is kept");
    await send(viewer);
    await viewer.page.getByRole("heading", { name: "Answer stored" }).waitFor();
  },
);

page(
  "what was answered elsewhere shows at once and says where; the text written here is kept",
  async ({ talk, viewer, world }) => {
    const question = await talk.ask("Which?", ["One", "Two"], { allowFreeform: true });
    await viewer.open(talk, question);
    await viewer.page.getByRole("radio", { name: /own words/ }).check();
    await viewer.page.getByLabel("Your answer").fill("my own idea");
    const { revision } = await world.operator.call("input_get", { conversationId: talk.conversationId });
    const { conversationId, incarnationId, requestId } = question;
    await world.operator.answer(
      { conversationId, incarnationId, requestId, expectedRevision: revision! },
      { kind: "choice", optionId: question.options[0]!.optionId },
    );
    await viewer.page.getByRole("heading", { name: "Answered elsewhere" }).waitFor();
    const text = await viewer.text();
    assert.match(text, /By the operator/);
    assert.match(text, /What you wrote was not sent\s+my own idea/);

    const next = await talk.ask("And now?");
    await viewer.open(talk, next);
    assert.is(
      await viewer.page.getByLabel("Your answer").inputValue(),
      "",
      "a draft never shows up in another question",
    );
  },
);

page("labels with markup, terminal escapes and bidi controls stay data", async ({ talk, viewer, world }) => {
  const nasty = '<img src=x onerror="document.title=1"><b>bold</b>';
  const bidi = "safe \u202egnp.exe";
  const question = await talk.ask(`<script>alert(1)</script> \u2066prompt\u200b`, [nasty, bidi, "javascript:alert(1)"]);
  await viewer.open(talk, question);
  const text = await viewer.text();
  assert.ok(text.includes(nasty), "markup is text");
  assert.ok(text.includes("\\u{202e}"), "an override is shown, not obeyed");
  assert.ok(text.includes("\\u{2066}") && text.includes("\\u{200b}"));
  assert.is(await viewer.page.locator("main img, main b, main script").count(), 0);
  assert.not.match(text, /[\u202a-\u202e\u2066-\u2069\u200b]/);
  await talk.agent
    .call("request_user_input", { conversationId: talk.conversationId, kind: "text", prompt: "x" })
    .catch(() => {});
  await viewer.page.goto(`${world.url}/#/conversation/${talk.conversationId}`);
  await viewer.page.getByText("Asked: <script>").waitFor();
  assert.not.match(await viewer.text(), /[\u202a-\u202e\u2066-\u2069\u200b]/);
});

page("Enter that ends an input method's composition submits nothing", async ({ browser, world }) => {
  const other = await openViewer(browser, world.url);
  await other.page.getByLabel("One-time code").fill("0000-0000");
  const name = other.page.getByLabel("Name of this device");
  await name.focus();
  const client = await other.context.newCDPSession(other.page);
  await client.send("Input.imeSetComposition", { text: "にほ", selectionStart: 2, selectionEnd: 2 });
  await client.send("Input.dispatchKeyEvent", {
    type: "rawKeyDown",
    key: "Enter",
    code: "Enter",
    windowsVirtualKeyCode: 229,
  });
  await client.send("Input.dispatchKeyEvent", {
    type: "keyUp",
    key: "Enter",
    code: "Enter",
    windowsVirtualKeyCode: 13,
  });
  assert.is(await other.page.getByRole("alert").count(), 0, "nothing was sent");
  await client.send("Input.insertText", { text: "日本" });
  assert.ok((await name.inputValue()).endsWith("日本"));
  await name.press("Enter");
  await other.page.getByRole("alert").waitFor();
  await other.close();
});

page(
  "every waiting question of every conversation is listed, and the count equals the list",
  async ({ talk, viewer, world }) => {
    const second = await world.conversation("website");
    await talk.ask("First?", ["a", "b"]);
    await viewer.page.getByRole("link", { name: /First\?/ }).waitFor();
    await second.ask("Second?");
    await viewer.page.getByRole("link", { name: /Second\?/ }).waitFor();
    const rows = await viewer.page.locator(".pane-list .row").count();
    assert.is(Number.parseInt((await viewer.page.locator(".count").allInnerTexts()).join(""), 10), rows);
    assert.is(await viewer.page.title(), `(${rows}) Clankie`);
    await viewer.page.getByRole("status").getByText("A new question in website").waitFor({ state: "attached" });
    assert.not.ok(
      await viewer.page.evaluate("document.activeElement.tagName === 'A'"),
      "an arrival does not take the focus",
    );
  },
);

page("a conversation's history is read in pages and grows live", async ({ talk, viewer, world }) => {
  const { runId } = (await world.operator.call("conversation_send", {
    conversationId: talk.conversationId,
    message: "start",
  })) as { runId: string };
  await talk.agent.call("run_claim", { runId });
  for (let at = 0; at < 230; at += 1) {
    await talk.agent.call("run_event", {
      runId,
      event: { type: "tool", toolCallId: `t${at}`, name: "read", phase: "completed", summary: `file ${at}` },
    });
  }
  await viewer.page.getByRole("link", { name: "Conversations", exact: true }).click();
  await viewer.page
    .getByRole("link", { name: /payments/ })
    .first()
    .waitFor();
  await viewer.page.goto(`${world.url}/#/conversation/${talk.conversationId}`);
  await viewer.page.getByText("read completed: file 229").waitFor();
  assert.is(await viewer.page.getByText("read completed: file 3", { exact: true }).count(), 0);
  for (let press = 0; press < 2; press += 1) await viewer.page.getByRole("button", { name: /Show earlier/ }).click();
  await viewer.page.getByText("read completed: file 3", { exact: true }).waitFor();
  await talk.agent.call("run_event", { runId, event: { type: "message", text: "live now" } });
  await viewer.page.getByText("live now").waitFor();
});

page.run();
