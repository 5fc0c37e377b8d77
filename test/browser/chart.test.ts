import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { Browser, BrowserContext, Locator, Page } from "playwright-core";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { World } from "../world.js";
import { launch } from "./viewer.js";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

interface Context {
  world: World;
  browser: Browser;
}

const test = suite<Context>("the chart page");

test.before(async (context) => {
  context.world = await World.make({ service: "process", args: ["--retain-events", "5"] });
  context.browser = await launch();
});

test.after(async ({ browser, world }) => {
  await browser?.close();
  await world?.end();
});

interface Look {
  readonly width?: number;
  readonly height?: number;
  readonly dark?: boolean;
}

interface Viewer {
  readonly page: Page;
  readonly context: BrowserContext;
  /** Requests to other hosts, violations of the policy, exceptions, a token in a URL. */
  readonly faults: readonly string[];
  enter(token: string): Promise<void>;
  choose(conversationId: string): Promise<void>;
  /** The lit states. */
  lit(light?: "now" | "maybe"): Promise<readonly string[]>;
}

async function open({ browser, world }: Context, look: Look = {}): Promise<Viewer> {
  const context = await browser.newContext({
    viewport: { width: look.width ?? 1280, height: look.height ?? 900 },
    colorScheme: look.dark === true ? "dark" : "light",
    reducedMotion: "reduce",
  });
  const faults: string[] = [];
  const { host } = new URL(world.url);
  context.on("request", (request) => {
    const to = new URL(request.url());
    if (to.host !== host || to.search !== "" || to.hash !== "") faults.push(`request to ${request.url()}`);
  });
  const page = await context.newPage();
  page.on("pageerror", (error) => faults.push(`exception: ${error.message}`));
  page.on("console", (message) => {
    if (message.type() === "error" || /Content Security Policy/i.test(message.text())) faults.push(message.text());
  });
  await page.goto(`${world.url}/chart`);
  return {
    page,
    context,
    faults,
    async enter(token) {
      await page.getByLabel("Operator's token").fill(token);
      await page.getByRole("button", { name: "Show conversations" }).click();
    },
    async choose(conversationId) {
      await page.getByLabel("Conversation", { exact: true }).selectOption(conversationId);
      await page.getByText("Looked up by the service").waitFor();
    },
    lit: (light = "now") =>
      page
        .locator(`[data-light="${light}"]`)
        .evaluateAll((chips) => chips.map((chip) => String(chip.getAttribute("data-state")))),
  };
}

const textOf = async (part: Locator): Promise<string> => (await part.textContent()) ?? "";

const state = (viewer: Viewer, id: string, light = "now") =>
  viewer.page.locator(`[data-state="${id}"][data-light="${light}"]`).waitFor();

test("[2] the operator sees the states lit, and a transition as it happens with its guard, rule and effects", async (context) => {
  const { world } = context;
  const { conversationId, target, optionIds } = await world.pending();
  const viewer = await open(context);
  const { page } = viewer;
  await viewer.enter(await world.token("operator"));
  await viewer.choose(conversationId);
  assert.equal(await viewer.lit(), ["driver.service", "question.pending", "turn.idle"]);
  assert.is(await page.locator("svg.chart .now").count(), 3);
  await page.getByText("Nothing has happened since you look").waitFor();

  const answer = { kind: "text", text: "a secret of the owner" } as const;
  await (await world.captain()).ok("input_answer", { ...target, answer });
  const refused = page.locator(".happening-refused");
  await refused.getByText("refused: not_permitted").waitFor();
  assert.match(await textOf(refused), /question: stays pending \[6\.1\]if caller may not answer/);
  assert.equal(await viewer.lit(), ["driver.service", "question.pending", "turn.idle"]);

  await world.operator.ok("input_answer", { ...target, answer: { kind: "choice", optionId: optionIds[0]! } });
  await state(viewer, "question.submitted");
  const newest = page.locator(".happening").first();
  await newest.getByText("question.answer").waitFor();
  assert.match(await textOf(newest), /stored[\s\S]*question: pending → submitted \[6\.9\]otherwiseaccept answer/);
  assert.equal(await viewer.lit(), ["driver.service", "question.submitted", "turn.accepted"]);
  assert.ok((await page.locator("svg.chart .took").count()) >= 1);
  assert.not.match(await textOf(page.locator("body")), /secret/);
  assert.equal(viewer.faults, []);
  await viewer.context.close();
});

