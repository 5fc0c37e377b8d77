import { connect } from "node:net";
import { join } from "node:path";
import fc from "fast-check";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { METHODS } from "../../protocol/requests.js";
import { Client } from "../crash/tools/client.js";
import { ServiceProcess, until, withDirectory } from "../crash/tools/process.js";

const test = suite("fuzzing");

/** Chosen by nobody, unless a seed is given to repeat a failure. */
const seed = Number(process.env["CLANKIE_FUZZ_SEED"] ?? Date.now() % 2 ** 31);
const runs = Number(process.env["CLANKIE_FUZZ_RUNS"] ?? 600);

const KNOWN_CODES = new Set([
  "invalid_params",
  "unauthenticated",
  "forbidden",
  "unknown_conversation",
  "ineligible_conversation",
  "question_pending",
  "question_state_unavailable",
  "storage_unavailable",
  "queue_full",
  "rate_limited",
  "frame_too_large",
  "shutting_down",
]);

/** Names that the protocol's parameters have, so that what is made comes near to what is valid. */
const NAMES = [
  "schemaVersion",
  "conversationId",
  "requestId",
  "incarnationId",
  "expectedRevision",
  "answer",
  "kind",
  "text",
  "optionId",
  "prompt",
  "options",
  "label",
  "allowFreeform",
  "scope",
  "workspaceId",
  "runner",
  "command",
  "title",
  "message",
  "after",
  "limit",
  "events",
  "runId",
  "event",
  "state",
  "credentialId",
  "deviceId",
  "code",
  "name",
  "path",
  "harness",
  "__proto__",
  "constructor",
  "toString",
];

const word = fc.oneof(
  fc.constantFrom(
    "",
    "choice",
    "text",
    "workspace",
    "attached",
    "command",
    "agent",
    "captain",
    "completed",
    "/",
    "\u0000",
    "\ud800",
  ),
  fc.uuid(),
  fc.string({ unit: "binary", maxLength: 40 }),
  fc.constantFrom("x".repeat(5_000), "../../etc/passwd", "conversation//head", "0000000000000001", "\u202e\u001b[2J"),
);
const number = fc.oneof(fc.integer(), fc.double(), fc.constantFrom(-1, 0, 1, 2 ** 32, 2 ** 53, 1e308));
const value: fc.Arbitrary<unknown> = fc.letrec((tie) => ({
  any: fc.oneof(
    { depthSize: "small" },
    word,
    number,
    fc.boolean(),
    fc.constant(null),
    fc.array(tie("any"), { maxLength: 10 }),
    fc.dictionary(fc.constantFrom(...NAMES), tie("any"), { maxKeys: 6 }),
  ),
})).any;

/** Requests that are right except for what is taken away, added or exchanged. */
const request = (own: Readonly<Record<string, unknown>>): fc.Arbitrary<object> =>
  fc
    .record({
      method: fc.oneof({ weight: 9, arbitrary: fc.constantFrom(...METHODS) }, { weight: 1, arbitrary: word }),
      near: fc.subarray(Object.keys(own)),
      far: fc.dictionary(fc.constantFrom(...NAMES), value, { maxKeys: 4 }),
      version: fc.oneof({ weight: 9, arbitrary: fc.constant<unknown>(1) }, { weight: 1, arbitrary: value }),
      noise: fc.oneof({ weight: 9, arbitrary: fc.constant({}) }, { weight: 1, arbitrary: fc.constant({ extra: 1 }) }),
    })
    .map(({ method, near, far, version, noise }) => ({
      method,
      params: {
        schemaVersion: version,
        ...Object.fromEntries(near.map((name) => [name, own[name]])),
        ...far,
        ...noise,
      },
    }));

interface Reply {
  readonly error?: {
    readonly code: number;
    readonly message: string;
    readonly data: { readonly code: string; readonly errors?: readonly { readonly path: string }[] };
  };
}

/** What a bare socket is answered, frame by frame. */
function listen(client: Client): Reply[] {
  const replies: Reply[] = [];
  client.socket.removeAllListeners("message");
  client.socket.on("message", (data: Buffer) => {
    const frame = JSON.parse(data.toString("utf8")) as Reply & { readonly method?: string };
    if (frame.method === undefined) replies.push(frame);
  });
  return replies;
}

function namesItsCause({ error }: Reply, sent: string): void {
  if (error === undefined) return;
  const { code, message, data } = error;
  assert.ok(KNOWN_CODES.has(data.code), `${data.code} for ${sent}`);
  assert.type(code, "number");
  assert.ok(message.length > 5 && message.length < 4_000, `${message} for ${sent}`);
  if (data.code === "invalid_params") assert.ok((data.errors?.length ?? 0) > 0, `no fault is named for ${sent}`);
}

