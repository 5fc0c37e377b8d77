import { suite } from "uvu";
import * as assert from "uvu/assert";
import { McpClient } from "./client.js";
import { CHOICE, toolNames, World } from "./world.js";

const test = suite("clankie mcp: the tools");
const world = new World();
test.before(world.begin);
test.after(world.end);

test(
  "[10] an attached agent is offered asking, reading, claiming and settling, and nothing that answers or cancels",
  world.withMcp(async ({ mcp }) => {
    assert.equal(await toolNames(mcp), ["claim_run", "question_status", "request_user_input", "settle_run"]);
  }),
);

test("[10] an agent in a run of its own is offered asking and reading", async () => {
  const { env } = await world.attached();
  const mcp = await McpClient.start({ ...env, CLANKIE_RUN: "run-1" });
  assert.equal(await toolNames(mcp), ["question_status", "request_user_input"]);
  await mcp.end();
});

test(
  "[10] the description says that an answer is no approval and that a request is not repeated",
  world.withMcp(async ({ mcp }) => {
    const { tools } = await mcp.sdk.listTools();
    const { description = "" } = tools.find(({ name }) => name === "request_user_input") ?? {};
    assert.match(description, /preference, not an approval/);
    assert.match(description, /Do not repeat a request that is pending or whose outcome is uncertain/);
  }),
);

test(
  "the schemas hold nothing that a provider's dialect refuses",
  world.withMcp(async ({ mcp }) => {
    const { tools } = await mcp.sdk.listTools();
    const text = JSON.stringify(tools);
    for (const word of ["$ref", "$defs", "oneOf", "anyOf", "allOf", "pattern", "format", "const", "$schema"])
      assert.not.ok(text.includes(`"${word}":`), word);
  }),
);

test(
  "[10] asking returns the pending request at once, as text and as data alike",
  world.withMcp(async ({ mcp, conversationId }) => {
    const asked = await mcp.call("request_user_input", CHOICE);
    assert.is(asked.isError, false);
    assert.equal(JSON.parse(asked.text), asked.data);
    assert.is(asked.result.status, "ready");
    assert.is(asked.result.question?.status, "pending");
    const { question } = await world.service.read(conversationId);
    assert.equal(asked.result.question, question);
    assert.match(asked.result.guidance, /Do not ask again/);
  }),
);

test(
  "[7] asking the same again returns the pending question, another one is an error that names it",
  world.withMcp(async ({ mcp }) => {
    const first = await mcp.call("request_user_input", CHOICE);
    const again = await mcp.call("request_user_input", { ...CHOICE, allowFreeform: null });
    assert.is(again.result.reason, "already_pending");
    assert.is(again.result.question?.requestId, first.result.question?.requestId);
    const other = await mcp.call("request_user_input", { kind: "text", prompt: "And the title?" });
    assert.is(other.isError, true);
    assert.match(other.text, /^question_pending: /);
    assert.ok(other.text.includes(first.result.question?.requestId ?? "?"));
    assert.match(other.text, /question_status/);
  }),
);

test(
  "[3] arguments that cannot be right are an error that says where and what was expected, and nothing is asked",
  world.withMcp(async ({ mcp, conversationId }) => {
    const faulty: readonly [given: Readonly<Record<string, unknown>>, where: RegExp][] = [
      [{}, /kind/],
      [{ kind: "choice" }, /prompt/],
      [{ kind: "choice", prompt: "Which?" }, /options/],
      [{ ...CHOICE, options: [{ label: "one" }] }, /options/],
      [{ ...CHOICE, options: [{ label: "one" }, { label: " one " }] }, /options/],
      [{ ...CHOICE, options: ["one", "two"] }, /options\[0\]/],
      [{ ...CHOICE, prompt: "  " }, /prompt/],
      [{ ...CHOICE, prompt: "a\u001b[2Jb" }, /prompt/],
      [{ ...CHOICE, priority: "high" }, /priority/],
      [{ ...CHOICE, conversationId: "another" }, /conversationId/],
      [{ kind: "text", prompt: "What?", options: [{ label: "one" }, { label: "two" }] }, /options/],
    ];
    for (const [given, where] of faulty) {
      const { isError, text } = await mcp.call("request_user_input", given);
      assert.is(isError, true, JSON.stringify(given));
      assert.match(text, /^invalid_params: /);
      assert.match(text, where);
    }
    for (const waitSeconds of [51, -1, 1.5, "5"])
      assert.match((await mcp.call("question_status", { waitSeconds })).text, /waitSeconds/);
    assert.is((await world.service.show(conversationId)).question, null);
  }),
);

test(
  "an unknown tool is an error of the protocol",
  world.withMcp(async ({ mcp }) => {
    for (const name of ["input_answer", "input_cancel", "constructor"]) {
      const outcome = await mcp.call(name).then(
        () => "done",
        (error: { readonly code?: unknown }) => error.code,
      );
      assert.is(outcome, -32602);
    }
  }),
);