test("[2] the token of anybody else is refused with a clear text, and is kept nowhere", async (context) => {
  const { world } = context;
  const device = await world.device("active");
  const viewer = await open(context);
  const { page } = viewer;
  const alert = page.getByRole("alert");
  for (const [token, why] of [
    [await world.token("captain"), /for the operator\. That is the token of a captain/],
    [device.token, /That is the token of a device/],
    ["x".repeat(43), /does not accept this token/],
  ] as const) {
    await viewer.enter(token);
    await alert.filter({ hasText: why }).waitFor();
    assert.is(await page.getByLabel("Conversation", { exact: true }).count(), 0);
    assert.is(await page.getByLabel("Operator's token").inputValue(), "");
  }
  await viewer.enter(await world.token("operator"));
  await page.getByRole("button", { name: "Forget the token" }).waitFor();
  const kept = await page.evaluate(
    "JSON.stringify([{ ...localStorage }, { ...sessionStorage }, location.href, document.cookie])",
  );
  assert.is(kept, JSON.stringify([{}, {}, `${world.url}/chart`, ""]));
  await page.getByRole("button", { name: "Forget the token" }).click();
  await page.getByLabel("Operator's token").waitFor();
  assert.equal(viewer.faults, []);
  await viewer.context.close();
});

test("[8] a trimmed history is replayed step by step, by buttons and keys, and nothing is invented", async (context) => {
  const { world } = context;
  const { conversationId, target, optionIds, agent } = await world.pending();
  await world.operator.ok("input_answer", { ...target, answer: { kind: "choice", optionId: optionIds[0]! } });
  const { activeRun } = await world.show(conversationId);
  const { runId } = activeRun!;
  await agent.client.ok("run_claim", { runId });
  await agent.client.ok("run_event", { runId, event: { type: "message", text: "working" } });
  await agent.client.ok("run_event", { runId, event: { type: "activity", phase: "thinking" } });
  await agent.client.ok("run_settle", { runId, state: "completed" });
  await agent.client.ok("request_user_input", { conversationId, kind: "text", prompt: "And now?" });
  const viewer = await open(context);
  const { page } = viewer;
  await viewer.enter(await world.token("operator"));
  await viewer.choose(conversationId);
  await page.getByRole("button", { name: "Replay its history" }).click();
  await page.getByText("Unknown: trimmed. What was before").waitFor();
  assert.equal(await viewer.lit(), []);
  assert.is((await viewer.lit("maybe")).length, 9, "every state is possible");
  assert.is(await page.getByText("unknown: trimmed", { exact: true }).count(), 3);
  assert.is(await page.locator("svg.chart .now").count(), 0);

  const heading = page.getByRole("heading", { level: 2 });
  assert.is(await textOf(heading.first()), "Step 1 of 6");
  await page.getByRole("button", { name: "Last" }).click();
  await heading.filter({ hasText: "Step 6 of 6" }).waitFor();
  assert.equal(await viewer.lit(), ["driver.service", "question.pending", "turn.idle"]);
  await page.keyboard.press("ArrowLeft");
  await heading.filter({ hasText: "Step 5 of 6" }).waitFor();
  assert.match(await textOf(page.locator(".replay-what")), /a run completed/);
  assert.equal(await viewer.lit(), ["driver.service", "turn.idle"]);
  assert.equal(
    await viewer.lit("maybe"),
    ["none", "pending", "submitted", "cancelled"].map((name) => `question.${name}`),
  );
  await page.keyboard.press("Home");
  await heading.filter({ hasText: "Step 1 of 6" }).waitFor();
  await page.keyboard.press("End");
  await heading.filter({ hasText: "Step 6 of 6" }).waitFor();
  await page.getByRole("button", { name: "Back to now" }).click();
  await page.getByText("Looked up by the service").waitFor();
  assert.equal(viewer.faults, []);
  await viewer.context.close();
});

