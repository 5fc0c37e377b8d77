// Makes the pictures of the Take Control page in docs/images/ from the real page, the real service and Chromium:
// `node scripts/screenshots-page.mjs`. The pictures are committed; run it again when the page has changed.
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "./project.mjs";
import { setUp } from "./setup.mjs";

await setUp();
const { startWorld } = await import("../dist/test/browser/world.js");
const { launch, openViewer } = await import("../dist/test/browser/viewer.js");

const target = join(root, "docs/images");
mkdirSync(target, { recursive: true });
const world = await startWorld();
const browser = await launch();

async function shoot(page, name) {
  // the directory is another one each time: the picture shows the page and not this machine
  await page.evaluate(
    `for (const path of document.querySelectorAll("bdi")) path.textContent = "/home/ada/src/payments"`,
  );
  writeFileSync(join(target, `page-${name}.png`), await page.screenshot());
}

try {
  const payments = await world.conversation("payments");
  const website = await world.conversation("website");
  const { runId } = await world.operator.call("conversation_send", {
    conversationId: payments.conversationId,
    message: "Please make the export faster.",
  });
  await payments.agent.call("run_claim", { runId });
  const event = (body) => payments.agent.call("run_event", { runId, event: body });
  await event({ type: "tool", toolCallId: "1", name: "read_file", phase: "completed", summary: "src/export.ts" });
  await event({ type: "message", text: "The export reads every row twice. There are two ways to fix that." });
  const question = await payments.ask(
    "The export reads every row twice. How should I fix it?",
    [
      { label: "Stream the rows once", description: "Less memory, a larger change: three files." },
      { label: "Cache the first read", description: "A small change; about 200 MB for the largest customer." },
      { label: "Leave it, only add a test" },
    ],
    { allowFreeform: true },
  );
  await payments.agent.call("run_settle", { runId, state: "completed" });
  const text = await website.ask("What should the heading of the pricing page say?");

  const phone = await openViewer(browser, world.url);
  await phone.page.getByLabel("One-time code").fill("K7QM-4XPD");
  await phone.page.getByLabel("Name of this device").fill("Ada's phone");
  await shoot(phone.page, "pairing");
  await phone.pair(await world.pairingCode(), "Ada's phone");
  await phone.page.getByRole("link", { name: /pricing page/ }).waitFor();
  await shoot(phone.page, "inbox");
  await phone.open(payments, question);
  await phone.page.getByRole("radio", { name: /Stream/ }).check();
  await shoot(phone.page, "question");

  const desk = await openViewer(browser, world.url, { width: 1280, height: 800, dark: true });
  await desk.pair(await world.pairingCode(), "Ada's desk");
  await desk.open(payments, question);
  await desk.page.getByRole("radio", { name: /Cache/ }).check();
  await shoot(desk.page, "desktop-dark");

  await phone.press(phone.page.getByRole("button", { name: "Send answer" }));
  await phone.page.getByRole("heading", { name: "Answer stored" }).waitFor();
  await shoot(phone.page, "receipt");
  await phone.open(website, text);
  await shoot(phone.page, "text");
} finally {
  await browser.close();
  await world.stop();
}