test("[5] nearly valid requests of every method are answered with a result or a cause, and nobody else notices", () =>
  withDirectory(async (directory) => {
    const service = await ServiceProcess.start({ data: join(directory, "data"), logLevel: "warn" });
    const bystander = await Client.open(service.url, service.operatorToken);
    const { conversation } = await bystander.call("conversation_create", {
      scope: { kind: "workspace", workspaceId: directory },
    });
    const { conversationId, incarnationId } = conversation;
    const asked = await bystander.call("request_user_input", { conversationId, kind: "text", prompt: "Which one?" });
    const { token } = await bystander.call("credential_issue", { kind: "agent", conversationId });
    const own = {
      conversationId,
      incarnationId,
      requestId: asked.question?.requestId,
      expectedRevision: asked.revision,
      answer: { kind: "text", text: "yes" },
      scope: { kind: "global" },
      runner: { kind: "attached" },
      message: "go",
      kind: "text",
      prompt: "Which?",
      limit: 10,
      token: "x".repeat(43),
      mode: "active",
      path: directory,
      harness: "h",
    };
    for (const credential of [service.operatorToken, service.token("captain"), token, undefined]) {
      await fc.assert(
        fc.asyncProperty(fc.array(request(own), { minLength: 1, maxLength: 20 }), async (requests) => {
          const client = await Client.open(service.url, credential);
          const replies = listen(client);
          // The operator's own token must not be made useless by chance.
          const sent = requests.filter((each) => !/credential_r|device_r/.test((each as { method: string }).method));
          for (const [id, each] of sent.entries()) client.socket.send(JSON.stringify({ jsonrpc: "2.0", id, ...each }));
          const closed = client.closed.then(() => true);
          await until(
            "everything is answered",
            async () => replies.length >= sent.length || (await Promise.race([closed, Promise.resolve(false)])),
          );
          for (const [index, reply] of replies.entries()) namesItsCause(reply, JSON.stringify(sent[index]));
          client.drop();
        }),
        { seed, numRuns: Math.ceil(runs / 20), endOnFailure: true },
      );
      await bystander.call("conversation_show", { conversationId });
    }
    assert.equal(
      service.log.filter(({ level }) => level === "error"),
      [],
    );
    await bystander.close();
    assert.is(await service.stop(), 0);
  }));

test("[5] whatever text a frame holds, its answer is a frame that names the cause", () =>
  withDirectory(async (directory) => {
    const service = await ServiceProcess.start({ data: join(directory, "data"), logLevel: "warn" });
    const client = await Client.open(service.url, service.operatorToken);
    const replies = listen(client);
    const valid = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "service_status", params: { schemaVersion: 1 } });
    const broken = fc
      .tuple(fc.nat(valid.length), fc.nat(5), fc.string({ unit: "binary", maxLength: 5 }))
      .map(([at, gone, put]) => valid.slice(0, at) + put + valid.slice(at + gone));
    const deep = fc.nat(30_000).map((depth) => `${"[".repeat(depth)}${"]".repeat(depth)}`);
    const text = fc.oneof(
      { weight: 6, arbitrary: broken },
      { weight: 2, arbitrary: fc.json() },
      { weight: 2, arbitrary: fc.string({ unit: "binary" }) },
      { weight: 1, arbitrary: deep },
    );
    await fc.assert(
      fc.asyncProperty(text, async (frame) => {
        const before = replies.length;
        client.socket.send(frame);
        await until("it is answered", () => replies.length > before);
        const reply = replies.at(-1);
        if (reply !== undefined) namesItsCause(reply, frame.slice(0, 200));
      }),
      { seed, numRuns: Math.ceil(runs / 2), endOnFailure: true },
    );
    client.drop();
    assert.is(await service.stop(), 0);
    assert.equal(
      service.log.filter(({ level }) => level === "error"),
      [],
    );
  }));

test("[5] whatever bytes come instead of HTTP or WebSocket frames, the service and everybody else go on", () =>
  withDirectory(async (directory) => {
    const service = await ServiceProcess.start({ data: join(directory, "data"), logLevel: "warn" });
    const bystander = await Client.open(service.url, service.operatorToken);
    const { hostname, port } = new URL(service.url);
    const lines = fc.constantFrom(
      "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
      "GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer x\r\n\r\n",
      "POST /v1/backup HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\n",
      "GET /v1/socket HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n",
      "GET /%2e%2e/%2e%2e/etc/passwd HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
      "GET //evil/..\\..\\x HTTP/1.1\r\nHost: [::1\r\n\r\n",
      "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\nfffffff\r\n",
    );
    const bytes = fc
      .array(
        fc.oneof(
          lines.map((line) => Buffer.from(line)),
          fc.uint8Array({ maxLength: 200 }).map((each) => Buffer.from(each)),
        ),
        {
          minLength: 1,
          maxLength: 6,
        },
      )
      .map((parts) => Buffer.concat(parts));
    await fc.assert(
      fc.asyncProperty(bytes, async (sent) => {
        const socket = connect(Number(port), hostname);
        let told = "";
        socket.on("error", () => undefined);
        socket.on("data", (chunk) => {
          told += chunk.toString("latin1");
        });
        await new Promise<void>((resolve) => {
          socket.once("close", () => resolve());
          socket.end(sent);
          setTimeout(() => socket.destroy(), 50);
        });
        assert.not.match(told, /HTTP\/1\.1 500|root:|at .*\.js/);
      }),
      { seed, numRuns: Math.ceil(runs / 4), endOnFailure: true },
    );
    await bystander.call("service_status", {});
    await bystander.close();
    assert.is(await service.stop(), 0);
    assert.equal(
      service.log.filter(({ level }) => level === "error"),
      [],
    );
  }));

test.run();
