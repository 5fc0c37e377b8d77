import { suite } from "uvu";
import * as assert from "uvu/assert";
import { McpClient, RawMcp } from "./client.js";
import { Wire } from "./service.js";
import { CHOICE, toolNames, World } from "./world.js";

const test = suite("clankie mcp: what goes wrong");
const world = new World();
test.before(world.begin);
test.after(world.end);

test("[8] a reply that was lost is read back, and the question is asked once", async () => {
  const wire = await Wire.to(world.service.url);
  const { env, conversationId } = await world.attached(wire.url);
  const mcp = await McpClient.start(env);
  await mcp.call("question_status");
  wire.loseNextReply();
  const asked = await mcp.call("request_user_input", CHOICE);
  assert.is(asked.isError, false, asked.text);
  assert.is(asked.result.question?.status, "pending");
  const { revision, question } = await world.service.show(conversationId);
  assert.is(question?.requestId, asked.result.question?.requestId);
  assert.is(revision, 1, "asked once");
  await mcp.end();
  wire.close();
});

test("[8] a reply that was lost with the service behind it is uncertain, and says how to look", async () => {
  const wire = await Wire.to(world.service.url);
  const { env } = await world.attached(wire.url);
  const mcp = await McpClient.start(env);
  await mcp.call("question_status");
  wire.loseNextReply(true);
  const { isError, text } = await mcp.call("request_user_input", CHOICE);
  assert.is(isError, true);
  assert.match(text, /^uncertain: /);
  assert.match(text, /Do not ask again\. Call question_status without requestId/);
  await mcp.end();
  wire.close();
});

test("a service that is not there: the tools are listed, and a call says what to do", async () => {
  const mcp = await McpClient.start({
    CLANKIE_URL: "http://127.0.0.1:9",
    CLANKIE_TOKEN: "none",
    CLANKIE_CONVERSATION: "some",
  });
  assert.is((await toolNames(mcp)).length, 4);
  const { isError, text } = await mcp.call("request_user_input", CHOICE);
  assert.is(isError, true);
  assert.match(text, /^unreachable: .*127\.0\.0\.1:9/);
  assert.match(text, /clankie serve/);
  await mcp.end();
});

test("no token: the tools are listed, and a call says who has to do what; the operator's own is not taken", async () => {
  const mcp = await McpClient.start({ CLANKIE_DATA: world.service.data }, ["--conversation", "some"]);
  const { isError, text } = await mcp.call("request_user_input", CHOICE);
  assert.is(isError, true);
  assert.match(text, /^not_configured: This agent has no token/);
  assert.match(text, /clankie credentials issue agent/);
  await mcp.end();
});

test(
  "a revoked token ends a held call, and every later one says not to try again",
  world.withMcp(async ({ mcp, credentialId }) => {
    await mcp.call("request_user_input", CHOICE);
    const held = mcp.call("question_status", { waitSeconds: 50 });
    await mcp.call("question_status");
    await world.service.operator.call("credential_revoke", { credentialId });
    for (const { isError, text } of [await held, await mcp.call("request_user_input", CHOICE)]) {
      assert.is(isError, true);
      assert.match(text, /^unauthenticated: /);
      assert.match(text, /Do not try again/);
    }
  }),
);

for (const [offered, taken] of [
  ["2025-11-25", "2025-11-25"],
  ["2025-06-18", "2025-06-18"],
  ["2025-03-26", "2025-03-26"],
  ["2024-11-05", "2024-11-05"],
  ["2099-01-01", "2025-11-25"],
] as const)
  test(`a client of protocol revision ${offered} is served in ${taken}`, async () => {
    const { env } = await world.attached();
    const raw = new RawMcp(env);
    assert.is((await raw.initialize(offered))["protocolVersion"], taken);
    raw.send({ id: 2, method: "tools/call", params: { name: "request_user_input", arguments: CHOICE } });
    const { result } = (await raw.reply(2)) as { result: { content: [{ text: string }] } };
    assert.is(JSON.parse(result.content[0].text).question.status, "pending");
    assert.is(await raw.endOfInput(), 0);
  });

test("garbage on stdin is passed over, late cancellations too, and stdout carries the protocol alone", async () => {
  const { env } = await world.attached();
  const raw = new RawMcp(env);
  await raw.initialize("2025-11-25");
  raw.write('not json\n\n[]\n{}\n{"jsonrpc":"1.0"}\n\u0000\u0001\n');
  raw.write(`${"x".repeat(100_000)}\n`);
  raw.send({ id: 2, method: "tools/call", params: { name: "question_status" } });
  await raw.reply(2);
  raw.send({ method: "notifications/cancelled", params: { requestId: 2, reason: "too late" } });
  raw.send({ method: "notifications/cancelled", params: { requestId: "never" } });
  raw.send({ method: "notifications/unheard-of", params: {} });
  raw.send({ id: 3, method: "no/such" });
  assert.is(((await raw.reply(3)) as { error: { code: number } }).error.code, -32601);
  raw.send({ id: 4, method: "ping" });
  await raw.reply(4);
  assert.is(await raw.endOfInput(), 0);
  assert.is(raw.messages().length, 4);
});

test("when stdin ends, calls that go on give their results, held ones at once, and it exits with 0", async () => {
  const { env, conversationId } = await world.attached();
  const raw = new RawMcp(env);
  await raw.initialize("2025-11-25");
  raw.send({ id: 2, method: "tools/call", params: { name: "request_user_input", arguments: CHOICE } });
  await raw.reply(2);
  raw.send({ id: 3, method: "tools/call", params: { name: "question_status", arguments: { waitSeconds: 50 } } });
  raw.send({ id: 4, method: "tools/call", params: { name: "question_status", arguments: {} } });
  assert.is(await raw.endOfInput(), 0);
  for (const id of [3, 4]) {
    const { result } = (await raw.reply(id)) as { result: { structuredContent: { question: { status: string } } } };
    assert.is(result.structuredContent.question.status, "pending");
  }
  assert.is((await world.service.show(conversationId)).question?.status, "pending");
});

test("a client that no longer reads ends it", async () => {
  const { env } = await world.attached();
  const raw = new RawMcp(env);
  await raw.initialize("2025-11-25");
  raw.hangUp();
  for (let id = 2; id < 6; id += 1) raw.send({ id, method: "tools/list" });
  assert.is(await raw.exit(), 1);
});

test("[8] a restart while a call is held: the question is cancelled, and the call says so", async () => {
  const { env, conversationId } = await world.attached();
  const mcp = await McpClient.start(env);
  const asked = await mcp.call("request_user_input", CHOICE);
  const held = mcp.call("question_status", { requestId: asked.result.question?.requestId, waitSeconds: 50 });
  await mcp.call("question_status");
  await world.service.kill();
  await world.service.start();
  const { result } = await held;
  assert.is(result.question?.status, "cancelled");
  assert.is(result.question?.reason, "service_restarted");
  assert.match(result.guidance, /restarted/);
  assert.is((await world.service.show(conversationId)).question, null);
  await mcp.end();
});

test.run();
