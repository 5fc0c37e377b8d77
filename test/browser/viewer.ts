import { type Browser, type BrowserContext, chromium, type Locator, type Page } from "playwright-core";
import type { Question } from "../../protocol/question.js";
import type { Talk, World } from "./world.js";

const CHROMIUM = process.env["CHROMIUM"] ?? "/usr/bin/chromium";
const FLAGS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

export const launch = (): Promise<Browser> =>
  chromium.launch({ executablePath: CHROMIUM, headless: true, args: FLAGS });

interface Look {
  readonly width?: number;
  readonly height?: number;
  readonly dark?: boolean;
  readonly touch?: boolean;
}

/** A browser of its own at the page, and everything it did that it should not have done. */
export interface Viewer {
  readonly page: Page;
  readonly context: BrowserContext;
  /** Requests to other hosts, violations of the policy, exceptions. */
  readonly faults: readonly string[];
  pair(code: string, name?: string): Promise<void>;
  /** Opens a question and waits until it can be answered. */
  open(talk: Pick<Talk, "conversationId">, question: Question): Promise<void>;
  /** Presses once the element has been in its place long enough for a press to count. */
  press(target: Locator): Promise<void>;
  /** The whole text of the page. */
  text(): Promise<string>;
  close(): Promise<void>;
}

export async function openViewer(browser: Browser, url: string, look: Look = {}): Promise<Viewer> {
  const context = await browser.newContext({
    viewport: { width: look.width ?? 390, height: look.height ?? 844 },
    colorScheme: look.dark === true ? "dark" : "light",
    hasTouch: look.touch === true,
    reducedMotion: "reduce",
  });
  const faults: string[] = [];
  const host = new URL(url).host;
  context.on("request", (request) => {
    const to = new URL(request.url());
    if (to.host !== host) faults.push(`request to ${to.origin}`);
    if (to.search !== "") faults.push(`a query in ${to.pathname}`);
  });
  const page = await context.newPage();
  page.on("pageerror", (error) => faults.push(`exception: ${error.message}`));
  page.on("websocket", (socket) => {
    if (new URL(socket.url()).host !== host || socket.url().includes("?")) faults.push(`socket to ${socket.url()}`);
  });
  page.on("console", (message) => {
    if (/Content Security Policy|Trusted/i.test(message.text())) faults.push(message.text());
  });
  await page.goto(`${url}/`);

  return {
    page,
    context,
    faults,
    async pair(code, name = "Test phone") {
      await page.getByLabel("One-time code").fill(code);
      await page.getByLabel("Name of this device").fill(name);
      await page.getByRole("button", { name: "Pair" }).click();
      await page.getByRole("heading", { name: "Waiting for you" }).waitFor();
    },
    async open(talk, question) {
      // by the browser's own navigation within the page, as a notification or a link would
      await page.goto(`${url}/#/question/${talk.conversationId}/${question.requestId}`);
      await page.locator(".answer textarea:not([readonly]), .answer fieldset:not([disabled])").first().waitFor();
    },
    press,
    text: () =>
      page
        .locator("body")
        .allInnerTexts()
        .then((texts) => texts.join("\n")),
    close: () => context.close(),
  };
}

export async function press(target: Locator): Promise<void> {
  await target.and(target.page().locator(":not([data-moved]):not([disabled])")).click();
}

/** A paired device at the page. */
export async function pairedViewer(
  browser: Browser,
  world: World,
  look?: Look & { readonly name?: string },
): Promise<Viewer> {
  const viewer = await openViewer(browser, world.url, look);
  await viewer.pair(await world.pairingCode(), look?.name);
  return viewer;
}
