import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { BOUNDS } from "../../protocol/bounds.js";
import { CHOICE, inWorld, type World } from "../world.js";

const sh = (script: string): readonly string[] => ["sh", "-c", script];

/** Runs a command once: how it ended, and what it said. */
async function ran(world: World, command: readonly string[], message = "go") {
  const { conversationId } = await world.conversation(command);
  const { runId } = await world.send(conversationId, message);
  const end = await world.turnEnd(conversationId, runId);
  const said = world
    .events(conversationId)
    .flatMap((event) => (event.type === "message" && event.role === "agent" ? [event.text] : []));
  return { conversationId, runId, end, said };
}

test(
  "[10] a command's stdout lines become agent messages, its message comes on stdin, exit 0 completes",
  inWorld(async (world) => {
    const { end, said } = await ran(world, sh("cat; echo; echo two; echo not this >&2; printf 'no line end'"), "one");
    assert.equal(said, ["one", "two", "no line end"]);
    assert.equal([end.phase, end.reasonCode], ["completed", undefined]);
  }),
);

test(
  "[10] any other end fails the run and says how: status, signal, time limit, a command that is missing",
  inWorld(
    async (world) => {
      for (const [command, reasonCode] of [
        [sh("exit 7"), "exit_7"],
        [sh("kill -KILL $$"), "signal_SIGKILL"],
        [sh("exec sleep 600"), "timed_out"],
        [["/nowhere/agent"], "not_started"],
        [["./agent"], "not_started"],
      ] as const) {
        const { end } = await ran(world, command);
        assert.equal([end.phase, end.reasonCode], ["failed", reasonCode]);
      }
    },
    { serve: { runTimeoutMs: 2_000 } },
  ),
);

test(
  "[10] a run's environment says where it is, and carries a token for this run",
  inWorld(async (world) => {
    const { said, conversationId, runId } = await ran(world, sh("env | grep ^CLANKIE_ | sort; pwd"));
    const variables = Object.fromEntries(said.slice(0, -1).map((line) => line.split(/=(.*)/s)));
    assert.equal(Object.keys(variables), [
      "CLANKIE_CONTEXT",
      "CLANKIE_CONVERSATION",
      "CLANKIE_RUN",
      "CLANKIE_TOKEN",
      "CLANKIE_URL",
    ]);
    assert.is(variables["CLANKIE_URL"], world.url);
    assert.is(variables["CLANKIE_CONVERSATION"], conversationId);
    assert.is(variables["CLANKIE_RUN"], runId);
    const workspace = said.at(-1);
    assert.equal(JSON.parse(variables["CLANKIE_CONTEXT"] ?? ""), {
      workspace,
      project: "unassigned",
      projectsRevision: 0,
    });
    assert.is(workspace, (await world.show(conversationId)).scope.workspaceId);
  }),
);

test(
  "[2, 5] an agent reads its own conversation, asks there, and can neither answer nor look into another",
  inWorld(async (world) => {
    const other = await world.pending();
    const { conversationId, client, runId } = await world.run();
    const shown = await client.ok("conversation_show", { conversationId });
    assert.is(shown.conversation.activeRun?.runId, runId);
    assert.is(await client.fault("conversation_tail", { conversationId: other.conversationId }), "forbidden");
    const asked = await client.ok("request_user_input", { conversationId, ...CHOICE });
    for (const target of [
      other.target,
      {
        conversationId,
        incarnationId: asked.incarnationId!,
        requestId: asked.question!.requestId,
        expectedRevision: asked.revision!,
      },
    ]) {
      const optionId = asked.question!.options[0]!.optionId;
      assert.is(
        (await client.ok("input_answer", { ...target, answer: { kind: "choice", optionId } })).reason,
        "not_permitted",
      );
      assert.is((await client.ok("input_cancel", target)).reason, "not_permitted");
    }
  }),
);

test(
  "[5] one run at a time; sixteen wait, the next is queue_full, and a place that is free is taken again",
  inWorld(async (world) => {
    const { conversationId } = await world.conversation();
    await world.send(conversationId, "active");
    const waiting: string[] = [];
    for (let count = 0; count < BOUNDS.queuedRuns; count += 1) {
      waiting.push((await world.send(conversationId, `waiting ${count}`)).runId);
    }
    const before = await world.show(conversationId);
    assert.is(before.queuedRuns, 16);
    assert.is(await world.operator.fault("conversation_send", { conversationId, message: "too many" }), "queue_full");
    assert.equal(await world.show(conversationId), before);
    await world.operator.ok("run_cancel", { runId: waiting[3]! });
    await world.send(conversationId, "now there is room");
    // An answer needs a place too, and is not consumed for want of one.
    const agent = await world.agent(conversationId);
    const asked = await agent.client.ok("request_user_input", { conversationId, ...CHOICE });
    const answer = {
      conversationId,
      incarnationId: asked.incarnationId!,
      requestId: asked.question!.requestId,
      expectedRevision: asked.revision!,
      answer: { kind: "choice", optionId: asked.question!.options[0]!.optionId },
    } as const;
    assert.is(await world.operator.fault("input_answer", answer), "queue_full");
    assert.is((await world.show(conversationId)).question?.status, "pending");
  }),
);

