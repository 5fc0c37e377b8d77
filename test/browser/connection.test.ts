import type { Browser, BrowserContext } from "playwright-core";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { startProxy, type TcpProxy } from "./proxy.js";
import { launch, openViewer, press, type Viewer } from "./viewer.js";
import { startWorld, type Talk, type World } from "./world.js";

interface Context {
  world: World;
  browser: Browser;
  proxy: TcpProxy;
  talk: Talk;
  /** Connected through the proxy. */
  viewer: Viewer;
}

const page = suite<Context>("the page: connections that end");

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
  context.proxy = await startProxy(context.world.url);
  context.viewer = await openViewer(context.browser, context.proxy.url);
  await context.viewer.pair(await context.world.pairingCode());
});

page.after.each(async ({ viewer, proxy }) => {
  assert.equal(viewer.faults, [], "no other host, no violation of the policy, no exception");
  await viewer.close();
  await proxy.close();
});

const send = (viewer: Viewer) => press(viewer.page.getByRole("button", { name: "Send answer" }));

/** The frames of answers and cancellations that a page has sent. */
async function answersSent(context: BrowserContext, viewer: Viewer): Promise<readonly string[]> {
  const sent: string[] = [];
  const client = await context.newCDPSession(viewer.page);
  await client.send("Network.enable");
  client.on("Network.webSocketFrameSent", ({ response }) => {
    if (/input_(answer|cancel)/.test(response.payloadData)) sent.push(response.payloadData);
  });
  return sent;
}

page(
  "[8.10] an answer whose reply is lost is uncertain until its receipt is read, and is never sent again",
  async ({ talk, viewer, proxy }) => {
    const question = await talk.ask("Which?", ["One", "Two"]);
    await viewer.open(talk, question);
    const sent = await answersSent(viewer.context, viewer);
    await viewer.page.getByRole("radio", { name: "Two" }).check();
    proxy.holdReplies();
    await send(viewer);
    await talk.until(question.requestId, ({ status }) => status === "submitted");
    proxy.cut();
    await viewer.page.getByRole("alert").getByText("It is not known whether this was stored").waitFor();
    assert.not.match(await viewer.text(), /Answer stored/);
    proxy.restore();
    await viewer.page.getByRole("heading", { name: "Answer stored" }).waitFor();
    assert.match(await viewer.text(), /By you, on this device/);
    assert.is(sent.length, 1);
  },
);

page(
  "[8.10] an answer that never arrived is said to be that, and is sent again only by the person",
  async ({ talk, viewer, proxy }) => {
    const question = await talk.ask("Which?", ["One", "Two"]);
    await viewer.open(talk, question);
    const sent = await answersSent(viewer.context, viewer);
    await viewer.page.getByRole("radio", { name: "One" }).check();
    proxy.dropRequests();
    await send(viewer);
    await viewer.page.getByRole("button", { name: "Sending…" }).waitFor();
    proxy.cut();
    await viewer.page.getByRole("alert").getByText("It is not known whether this was stored").waitFor();
    proxy.restore();
    await viewer.page.getByText("It was not stored: the question still waits.").waitFor();
    assert.is(sent.length, 1, "the page does not try again");
    assert.is((await talk.receipt(question.requestId)).status, "pending");
    await send(viewer);
    await viewer.page.getByRole("heading", { name: "Answer stored" }).waitFor();
    assert.is(sent.length, 2);
  },
);

page(
  "what is written survives the loss of the connection; nothing can be sent before all is read again",
  async ({ talk, viewer, proxy }) => {
    const question = await talk.ask("What should it say?");
    await viewer.open(talk, question);
    await viewer.page.getByLabel("Your answer").fill("half a thou");
    proxy.cut();
    await viewer.page.getByText("No connection to the service since").waitFor();
    assert.ok(await viewer.page.getByRole("button", { name: "Send answer" }).isDisabled());
    await viewer.page.getByLabel("Your answer").fill("half a thought");
    proxy.restore();
    await viewer.page.getByText("Connected", { exact: true }).waitFor();
    assert.is(await viewer.page.getByLabel("Your answer").inputValue(), "half a thought");
    await send(viewer);
    await viewer.page.getByRole("heading", { name: "Answer stored" }).waitFor();
    assert.equal((await talk.receipt(question.requestId)).answer, { kind: "text", text: "half a thought" });
  },
);

page(
  "a question that was cancelled by a restart of the service is shown as that once it is back",
  async ({ talk, viewer, world }) => {
    const question = await talk.ask("Still here?", ["Yes", "No"]);
    await viewer.open(talk, question);
    await world.restart();
    await viewer.page.getByRole("heading", { name: "Cancelled" }).waitFor();
    assert.match(await viewer.text(), /The service was restarted while it waited/);
  },
);

page(
  "a revoked device's view ends at once, and its token is gone from the browser",
  async ({ talk, viewer, world }) => {
    const question = await talk.ask("Secret plans?", ["Yes", "No"]);
    await viewer.open(talk, question);
    const devices = await world.devices();
    await world.operator.call("device_revoke", { deviceId: devices.at(-1)!.deviceId });
    await viewer.page.getByRole("heading", { name: "Pair this device" }).waitFor();
    const text = await viewer.text();
    assert.match(text, /This device was revoked/);
    assert.not.match(text, /Secret plans/);
    assert.is(await viewer.page.evaluate("localStorage.length + sessionStorage.length"), 0);
    await viewer.page.reload();
    await viewer.page.getByRole("heading", { name: "Pair this device" }).waitFor();
  },
);

