import { mkdir, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { BOUNDS } from "../../protocol/bounds.js";
import { METHODS } from "../../protocol/requests.js";
import { CHOICE, inWorld, TEXT } from "../world.js";

const NO_ID = "00000000-0000-4000-8000-000000000000";
const V = { schemaVersion: 1 } as const;

/** A prompt, and whether it is taken. */
const texts = (most: number): readonly (readonly [string, string, boolean])[] => [
  ["at the bound", "x".repeat(most), true],
  ["at the bound between spaces", `  ${"x".repeat(most)}\n`, true],
  ["one over the bound", "x".repeat(most + 1), false],
  ["at the bound in UTF-16 units", "😀".repeat(most / 2), true],
  ["over the bound in UTF-16 units", "😀".repeat(most / 2 + 1), false],
  ["empty", "", false],
  ["blank", " \n\t\u00a0", false],
  ["a line feed and a tab", "a\n\tb", true],
  ["a terminal escape", "\u001b[2Ja", false],
  ["NUL", "a\u0000b", false],
  ["a carriage return", "a\rb", false],
  ["DEL", "a\u007fb", false],
  ["a C1 control", "a\u009bb", false],
  ["a lone high surrogate", "a\ud800b", false],
  ["a lone low surrogate", "\udc00", false],
];

const labels = (...given: readonly string[]) => given.map((label) => ({ label }));
const nested = (depth: number): unknown => JSON.parse("[".repeat(depth) + "]".repeat(depth));

test(
  "[3] prompts, labels, descriptions, answers and titles are taken to their bounds and refused beyond them",
  inWorld(async (world) => {
    const { conversationId } = await world.conversation();
    const wrong: string[] = [];
    const see = async (what: string, isTaken: boolean, method: string, params: object) => {
      const reply = await world.operator.call(method, { ...V, ...params });
      const code = reply.error?.data.code;
      if (isTaken ? code !== undefined : code !== "invalid_params") wrong.push(`${what}: ${code ?? "taken"}`);
      if (!isTaken && code === "invalid_params" && (reply.error?.data.errors?.length ?? 0) === 0)
        wrong.push(`${what}: no errors`);
      return reply.result as { question: { requestId: string }; incarnationId: string; revision: number } | undefined;
    };
    const close = async (asked: Awaited<ReturnType<typeof see>>) => {
      if (asked === undefined) return;
      await world.operator.ok("input_cancel", {
        conversationId,
        incarnationId: asked.incarnationId,
        requestId: asked.question.requestId,
        expectedRevision: asked.revision,
      });
    };
    for (const [what, prompt, isTaken] of texts(BOUNDS.prompt)) {
      await close(await see(`prompt ${what}`, isTaken, "request_user_input", { conversationId, kind: "text", prompt }));
    }
    for (const [what, label, isTaken] of texts(BOUNDS.label)) {
      const options = [{ label }, { label: "other" }];
      await close(await see(`label ${what}`, isTaken, "request_user_input", { conversationId, ...CHOICE, options }));
    }
    for (const [what, description, isTaken] of texts(BOUNDS.description)) {
      const options = [{ label: "one", description }, { label: "other" }];
      const isBlank = what === "empty" || what === "blank"; // a description may be empty
      await close(
        await see(`description ${what}`, isTaken || isBlank, "request_user_input", {
          conversationId,
          ...CHOICE,
          options,
        }),
      );
    }
    for (const [what, title, isTaken] of texts(BOUNDS.title)) {
      await see(`title ${what}`, isTaken, "conversation_create", { scope: { kind: "global" }, title });
    }
    for (const [what, text, isTaken] of texts(BOUNDS.answerText)) {
      const asked = await see("ask", true, "request_user_input", { conversationId, ...TEXT });
      const target = {
        conversationId,
        incarnationId: asked?.incarnationId,
        requestId: asked?.question.requestId,
        expectedRevision: asked?.revision,
      };
      await see(`answer ${what}`, isTaken, "input_answer", { ...target, answer: { kind: "text", text } });
      if (!isTaken) await close(asked);
      else {
        const { activeRun } = await world.show(conversationId);
        await world.operator.ok("run_cancel", { runId: activeRun!.runId });
      }
    }
    for (const [what, message, isTaken] of [
      ["at the bound", "x".repeat(16_384), true],
      ["over the bound", "x".repeat(16_385), false],
      ["blank", " ", false],
      ["empty", "", false],
      ["a lone surrogate", "\ud800", false],
    ] as const) {
      await see(`message ${what}`, isTaken, "conversation_send", { conversationId, message });
    }
    assert.equal(wrong, []);
  }),
);

test(
  "[3] a choice has 2 to 8 options with labels that differ after trimming and composition; a text has none",
  inWorld(async (world) => {
    const { conversationId } = await world.conversation();
    const ask = async (draft: object): Promise<string> => {
      const reply = await world.operator.call("request_user_input", { ...V, conversationId, ...draft });
      return reply.error?.data.code ?? "taken";
    };
    const choice = (...given: readonly string[]) => ({ kind: "choice", prompt: "Which?", options: labels(...given) });
    for (const draft of [
      choice(),
      choice("only one"),
      choice(..."123456789"),
      choice("same", "same"),
      choice("same", " same\t"),
      choice("caf\u00e9", "cafe\u0301"),
      { kind: "choice", prompt: "Which?" },
      { ...choice("a", "b"), allowFreeform: "yes" },
      { kind: "text", prompt: "What?", options: labels("a", "b") },
      { kind: "text", prompt: "What?", allowFreeform: false },
      { kind: "both", prompt: "What?" },
      { prompt: "What?" },
      { kind: "text" },
      { kind: "text", prompt: "What?", expiresInSeconds: 0 },
      { kind: "text", prompt: "What?", expiresInSeconds: -1 },
      { kind: "text", prompt: "What?", expiresInSeconds: 1.5 },
      { kind: "text", prompt: "What?", expiresInSeconds: 4_294_967_296 },
      { kind: "text", prompt: "What?", expiresInSeconds: "60" },
      { kind: "text", prompt: "What?", urgent: true },
      { kind: "choice", prompt: "Which?", options: [{ label: "a", value: 1 }, { label: "b" }] },
      { kind: "choice", prompt: "Which?", options: [null, "b"] },
      { kind: "choice", prompt: "Which?", options: { 0: "a", 1: "b", length: 2 } },
    ]) {
      assert.is(await ask(draft), "invalid_params", JSON.stringify(draft));
    }
    assert.is(await ask({ kind: "text", prompt: "What?", expiresInSeconds: 4_294_967_295 }), "taken");
    const other = await world.conversation();
    const longest = await world.operator.call("request_user_input", {
      ...V,
      conversationId: other.conversationId,
      ...choice(..."12345678"),
    });
    assert.is(longest.error, undefined);
  }),
);

test(
  "[3] an unknown field, a missing or another schemaVersion, and parameters of a wrong type are refused by every method",
  inWorld(async (world) => {
    for (const method of METHODS) {
      for (const params of [
        { ...V, unknownField: 1 },
        {},
        { schemaVersion: 2 },
        { schemaVersion: "1" },
        null,
        [],
        [1],
        "params",
        7,
        true,
        nested(200),
        { ...V, conversationId: { toString: "x" }, requestId: 5, runId: [], token: {}, code: 7, deviceId: 1 },
      ]) {
        if (method === "authenticate") continue; // a wrong token ends the connection: see authentication.test.ts
        const reply = await world.operator.call(method, params);
        assert.is(reply.error?.data.code, "invalid_params", `${method} ${JSON.stringify(params)?.slice(0, 60)}`);
        assert.is(reply.error?.code, -32602);
        assert.ok((reply.error?.data.errors?.length ?? 0) > 0);
      }
      const absent = await world.operator.exchange(`{"jsonrpc":"2.0","id":"absent","method":"${method}"}`, "absent");
      assert.is(absent.error?.data.code, "invalid_params", method);
    }
    // Nothing of it changed anything.
    assert.equal((await world.operator.ok("conversation_list", {})).conversations, []);
    await world.operator.ok("service_status", {});
  }),
);

test(
  "[3] __proto__ and constructor are fields like any unknown one, wherever they stand",
  inWorld(async (world) => {
    const { conversationId } = await world.conversation();
    for (const name of ["__proto__", "constructor", "prototype", "toString", "hasOwnProperty"]) {
      const inParams = `{"jsonrpc":"2.0","id":"p","method":"service_status","params":{"schemaVersion":1,"${name}":{"x":1}}}`;
      assert.is((await world.operator.exchange(inParams, "p")).error?.data.code, "invalid_params", name);
      const inOption = `{"jsonrpc":"2.0","id":"o","method":"request_user_input","params":{"schemaVersion":1,"conversationId":"${conversationId}","kind":"choice","prompt":"?","options":[{"label":"a","${name}":1},{"label":"b"}]}}`;
      assert.is((await world.operator.exchange(inOption, "o")).error?.data.code, "invalid_params", name);
      const inFrame = `{"jsonrpc":"2.0","id":"f","method":"service_status","params":{"schemaVersion":1},"${name}":{}}`;
      assert.is((await world.operator.exchange(inFrame, "f")).error?.code, -32600, name);
      const asMethod = await world.operator.call(name, V);
      assert.is(asMethod.error?.code, -32601, name);
      const asConversation = await world.operator.call("conversation_show", { ...V, conversationId: name });
      assert.is(asConversation.error?.data.code, "unknown_conversation", name);
    }
    assert.is(({} as { x?: number }).x, undefined);
  }),
);

test(
  "[5] a frame that is no request is answered with JSON-RPC's own error, and the connection goes on",
  inWorld(async (world) => {
    const { operator } = world;
    const cases: readonly (readonly [string | Uint8Array, number])[] = [
      ["", -32700],
      ["{", -32700],
      ["not json", -32700],
      ['{"jsonrpc":"2.0","id":1', -32700],
      ["[".repeat(60_000), -32700],
      ["[".repeat(30_000) + "]".repeat(30_000), -32600],
      [`${'{"a":'.repeat(10_000)}1${"}".repeat(10_000)}`, -32600],
      ["null", -32600],
      ["7", -32600],
      ['"text"', -32600],
      ["{}", -32600],
      ["[]", -32600],
      ['[{"jsonrpc":"2.0","id":1,"method":"service_status","params":{"schemaVersion":1}}]', -32600],
      ['{"jsonrpc":"2.0","method":"service_status","params":{"schemaVersion":1}}', -32600],
      ['{"jsonrpc":"2.0","id":null,"method":"service_status","params":{"schemaVersion":1}}', -32600],
      ['{"jsonrpc":"2.0","id":{},"method":"service_status","params":{"schemaVersion":1}}', -32600],
      ['{"jsonrpc":"2.0","id":true,"method":"service_status","params":{"schemaVersion":1}}', -32600],
      [new Uint8Array([123, 125]), -32600],
      [Buffer.from('{"jsonrpc":"2.0","id":1,"method":"service_status","params":{"schemaVersion":1}}'), -32600],
      ["x".repeat(BOUNDS.frameToService + 1), -32009],
    ];
    for (const [frame, code] of cases) {
      const reply = await operator.unanswerable(frame);
      assert.is(reply.error?.code, code, String(frame).slice(0, 80));
      assert.is(reply.id, null);
    }
    for (const [frame, code] of [
      ['{"jsonrpc":"1.0","id":"i","method":"service_status","params":{"schemaVersion":1}}', -32600],
      ['{"id":"i","method":"service_status","params":{"schemaVersion":1}}', -32600],
      ['{"jsonrpc":"2.0","id":"i","params":{"schemaVersion":1}}', -32600],
      ['{"jsonrpc":"2.0","id":"i","method":7}', -32600],
      ['{"jsonrpc":"2.0","id":"i","method":"service_status","params":{"schemaVersion":1},"extra":1}', -32600],
      ['{"jsonrpc":"2.0","id":"i","result":{}}', -32600],
    ] as const) {
      assert.is((await operator.exchange(frame, "i")).error?.code, code, frame);
    }
    for (const method of ["", "no_such_method", "Service_Status", "service_status ", "rpc.discover", "x".repeat(100)]) {
      const reply = await operator.call(method, V);
      assert.is(reply.error?.code, -32601, method);
      assert.is(reply.result, undefined);
    }
    await operator.ok("service_status", {});
  }),
);

test(
  "[3] a frame of 65 536 bytes is read, one byte more is not, and a far larger one ends only its own connection",
  inWorld(async (world) => {
    const { conversationId } = await world.conversation();
    const client = await world.captain();
    const padded = (bytes: number) => {
      const frame = `{"jsonrpc":"2.0","id":"big","method":"conversation_show","params":{"schemaVersion":1,"conversationId":"${conversationId}"}`;
      return `${frame}${" ".repeat(bytes - frame.length - 1)}}`;
    };
    assert.is((await client.exchange(padded(BOUNDS.frameToService), "big")).error, undefined);
    const over = await client.unanswerable(padded(BOUNDS.frameToService + 1));
    assert.is(over.error?.data.code, "frame_too_large");
    await client.ok("service_status", {});
    client.send("x".repeat(2_000_000));
    assert.is((await client.closed).code, 1009);
    await world.operator.ok("service_status", {});
  }),
);

test(
  "[5] what one client sends badly disturbs no other: their requests and their views go on",
  inWorld(async (world) => {
    const { conversationId } = await world.conversation();
    const good = await world.captain();
    await good.ok("conversation_subscribe", { conversationId, events: true });
    const bad = await world.captain();
    for (const frame of ["{", "[]", "x".repeat(70_000), '{"jsonrpc":"2.0","id":1,"method":"nothing"}']) bad.send(frame);
    bad.send(new Uint8Array(1_000));
    bad.send("y".repeat(1_000_000));
    await bad.closed;
    await world.send(conversationId, "hello");
    await good.notified(({ method }) => method === "conversation_event");
    await good.ok("service_status", {});
  }),
);

test(
  "[4] ids of another conversation, unknown ids and UUIDs in upper case find nothing and start nothing",
  inWorld(async (world) => {
    const one = await world.pending();
    const two = await world.pending();
    const { operator } = world;
    const answer = { kind: "choice", optionId: one.optionIds[0]! } as const;
    const crossed = await operator.ok("input_answer", {
      ...two.target,
      requestId: one.target.requestId,
      answer,
    });
    assert.is(crossed.reason, "unknown_request");
    const stale = await operator.ok("input_answer", { ...one.target, conversationId: two.conversationId, answer });
    assert.is(stale.reason, "stale_request");
    const option = await operator.ok("input_answer", { ...two.target, answer });
    assert.is(option.reason, "unknown_option");
    for (const part of ["incarnationId", "requestId"] as const) {
      const upper = { ...one.target, answer, [part]: one.target[part].toUpperCase() };
      assert.is(await operator.fault("input_answer", upper), "invalid_params");
      const urn = { ...one.target, answer, [part]: `urn:uuid:${one.target[part]}` };
      assert.is(await operator.fault("input_answer", urn), "invalid_params");
    }
    const upperOption = { kind: "choice", optionId: one.optionIds[0]!.toUpperCase() } as const;
    assert.is(await operator.fault("input_answer", { ...one.target, answer: upperOption }), "invalid_params");
    for (const conversationId of [
      NO_ID,
      one.conversationId.toUpperCase(),
      "../state",
      "a/b",
      "\u0000",
      "é",
      "x".repeat(512),
    ]) {
      assert.is(await operator.fault("conversation_show", { conversationId }), "unknown_conversation", conversationId);
      assert.is(
        await operator.fault("input_answer", { ...one.target, conversationId, answer }),
        "unknown_conversation",
      );
    }
    assert.is(await operator.fault("conversation_show", { conversationId: "x".repeat(513) }), "invalid_params");
    for (const runId of [NO_ID, "../x", "x".repeat(256)]) {
      assert.is(await operator.fault("run_cancel", { runId }), "unknown_conversation");
    }
    for (const after of ["x", "0000000000000000x", "-1", "9".repeat(17)]) {
      assert.is(
        await operator.fault("conversation_tail", { conversationId: one.conversationId, after }),
        "invalid_params",
      );
    }
    assert.is(
      await operator.fault("conversation_tail", { conversationId: one.conversationId, limit: 501 }),
      "invalid_params",
    );
    assert.is(
      await operator.fault("conversation_tail", { conversationId: one.conversationId, limit: 0 }),
      "invalid_params",
    );
    assert.is(await operator.fault("conversation_list", { limit: 1_001 }), "invalid_params");
    for (const { conversationId } of [one, two]) {
      assert.is((await world.show(conversationId)).question?.status, "pending");
      assert.not(world.events(conversationId).some(({ type }) => type === "turn"));
    }
  }),
);

test(
  "[5] a workspace that does not exist, is a file or is relative is refused; one behind a link is its canonical directory",
  inWorld(async (world) => {
    const { operator } = world;
    const file = join(world.root, "file");
    await writeFile(file, "");
    const create = (workspaceId: string) =>
      operator.fault("conversation_create", { scope: { kind: "workspace", workspaceId } });
    for (const path of [join(world.root, "nowhere"), file, join(file, "below"), "relative", ".", "x".repeat(4_096)]) {
      assert.is(await create(path), "invalid_params", path);
    }
    assert.is(await create("a\u0000b"), "invalid_params");
    assert.is(await create("/".repeat(4_097)), "invalid_params");
    assert.is(await operator.fault("conversation_create", { scope: { kind: "workspace" } }), "invalid_params");
    const directory = await world.directory("real");
    await symlink(directory, join(world.root, "link"));
    const linked = await world.conversationIn(join(world.root, "link"));
    assert.is(linked.scope.workspaceId, join(world.root, "link"));
    const asked = await operator.ok("request_user_input", { conversationId: linked.conversationId, ...TEXT });
    assert.is(asked.question?.workspace, directory);
    assert.is((await operator.ok("conversation_list", {})).conversations.length, 1);
  }),
);

test(
  "[3] a lone surrogate is refused in names, ids and reasons too",
  inWorld(async (world) => {
    const { conversationId } = await world.conversation();
    const { client } = await world.agent(conversationId);
    const { runId } = await world.send(conversationId, "go");
    await client.ok("run_claim", { runId });
    const tool = { type: "tool", toolCallId: "1", name: "read", phase: "started" } as const;
    for (const event of [
      { ...tool, name: "\ud800" },
      { ...tool, toolCallId: "a\udc00" },
    ]) {
      const { error } = await client.call("run_event", { ...V, runId, event });
      assert.is(error?.data.code, "invalid_params");
      assert.is(error?.data.errors?.[0]?.expected, "well-formed Unicode");
    }
    const settled = await client.call("run_settle", { ...V, runId, state: "failed", reasonCode: "\ud800" });
    assert.is(settled.error?.data.code, "invalid_params");
    await client.ok("run_event", { runId, event: { ...tool, name: "read \u{1f600}" } });
  }),
);

test(
  "[4] a directory with any name makes a conversation that can be read again",
  inWorld(async (world) => {
    const names = ["escape \u001b[2J", "line\nfeed", "\u00a0", "x".repeat(255), "caf\u00e9", "del\u007f"];
    const made: string[] = [];
    for (const name of names) {
      const directory = join(world.root, name);
      await mkdir(directory);
      made.push((await world.conversationIn(directory)).conversationId);
      await world.operator.ok("project_add", { path: directory });
    }
    await world.stop();
    await world.start();
    for (const conversationId of made) await world.show(conversationId);
    assert.is((await world.operator.ok("project_list", {})).projects.length, names.length);
  }),
);

test.run();
