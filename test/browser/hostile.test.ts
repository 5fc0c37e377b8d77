import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { type Browser, chromium, type Frame, type Page } from "playwright-core";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Client } from "../crash/tools/client.js";
import { ServiceProcess, withDirectory } from "../crash/tools/process.js";

const test = suite("hostile pages");

/** A name that its owner has pointed at this machine, as DNS rebinding does. */
const REBOUND = "rebound.example";

async function withBrowser(
  task: (browser: Browser, service: ServiceProcess, evil: number) => Promise<void>,
): Promise<void> {
  await withDirectory(async (directory) => {
    const service = await ServiceProcess.start({ data: join(directory, "data"), logLevel: "warn" });
    const evil = createServer((_request, response) => {
      response.setHeader("content-type", "text/html");
      response.end("<!doctype html><title>evil</title>");
    });
    await new Promise<void>((resolve) => evil.listen(0, "127.0.0.1", resolve));
    const browser = await chromium.launch({
      executablePath: process.env["CHROMIUM"] ?? "/usr/bin/chromium",
      args: ["--no-sandbox", "--disable-dev-shm-usage", `--host-resolver-rules=MAP ${REBOUND} 127.0.0.1`],
    });
    try {
      await task(browser, service, (evil.address() as AddressInfo).port);
    } finally {
      await browser.close();
      evil.close();
      evil.closeAllConnections();
      await service.kill();
    }
  });
}

/** What becomes of a page's socket: the first frame it is sent, or `closed`. A program of the page's, as text. */
const socketProgram = (url: string, token: string): string => `
  new Promise((resolve) => {
    const socket = new WebSocket(${JSON.stringify(`${url.replace(/^http/, "ws")}/v1/socket`)}, ["clankie.v1"]);
    const params = { schemaVersion: 1, token: ${JSON.stringify(token)} };
    socket.onopen = () => socket.send(JSON.stringify({ jsonrpc: "2.0", id: 1, method: "authenticate", params }));
    socket.onmessage = ({ data }) => resolve(String(data));
    socket.onclose = () => resolve("closed");
  })`;

const socketFrom = (page: Page | Frame, url: string, token: string): Promise<string> =>
  page.evaluate<string>(socketProgram(url, token));

/** The text a page gets, or `unreadable`. */
const readFrom = (page: Page, url: string): Promise<string> =>
  page.evaluate(
    (url) =>
      fetch(url).then(
        async (response) => `${response.status} ${await response.text()}`,
        () => "unreadable",
      ),
    url,
  );

test("[5] a page of another origin opens no socket and reads nothing, even with a token that is good", () =>
  withBrowser(async (browser, service, evil) => {
    const page = await browser.newPage();
    for (const origin of [`http://127.0.0.1:${evil}`, `http://localhost:${evil}`]) {
      await page.goto(origin);
      assert.is(await socketFrom(page, service.url, service.operatorToken), "closed", origin);
      for (const path of ["/", "/healthz", "/metrics", "/v1/backup"]) {
        assert.is(await readFrom(page, service.url + path), "unreadable", `${origin} reads ${path}`);
      }
    }
    // A page without an origin of its own: a sandboxed frame says `null`.
    await page.setContent(`<iframe sandbox="allow-scripts" srcdoc="<title>frame</title>"></iframe>`);
    const frame = page.frames().find((each) => each.parentFrame() !== null);
    assert.ok(frame, "there is no frame");
    if (frame !== undefined) assert.is(await socketFrom(frame, service.url, service.operatorToken), "closed");
    // The service's own page may.
    await page.goto(service.url);
    assert.match(await socketFrom(page, service.url, service.operatorToken), /"kind":"operator"/);
  }));

test("[5] a name that was rebound to the service reaches nothing of it", () =>
  withBrowser(async (browser, service, evil) => {
    const port = new URL(service.url).port;
    const page = await browser.newPage();
    const response = await page.goto(`http://${REBOUND}:${port}/`);
    assert.is(response?.status(), 403);
    // Its own page, whose name now leads here: same origin for the browser, but not a name of the service.
    for (const path of ["/healthz", "/readyz", "/v1/socket"]) {
      assert.match(await readFrom(page, `http://${REBOUND}:${port}${path}`), /^403 /, path);
    }
    const own = `http://${REBOUND}:${port}`;
    assert.is(await socketFrom(page, own, service.operatorToken), "closed");
    await page.goto(`http://${REBOUND}:${evil}/`);
    for (const url of [own, service.url]) {
      assert.is(await socketFrom(page, url, service.operatorToken), "closed", url);
    }
    const client = await Client.open(service.url, service.operatorToken);
    await client.call("service_status", {});
    await client.close();
  }));

test.run();
