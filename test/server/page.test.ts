import { once } from "node:events";
import { createServer, type IncomingHttpHeaders, request } from "node:http";
import type { AddressInfo } from "node:net";
import { gunzipSync } from "node:zlib";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { loadPage, servePage } from "../../server/page.js";

const page = loadPage();
const server = createServer((incoming, response) => {
  if (!servePage(page, incoming, response)) response.writeHead(404).end("not the page's");
});

test.before(async () => {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
});
test.after(() => {
  server.close();
});

interface Reply {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

async function ask(path: string, headers: Readonly<Record<string, string>> = {}, method = "GET"): Promise<Reply> {
  const { port } = server.address() as AddressInfo;
  const sent = request({ host: "127.0.0.1", port, path, method, headers, agent: false }).end();
  const [response] = await once(sent, "response");
  const parts: Buffer[] = [];
  for await (const part of response) parts.push(part as Buffer);
  return { status: response.statusCode, headers: response.headers, body: Buffer.concat(parts) };
}

test("[5] GET / is the page, and everything it names is served", async () => {
  const { status, headers, body } = await ask("/");
  assert.is(status, 200);
  assert.is(headers["content-type"], "text/html; charset=utf-8");
  const named = [...body.toString().matchAll(/(?:src|href)="([^"]+)"/g)].map(([, path]) => path ?? "");
  assert.ok(named.length >= 5);
  for (const path of named) assert.is((await ask(path)).status, 200, path);
});

test("every file carries the strict policy, and the page has no inline script or style", async () => {
  for (const path of page.keys()) {
    const { headers } = await ask(path);
    const policy = String(headers["content-security-policy"]);
    assert.match(policy, /^default-src 'none'; script-src 'self'; style-src 'self';/);
    for (const rule of ["base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'", "connect-src 'self'"])
      assert.ok(policy.includes(rule), rule);
    assert.not.match(policy, /unsafe|https?:|\*/);
    assert.is(headers["x-content-type-options"], "nosniff");
    assert.is(headers["referrer-policy"], "no-referrer");
    assert.is(headers["cross-origin-opener-policy"], "same-origin");
  }
  const html = (await ask("/")).body.toString();
  assert.not.match(html, /<script(?![^>]*src=)|<style|\son\w+=|style=/);
  assert.not.match(html, /https?:\/\//);
});

test("GET /chart is a page of its own, and no part of what a phone keeps", async () => {
  const { status, headers, body } = await ask("/chart");
  assert.is(status, 200);
  assert.is(headers["content-type"], "text/html; charset=utf-8");
  const html = body.toString();
  assert.not.match(html, /<script(?![^>]*src=)|<style|\son\w+=|style=|https?:\/\//);
  const named = [...html.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, path]) => path ?? "");
  assert.is(named.length, 3);
  for (const path of named) assert.is((await ask(path)).status, 200, path);
  assert.not.match((await ask("/sw.js")).body.toString(), /\/chart|assets\/chart/);
});

test("what changes is asked for again, what is named by its content is kept for good", async () => {
  const first = await ask("/");
  assert.is(first.headers["cache-control"], "no-cache");
  const again = await ask("/", { "if-none-match": String(first.headers.etag) });
  assert.is(again.status, 304);
  assert.is(again.body.length, 0);
  assert.is((await ask("/sw.js")).headers["cache-control"], "no-cache");
  const asset = [...page.keys()].find((path) => path.startsWith("/assets/"));
  assert.match(String((await ask(asset ?? "")).headers["cache-control"]), /immutable/);
});

test("who can unpack gets it packed, under a tag of its own", async () => {
  const [plain, packed] = [await ask("/"), await ask("/", { "accept-encoding": "br, gzip;q=0.5" })];
  assert.is(packed.headers["content-encoding"], "gzip");
  assert.equal(gunzipSync(packed.body), plain.body);
  assert.is.not(packed.headers.etag, plain.headers.etag);
  assert.is((await ask("/", { "accept-encoding": "gzip;q=0" })).headers["content-encoding"], undefined);
});

test("only exact paths are the page's, and only to read", async () => {
  for (const path of [
    "/index.html",
    "/files.json",
    "/assets/",
    "/assets/../files.json",
    "/%2e%2e/package.json",
    "//",
    "/sw.js/",
  ])
    assert.is((await ask(path)).status, 404, path);
  assert.is((await ask("/", {}, "POST")).status, 405);
  const head = await ask("/", {}, "HEAD");
  assert.is(head.status, 200);
  assert.is(head.body.length, 0);
});

test("the page is small: what a phone has to load stays under 100 kB", async () => {
  const html = (await ask("/")).body.toString();
  let total = 0;
  for (const path of page.keys())
    if (path === "/" || (path.startsWith("/assets/") && html.includes(path)))
      total += (await ask(path, { "accept-encoding": "gzip" })).body.length;
  assert.ok(total < 100_000, `${total} bytes`);
});

test.run();
