import axe from "axe-core";
import type { Browser, Page } from "playwright-core";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { launch, openViewer, type Viewer } from "./viewer.js";
import { startWorld, type Talk, type World } from "./world.js";

interface Context {
  world: World;
  browser: Browser;
}

const page = suite<Context>("the page: for everybody");

page.before(async (context) => {
  context.world = await startWorld();
  context.browser = await launch();
});

page.after(async ({ browser, world }) => {
  await browser?.close();
  await world?.stop();
});

interface Fault {
  readonly id: string;
  readonly impact: string;
  readonly nodes: readonly string[];
}

/** What axe-core finds that is serious. */
async function seriousFaults(tab: Page): Promise<readonly Fault[]> {
  await tab.evaluate(axe.source);
  return (await tab.evaluate(
    `axe.run(document, { resultTypes: ["violations"] }).then(({ violations }) => violations
      .filter(({ impact }) => impact === "serious" || impact === "critical")
      .map(({ id, impact, nodes }) => ({ id, impact, nodes: nodes.map(({ html, failureSummary }) => html + " " + failureSummary) })))`,
  )) as readonly Fault[];
}

async function isWithinWidth(tab: Page): Promise<boolean> {
  return (await tab.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")) === true;
}

/** Every view of the page, one after another; `look` is called at each. */
async function walk(viewer: Viewer, world: World, talk: Talk, look: (view: string) => Promise<void>): Promise<void> {
  const { page: tab } = viewer;
  await look("pairing");
  await tab.getByLabel("One-time code").fill("0000-0000");
  await tab.getByRole("button", { name: "Pair" }).click();
  await tab.getByRole("alert").waitFor();
  await look("pairing, refused");
  await viewer.pair(await world.pairingCode());
  await look("inbox");
  const question = await talk.ask(
    `Which way through the ${"very".repeat(40)} long word?\nAnd a second line.`,
    [{ label: "One", description: "With a description" }, "x".repeat(200), "שלום — right to left"],
    { allowFreeform: true, expiresInSeconds: 3_600 },
  );
  await tab.getByRole("link", { name: /Which way/ }).waitFor();
  await look("inbox with a question");
  await viewer.open(talk, question);
  await look("question");
  await tab.getByRole("radio", { name: /own words/ }).check();
  await tab.getByLabel("Your answer").fill("my own words");
  await look("question with text");
  await viewer.press(tab.getByRole("button", { name: "Cancel question" }));
  await look("confirmation");
  await tab.getByRole("button", { name: "Keep it" }).click();
  await world.operator.call("conversation_send", { conversationId: talk.conversationId, message: "moved on" });
  await tab.getByRole("button", { name: "Read the question again" }).waitFor();
  await look("question, conversation changed");
  await tab.getByRole("button", { name: "Read the question again" }).click();
  await viewer.press(tab.getByRole("button", { name: "Send answer" }));
  await tab.getByRole("heading", { name: "Answer stored" }).waitFor();
  await look("receipt");
  await tab.goto(`${world.url}/#/conversations`);
  await tab
    .getByRole("link", { name: /payments/ })
    .first()
    .waitFor();
  await look("conversations");
  await tab.goto(`${world.url}/#/conversation/${talk.conversationId}`);
  await tab.getByText("moved on").waitFor();
  await tab.getByText(/question.? resolved/).click();
  await look("conversation");
  await tab.goto(`${world.url}/#/device`);
  await tab.getByRole("heading", { name: "This device", exact: true }).waitFor();
  await look("this device");
}

for (const { dark, width, height } of [
  { dark: false, width: 1280, height: 800 },
  { dark: true, width: 320, height: 568 },
]) {
  const look = dark ? "dark" : "light";
  page(`axe-core finds no serious fault in any view, and none is too wide: ${look}, ${width} wide`, async (context) => {
    const talk = await context.world.conversation("payments");
    const viewer = await openViewer(context.browser, context.world.url, { dark, width, height });
    const found: { readonly view: string; readonly faults: readonly Fault[] }[] = [];
    const tooWide: string[] = [];
    await walk(viewer, context.world, talk, async (view) => {
      const faults = await seriousFaults(viewer.page);
      if (faults.length > 0) found.push({ view, faults });
      if (!(await isWithinWidth(viewer.page))) tooWide.push(view);
    });
    assert.equal(found, []);
    assert.equal(tooWide, []);
    assert.equal(viewer.faults, []);
    await viewer.close();
  });
}

page("options and buttons are large enough for a thumb", async ({ world, browser }) => {
  const talk = await world.conversation("payments");
  const viewer = await openViewer(browser, world.url, { width: 320 });
  await viewer.pair(await world.pairingCode());
  const question = await talk.ask("Which?", ["One", "Two"]);
  await viewer.open(talk, question);
  for (const target of await viewer.page.locator(".option, .answer button, .tab, .back").all()) {
    const box = await target.boundingBox();
    assert.ok(box !== null && box.height >= 48 && box.width >= 48, JSON.stringify(box));
  }
  await viewer.close();
});

page(
  "a question is answered with the keyboard alone, and the focus is where a reader expects it",
  async ({ world, browser }) => {
    const talk = await world.conversation("payments");
    const viewer = await openViewer(browser, world.url, { width: 1280, height: 800 });
    await viewer.pair(await world.pairingCode());
    const { page: tab } = viewer;
    const question = await talk.ask("Keyboard?", ["One", "Two"]);
    await tab.getByRole("link", { name: /Keyboard/ }).waitFor();
    const until = async (holds: string): Promise<void> => {
      for (let presses = 0; presses < 30; presses += 1) {
        if ((await tab.evaluate(holds)) === true) return;
        await tab.keyboard.press("Tab");
      }
      assert.unreachable(`the focus never came to ${holds}`);
    };
    await until("document.activeElement.matches('a.row') && document.activeElement.textContent.includes('Keyboard')");
    await tab.keyboard.press("Enter");
    await tab.locator("fieldset:not([disabled])").waitFor();
    assert.is(await tab.evaluate("document.activeElement.textContent"), "Keyboard?", "the question is read first");
    await until("document.activeElement.matches('input[type=radio]')");
    await tab.keyboard.press("ArrowDown");
    await until("document.activeElement.matches('button[type=submit]')");
    await tab.locator("[data-moved]").first().waitFor({ state: "detached" });
    await tab.keyboard.press("Enter");
    await tab.getByRole("heading", { name: "Answer stored" }).waitFor();
    assert.is(await tab.evaluate("document.activeElement.textContent"), "Answer stored");
    const stored = await talk.receipt(question.requestId);
    assert.equal(stored.answer, { kind: "choice", optionId: question.options[1]!.optionId });
    await viewer.close();
  },
);

page.run();