test("[6] why a given principal may or may not answer right now, by its rule", async (context) => {
  const { world } = context;
  const { conversationId, agent } = await world.pending();
  const active = await world.device("active");
  const readOnly = await world.device("read-only");
  const viewer = await open(context);
  const { page } = viewer;
  await viewer.enter(await world.token("operator"));
  await viewer.choose(conversationId);
  const verdict = page.locator(".verdict");
  const says = async (principal: string, words: RegExp): Promise<void> => {
    await page.getByLabel("Principal", { exact: true }).selectOption(principal);
    await verdict.filter({ hasText: words }).waitFor();
  };
  await says("operator/operator", /Yes, with an answer that fits/);
  await says(`device/${active.deviceId}`, /Yes, with an answer that fits/);
  await says(`device/${readOnly.deviceId}`, /No: device_read_only, by section 6\.1/);
  await says("captain/captain", /No: not_permitted, by section 6\.1/);
  await says(`agent/${agent.credentialId}`, /No: not_permitted, by section 6\.1/);

  await world.operator.ok("device_revoke", { deviceId: active.deviceId });
  await says(`device/${active.deviceId}`, /No: device_revoked, by section 6\.1/);
  const { scope } = await world.show(conversationId);
  const { rename } = await import("node:fs/promises");
  await rename(scope.workspaceId!, `${scope.workspaceId!}-moved`);
  await says("operator/operator", /No: question_cancelled, by section 6\.6/);
  assert.match(await textOf(verdict), /the bound directory is gone, moved, or another one/);
  assert.is((await world.show(conversationId)).question?.status, "pending", "looking cancels nothing");
  await world.operator.ok("input_get", { conversationId });
  await says("operator/operator", /Already cancelled: question_cancelled with the receipt, by section 6\.5/);
  assert.equal(viewer.faults, []);
  await viewer.context.close();
});

interface Fault {
  readonly id: string;
  readonly nodes: readonly string[];
}

async function seriousFaults(tab: Page): Promise<readonly Fault[]> {
  await tab.evaluate(AXE);
  return (await tab.evaluate(
    `axe.run(document, { resultTypes: ["violations"] }).then(({ violations }) => violations
      .filter(({ impact }) => impact === "serious" || impact === "critical")
      .map(({ id, nodes }) => ({ id, nodes: nodes.map(({ html, failureSummary }) => html.slice(0, 200) + " " + failureSummary) })))`,
  )) as readonly Fault[];
}

const SHOTS = process.env["SCREENSHOTS"];

for (const { dark, width, height } of [
  { dark: false, width: 390, height: 844 },
  { dark: true, width: 390, height: 844 },
  { dark: false, width: 1280, height: 900 },
  { dark: true, width: 1280, height: 900 },
]) {
  const look = `${dark ? "dark" : "light"}, ${width} wide`;
  test(`axe-core finds no serious fault, and nothing is wider than the window: ${look}`, async (context) => {
    const { world } = context;
    const { conversationId, target, optionIds } = await world.pending();
    const viewer = await open(context, { dark, width, height });
    const { page } = viewer;
    const found: unknown[] = [];
    const lookAt = async (view: string): Promise<void> => {
      const faults = await seriousFaults(page);
      if (faults.length > 0) found.push({ view, faults });
      if ((await page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth")) === true)
        found.push(`${view} is too wide`);
      if (SHOTS !== undefined) {
        await page.screenshot({
          path: `${SHOTS}/chart-${view}-${width}-${dark ? "dark" : "light"}.png`,
          fullPage: true,
        });
      }
    };
    await page.getByLabel("Operator's token").waitFor();
    await lookAt("outside");
    await viewer.enter(await world.token("operator"));
    await viewer.choose(conversationId);
    await (await world.captain()).ok("input_cancel", target);
    await world.operator.ok("input_answer", { ...target, answer: { kind: "choice", optionId: optionIds[0]! } });
    await state(viewer, "question.submitted");
    await page.locator(".happening").first().getByText("question.answer").waitFor();
    await page.locator("summary").first().click();
    await lookAt("live");
    await page.getByRole("button", { name: "Replay its history" }).click();
    await page.getByRole("button", { name: "Last" }).click();
    await lookAt("replay");
    assert.equal(found, []);
    assert.equal(viewer.faults, []);
    await viewer.context.close();
  });
}

test.run();