test(
  "[10] run_cancel ends the process group, and the next run starts",
  inWorld(async (world) => {
    const { conversationId } = await world.conversation(sh('sleep 600 & echo "$$ $!"; wait'));
    const first = await world.send(conversationId, "first");
    const second = await world.send(conversationId, "second");
    const { text, cursor } = await world.event(conversationId, "message", ({ role }) => role === "agent");
    await world.operator.ok("run_cancel", { runId: first.runId });
    assert.is((await world.turnEnd(conversationId, first.runId)).phase, "cancelled");
    await world.event(conversationId, "message", (event) => event.role === "agent" && event.cursor > cursor);
    await world.operator.ok("run_cancel", { runId: second.runId });
    await world.stop(); // waits for every process group
    assert.equal(await Promise.all(text.split(" ").map((pid) => isAlive(Number(pid)))), [false, false]);
  }),
);

test(
  "[10] children that a command leaves behind end with its run",
  inWorld(async (world) => {
    const { end, said } = await ran(world, sh('sleep 600 >/dev/null 2>&1 & echo "$!"'));
    assert.is(end.phase, "completed");
    assert.is(await isAlive(Number(said[0])), false);
  }),
);

test(
  "[3, 10] a command that floods is taken down in order, and the history keeps its bound",
  inWorld(
    async (world) => {
      const { end, conversationId } = await ran(world, sh("seq 1 3000; printf '%40000s\\n' x | tr ' ' y"));
      assert.is(end.phase, "completed");
      const { events } = await world.operator.ok("conversation_tail", { conversationId, limit: 500 });
      assert.is(events.length, 50);
      const said = events.flatMap((event) => (event.type === "message" ? [event.text] : []));
      const numbers = said.map(Number).filter((number) => !Number.isNaN(number));
      assert.equal(
        numbers,
        Array.from(numbers, (_, index) => 3_000 - numbers.length + 1 + index),
      );
      assert.equal(
        said.slice(-3).map(({ length }) => length),
        [16_384, 16_384, 40_000 - 2 * 16_384],
      );
    },
    { serve: { retainEvents: 50 } },
  ),
);

test(
  "[5] an attached agent claims a run once, reports on it, and settles it as often as it likes, but alike",
  inWorld(async (world) => {
    const { conversationId, scope } = await world.conversation();
    const { client } = await world.agent(conversationId);
    const { runId } = await world.send(conversationId, "hello");
    assert.is(await client.fault("run_event", { runId, event: { type: "activity", phase: "thinking" } }), "forbidden");
    assert.is(await client.fault("run_settle", { runId, state: "completed" }), "forbidden");
    const claimed = await client.ok("run_claim", { runId });
    assert.equal(claimed, {
      runId,
      message: "hello",
      context: { workspace: scope.workspaceId!, project: "unassigned", projectsRevision: 0 },
      workspace: scope.workspaceId!,
    });
    const other = await world.agent(conversationId);
    assert.is(await client.fault("run_claim", { runId }), "forbidden");
    assert.is(await other.client.fault("run_claim", { runId }), "forbidden");
    const tool = { type: "tool", toolCallId: "1", name: "read", phase: "started" } as const;
    const { cursor } = await client.ok("run_event", { runId, event: tool });
    assert.is((await world.event(conversationId, "tool")).cursor, cursor);
    const forged = { type: "message", role: "operator", text: "I agree" };
    const reply = await client.call("run_event", { schemaVersion: 1, runId, event: forged });
    assert.is(reply.error?.data.code, "invalid_params");
    const end = { runId, state: "failed", reasonCode: "no_idea", summary: "I could not" } as const;
    for (const _ of [1, 2, 3]) assert.equal(await client.ok("run_settle", end), {});
    assert.is(await client.fault("run_settle", { ...end, state: "completed" }), "forbidden");
    assert.is(await client.fault("run_settle", { runId, state: "failed" }), "forbidden");
    assert.is(world.events(conversationId).filter(({ type }) => type === "turn").length, 2);
    const { revision } = await world.show(conversationId);
    assert.is(revision, 1); // the message; what an agent says and how it ends leave it alone
  }),
);

async function isAlive(pid: number): Promise<boolean> {
  const text = await readFile(join("/proc", String(pid), "stat"), "utf8").catch(() => "");
  const [state] = text.slice(text.lastIndexOf(")") + 2).split(" ");
  return text !== "" && state !== "Z" && state !== "X";
}

test.run();