test(
  "[10] question_status gives the receipt with what was answered in words",
  world.withMcp(async ({ mcp, conversationId }) => {
    const asked = await mcp.call("request_user_input", { ...CHOICE, allowFreeform: true });
    const requestId = asked.result.question?.requestId;
    assert.match((await mcp.call("question_status")).result.guidance, /^Still waiting\./);
    await world.service.answer(conversationId, { label: "docs" });
    const status = await mcp.call("question_status", { requestId });
    assert.is(status.result.question?.status, "submitted");
    assert.match(status.result.guidance, /the option "docs"/);
    assert.match(status.result.guidance, /preference, not an approval/);
    assert.match((await mcp.call("question_status")).result.guidance, /No question is pending/);
    const unknown = await mcp.call("question_status", { requestId: "00000000-0000-4000-8000-000000000000" });
    assert.is(unknown.result.reason, "unknown_request");
    assert.is(unknown.isError, false);
  }),
);

test(
  "a held question_status returns as soon as the question is answered",
  world.withMcp(async ({ mcp, conversationId }) => {
    await mcp.call("request_user_input", CHOICE);
    const start = performance.now();
    const held = mcp.call("question_status", { waitSeconds: 50 });
    const other = await mcp.call("question_status"); // one that is held holds up no other
    assert.is(other.result.question?.status, "pending");
    await world.service.answer(conversationId, { label: "tests" });
    const { result } = await held;
    assert.is(result.question?.status, "submitted");
    assert.match(result.guidance, /the option "tests"/);
    assert.ok(performance.now() - start < 30_000);
  }),
);

test(
  "a held question_status whose time runs out says still waiting, and no answer",
  world.withMcp(async ({ mcp }) => {
    await mcp.call("request_user_input", CHOICE);
    const { result, isError } = await mcp.call("question_status", { waitSeconds: 1 });
    assert.is(isError, false);
    assert.is(result.status, "ready");
    assert.is(result.question?.status, "pending");
    assert.is(result.question?.answer, undefined);
    assert.match(result.guidance, /^Still waiting: time ran out, which is not an answer\./);
  }),
);

test(
  "a held call can be cancelled, and the server goes on",
  world.withMcp(async ({ mcp, conversationId }) => {
    await mcp.call("request_user_input", CHOICE);
    const control = new AbortController();
    const held = mcp.call("question_status", { waitSeconds: 50 }, control.signal).catch(() => "cancelled");
    await mcp.call("question_status");
    control.abort();
    assert.is(await held, "cancelled");
    assert.is((await mcp.call("question_status")).result.question?.status, "pending");
    assert.is((await world.service.show(conversationId)).question?.status, "pending");
  }),
);

test(
  "[10] an attached agent takes a turn, asks in it, settles it, and takes the turn that the answer starts",
  world.withMcp(async ({ mcp, conversationId }) => {
    assert.is((await mcp.call("claim_run")).data["claimed"], false);
    const held = mcp.call("claim_run", { waitSeconds: 50 });
    await mcp.call("question_status");
    const runId = await world.service.send(conversationId, "Tidy up");
    const { data: first } = await held;
    assert.is(first["claimed"], true);
    assert.is(first["runId"], runId);
    assert.is(first["message"], "Tidy up");
    assert.type(first["workspace"], "string");

    const asked = await mcp.call("request_user_input", CHOICE);
    const requestId = asked.result.question?.requestId;
    await world.service.answer(conversationId, { label: "docs" });
    const busy = await mcp.call("claim_run");
    assert.is(busy.data["claimed"], false);
    assert.match(busy.data["guidance"] as string, /settle it first/);
    assert.match((await mcp.call("claim_run", { runId })).text, /^forbidden: /);
    for (const _ of ["once", "and repeated alike"])
      assert.is((await mcp.call("settle_run", { runId, state: "completed" })).isError, false);

    const { data: second } = await mcp.call("claim_run", { waitSeconds: 50 });
    assert.match(second["message"] as string, /not an approval[\s\S]*"label":"docs"/);
    await mcp.call("settle_run", { runId: second["runId"], state: "completed", summary: "tidied the docs" });
    const status = await mcp.call("question_status", { requestId });
    assert.is(status.result.question?.continuation?.state, "completed");
    assert.match(status.result.guidance, /do not act on it again/);
  }),
);

test("the conversation is the one the token is bound to where none is named", async () => {
  const { env, conversationId } = await world.attached();
  const mcp = await McpClient.start({ CLANKIE_URL: env.CLANKIE_URL, CLANKIE_TOKEN: env.CLANKIE_TOKEN });
  assert.is((await mcp.call("question_status")).result.conversationId, conversationId);
  await mcp.end();
});

test.run();
