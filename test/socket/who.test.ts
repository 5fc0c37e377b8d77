import { test } from "uvu";
import * as assert from "uvu/assert";
import type { Method } from "../../protocol/operations.js";
import type { RawClient } from "../raw-client.js";
import { CHOICE, inWorld, type World } from "../world.js";

type Who = "operator" | "active" | "readOnly" | "captain" | "agent" | "otherAgent" | "run" | "nobody";

const NO_ID = "00000000-0000-4000-8000-000000000000";

const READERS: readonly Who[] = ["operator", "active", "readOnly", "captain", "agent", "run"];
/** What names no conversation shows nothing of one: another conversation's agent may call it too. */
const ALL_READERS: readonly Who[] = [...READERS, "otherAgent"];
const NO_AGENTS: readonly Who[] = ["operator", "active", "readOnly", "captain"];
const MANAGERS: readonly Who[] = ["operator", "captain"];
const OWNERS: readonly Who[] = ["operator", "active"];
const OPERATOR: readonly Who[] = ["operator"];
const AGENTS: readonly Who[] = ["operator", "agent", "run"];
/** An attached agent's credential is not the agent of a command's run. */
const OF_THE_RUN: readonly Who[] = ["operator", "run"];

/** Contract section 5's table, last column. Whoever is not listed is `forbidden`. */
const TABLE: readonly (readonly [Method, readonly Who[], (conversationId: string, runId: string) => object])[] = [
  ["conversation_create", MANAGERS, () => ({ scope: { kind: "global" } })],
  ["conversation_list", ALL_READERS, () => ({})],
  ["conversation_show", READERS, (conversationId) => ({ conversationId })],
  ["conversation_send", [...OWNERS, "captain"], (conversationId) => ({ conversationId, message: "more" })],
  ["conversation_reset", OPERATOR, (conversationId) => ({ conversationId, expectedRevision: 999_999 })],
  ["conversation_tail", READERS, (conversationId) => ({ conversationId })],
  ["conversation_subscribe", READERS, (conversationId) => ({ conversationId })],
  ["conversation_unsubscribe", READERS, (conversationId) => ({ conversationId })],
  ["inbox_subscribe", NO_AGENTS, () => ({})],
  ["inbox_unsubscribe", NO_AGENTS, () => ({})],
  ["request_user_input", AGENTS, (conversationId) => ({ conversationId, ...CHOICE })],
  ["input_get", READERS, (conversationId) => ({ conversationId })],
  ["input_list", NO_AGENTS, () => ({})],
  ["run_event", OF_THE_RUN, (_, runId) => ({ runId, event: { type: "activity", phase: "thinking" } })],
  ["run_cancel", OWNERS, () => ({ runId: NO_ID })],
  ["device_pair_begin", OPERATOR, () => ({ mode: "active" })],
  ["device_list", OPERATOR, () => ({})],
  ["device_mode", OPERATOR, () => ({ deviceId: NO_ID, mode: "active" })],
  ["device_revoke", OPERATOR, () => ({ deviceId: NO_ID })],
  ["credential_issue", OPERATOR, () => ({ kind: "captain" })],
  ["credential_list", OPERATOR, () => ({})],
  ["credential_rotate", OPERATOR, () => ({ credentialId: NO_ID })],
  ["credential_revoke", OPERATOR, () => ({ credentialId: NO_ID })],
  ["project_add", OPERATOR, () => ({ path: "/nowhere" })],
  ["project_remove", OPERATOR, () => ({ projectId: NO_ID })],
  ["project_list", ALL_READERS, () => ({})],
  ["project_membership", ALL_READERS, () => ({ path: "/" })],
  ["chart_subscribe", OPERATOR, (conversationId) => ({ conversationId })],
  ["chart_unsubscribe", OPERATOR, (conversationId) => ({ conversationId })],
  ["service_status", ALL_READERS, () => ({})],
  // What ends the run comes last.
  ["run_claim", [], (_, runId) => ({ runId })],
  ["native_release", MANAGERS, (conversationId) => ({ conversationId })],
  ["run_settle", OF_THE_RUN, (_, runId) => ({ runId, state: "completed" })],
  ["native_claim", MANAGERS, (conversationId) => ({ conversationId, harness: "terminal" })],
];

async function everyone(world: World): Promise<{
  readonly conversationId: string;
  readonly runId: string;
  readonly clients: { readonly [W in Who]: RawClient };
}> {
  const { conversationId, runId, client: run } = await world.run();
  const other = await world.conversation();
  return {
    conversationId,
    runId,
    clients: {
      operator: world.operator,
      active: (await world.device("active")).client,
      readOnly: (await world.device("read-only")).client,
      captain: await world.captain(),
      agent: (await world.agent(conversationId)).client,
      otherAgent: (await world.agent(other.conversationId)).client,
      run,
      nobody: await world.connect(),
    },
  };
}