page(
  "a read-only device sees the question and has no way to answer it; a change of its mode is noticed",
  async ({ talk, world, browser }) => {
    const viewer = await openViewer(browser, world.url);
    await viewer.pair(await world.pairingCode("read-only"), "Wall display");
    const question = await talk.ask("Which?", ["One", "Two"]);
    await viewer.page.goto(`${world.url}/#/question/${talk.conversationId}/${question.requestId}`);
    await viewer.page.getByText("Read-only: this device shows questions").waitFor();
    await viewer.page.getByRole("radio", { name: "One" }).waitFor();
    assert.ok(await viewer.page.getByRole("radio", { name: "One" }).isDisabled());
    assert.is(await viewer.page.getByRole("button", { name: /Send|Cancel/ }).count(), 0);

    const device = (await world.devices()).find(({ name }) => name === "Wall display")!;
    await world.operator.call("device_mode", { deviceId: device.deviceId, mode: "active" });
    await viewer.page.getByRole("button", { name: "Check again" }).click();
    await viewer.page.getByRole("radio", { name: "One" }).check();
    // made read-only between choosing and sending: the service refuses, and the page learns from that
    await world.operator.call("device_mode", { deviceId: device.deviceId, mode: "read-only" });
    await send(viewer);
    await viewer.page.getByText("it can see questions, not answer them").waitFor();
    await viewer.page.getByText("Read-only: this device shows questions").waitFor();
    assert.is((await talk.receipt(question.requestId)).status, "pending");
    assert.equal(viewer.faults, []);
    await viewer.close();
  },
);

page("asking again who it is, when the page comes into view, keeps the live view", async ({ talk, viewer }) => {
  await viewer.page.getByText("Connected", { exact: true }).waitFor();
  const client = await viewer.context.newCDPSession(viewer.page);
  await client.send("Network.enable");
  const asked = new Promise<void>((resolve) => {
    client.on("Network.webSocketFrameReceived", ({ response }) => {
      if (response.payloadData.includes('"principal"')) resolve();
    });
  });
  await viewer.page.evaluate("document.dispatchEvent(new Event('visibilitychange'))");
  await asked;
  await talk.ask("Are you there?", ["Yes", "No"]);
  await viewer.page.getByRole("link", { name: /Are you there/ }).waitFor();
});

page(
  "without a network the installed page opens and says that it is offline; with it, it goes on",
  async ({ talk, viewer, proxy }) => {
    const { page: tab } = viewer;
    await tab.evaluate("navigator.serviceWorker.ready.then(() => undefined)");
    await talk.ask("Kept nowhere?", ["Yes", "No"]);
    await tab.getByRole("link", { name: /Kept nowhere/ }).waitFor();
    proxy.cut();
    await tab.reload();
    await tab.getByText("No connection to the service since").waitFor();
    assert.not.match(await viewer.text(), /Kept nowhere/, "no answer of the service is kept for later");
    const cached = await tab.evaluate(
      "caches.keys().then((names) => Promise.all(names.map((name) => caches.open(name).then((cache) => cache.keys())))).then((all) => all.flat().map(({ url }) => new URL(url).pathname))",
    );
    assert.ok((cached as string[]).every((path) => /^\/(|assets\/.*|icon.*|manifest\.webmanifest)$/.test(path)));
    proxy.restore();
    await tab.getByRole("link", { name: /Kept nowhere/ }).waitFor();
  },
);

page(
  "a question that arrives while the page is out of view is announced by a notification, once allowed",
  async ({ talk, viewer, proxy, world }) => {
    await viewer.context.grantPermissions(["notifications"], { origin: proxy.url });
    await viewer.page.reload();
    await viewer.page.evaluate("navigator.serviceWorker.ready.then(() => undefined)");
    await viewer.page.getByRole("button", { name: "Notify me" }).click();
    await viewer.page.getByRole("button", { name: "Notify me" }).waitFor({ state: "detached" });
    const shown = () =>
      viewer.page.evaluate(
        "navigator.serviceWorker.ready.then((worker) => worker.getNotifications()).then((all) => all.map(({ title, body }) => title + ': ' + body))",
      ) as Promise<string[]>;
    await talk.ask("In view?", ["Yes", "No"]);
    await viewer.page.getByRole("link", { name: /In view/ }).waitFor();
    assert.equal(await shown(), [], "what is in view needs none");
    await viewer.page.evaluate(
      "Object.defineProperty(document, 'hidden', { get: () => true, configurable: true }); document.dispatchEvent(new Event('visibilitychange'))",
    );
    await (await world.conversation("Second")).ask("Out of view?");
    await viewer.page.waitForFunction(
      "navigator.serviceWorker.ready.then((worker) => worker.getNotifications()).then((all) => all.length === 1)",
    );
    assert.equal(await shown(), ["Second: Out of view?"]);
  },
);

page.run();