test(
  "[5] who may call a method, and who is forbidden, for every method of the table",
  inWorld(async (world) => {
    const { conversationId, runId, clients } = await everyone(world);
    const wrong: string[] = [];
    for (const [method, permitted, params] of TABLE) {
      // First those who may not, so that nothing has changed for them.
      for (const who of [...ALL_WHO].sort((one) => (permitted.includes(one) ? 1 : -1))) {
        const reply = await clients[who].call(method, { schemaVersion: 1, ...params(conversationId, runId) });
        const code = reply.error?.data.code;
        const expected = who === "nobody" ? "unauthenticated" : permitted.includes(who) ? undefined : "forbidden";
        const isRight = expected === undefined ? code !== "forbidden" && code !== "unauthenticated" : code === expected;
        // A run ends with its first settlement, and its token with it.
        const hasEnded =
          who === "run" && code === "unauthenticated" && (method === "run_settle" || method === "native_claim");
        if (!isRight && !hasEnded) wrong.push(`${method} by ${who}: ${code ?? "done"}`);
      }
    }
    assert.equal(wrong, []);
  }),
);

test(
  "[5] of two attached agents of one conversation, the one that claimed the run reports on it and settles it",
  inWorld(async (world) => {
    const { conversationId } = await world.conversation();
    const mine = (await world.agent(conversationId)).client;
    const other = (await world.agent(conversationId)).client;
    const { runId } = await world.send(conversationId, "go");
    const event = { type: "message", role: "agent", text: "working", streaming: false } as const;
    await mine.ok("run_claim", { runId });
    assert.is(await other.fault("run_event", { runId, event }), "forbidden");
    assert.is(await other.fault("run_settle", { runId, state: "failed" }), "forbidden");
    await mine.ok("run_event", { runId, event });
    await mine.ok("run_settle", { runId, state: "completed" });
    await mine.ok("run_settle", { runId, state: "completed" });
    assert.is((await world.show(conversationId)).activeRun, null);
  }),
);

test(
  "[5] the table above names every method but those that answer, authenticate and pair",
  inWorld(async (world) => {
    const { error } = await world.operator.call("no_such_method", { schemaVersion: 1 });
    const all = error?.data.errors?.[0]?.expected.replace("one of ", "").split(", ") ?? [];
    const special = ["authenticate", "device_pair_complete", "input_answer", "input_cancel"];
    assert.equal([...TABLE.map(([method]) => String(method)), ...special].sort(), [...all].sort());
  }),
);

test(
  "[6.1] who may answer: the operator and an active device; all others are refused with no question in the result",
  inWorld(async (world) => {
    const { conversationId, clients } = await everyone(world);
    await clients.agent.ok("request_user_input", { conversationId, ...CHOICE });
    const shown = await clients.agent.ok("input_get", { conversationId });
    const target = {
      conversationId,
      incarnationId: shown.incarnationId!,
      requestId: shown.question!.requestId,
      expectedRevision: shown.revision!,
    };
    const answer = { kind: "choice", optionId: shown.question!.options[0]!.optionId } as const;
    for (const [who, reason] of [
      ["readOnly", "device_read_only"],
      ["captain", "not_permitted"],
      ["agent", "not_permitted"],
      ["otherAgent", "not_permitted"],
      ["run", "not_permitted"],
    ] as const) {
      for (const result of [
        await clients[who].ok("input_answer", { ...target, answer }),
        await clients[who].ok("input_cancel", target),
      ]) {
        assert.equal(result, { status: "refused", conversationId, reason }, who);
      }
    }
    const nobody = await clients.nobody.fault("input_answer", { ...target, answer });
    assert.is(nobody, "unauthenticated");
    const answered = await clients.active.ok("input_answer", { ...target, answer });
    assert.is(answered.status, "resolved");
    assert.is(answered.question?.resolvedBy?.kind, "device");
    // Whoever of the permitted asks again gets the same receipt, the others still nothing.
    assert.equal((await clients.operator.ok("input_answer", { ...target, answer })).question, answered.question);
    assert.is((await clients.captain.ok("input_answer", { ...target, answer })).question, undefined);
  }),
);

test(
  "[2] an agent reads its own conversation and no other, and of runs that are not its own learns nothing",
  inWorld(async (world) => {
    const mine = await world.run();
    const { conversationId, runId } = await world.run();
    const other = await world.agent(conversationId);
    const list = await mine.client.ok("conversation_list", {});
    assert.equal(
      list.conversations.map((each) => each.conversationId),
      [mine.conversationId],
    );
    for (const foreign of [runId, NO_ID]) {
      const event = { type: "activity", phase: "thinking" } as const;
      assert.is(await mine.client.fault("run_event", { runId: foreign, event }), "forbidden");
      assert.is(await mine.client.fault("run_settle", { runId: foreign, state: "completed" }), "forbidden");
      assert.is(await mine.client.fault("run_claim", { runId: foreign }), "forbidden");
    }
    assert.is(await other.client.fault("conversation_show", { conversationId: mine.conversationId }), "forbidden");
    assert.is(await other.client.fault("conversation_show", { conversationId: NO_ID }), "forbidden");
  }),
);

const ALL_WHO: readonly Who[] = ["operator", "active", "readOnly", "captain", "agent", "otherAgent", "run", "nobody"];

test.run();
