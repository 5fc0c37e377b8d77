import { test } from "uvu";
import * as assert from "uvu/assert";
import { applyMergePatch, withoutNulls } from "../merge-patch.js";
import { CHOICE, inWorld, TEXT, targetOf } from "../world.js";

test(
  "[5] the status counts the active runs of attached agents too",
  inWorld(async (world) => {
    const active = async () => (await world.operator.ok("service_status", {})).counts.activeRuns;
    const { conversationId } = await world.conversation();
    const { client } = await world.agent(conversationId);
    assert.is(await active(), 0);
    const { runId } = await world.send(conversationId, "go");
    await world.send(conversationId, "and on");
    await client.ok("run_claim", { runId });
    assert.is(await active(), 1);
    await client.ok("run_settle", { runId, state: "completed" });
    assert.is(await active(), 1, "the one that waited");
    await world.operator.ok("run_cancel", { runId: (await world.show(conversationId)).activeRun?.runId ?? "" });
    assert.is(await active(), 0);
  }),
);

test(
  "[5] a bare client asks, subscribes, answers, repeats, conflicts and tails with hand-written JSON",
  inWorld(async (world) => {
    const directory = await world.directory();
    const owner = await world.connect();
    const send = async (frame: string, id: number): Promise<unknown> => {
      const reply = await owner.exchange(frame, id);
      assert.is(reply.jsonrpc, "2.0");
      assert.is(reply.error, undefined, reply.error?.message);
      return reply.result;
    };
    const token = await world.token("operator");
    assert.equal(
      await send(`{"jsonrpc":"2.0","id":1,"method":"authenticate","params":{"schemaVersion":1,"token":"${token}"}}`, 1),
      { principal: { kind: "operator", id: "operator" } },
    );
    const { conversation } = (await send(
      `{"jsonrpc":"2.0","id":2,"method":"conversation_create","params":{"schemaVersion":1,"scope":{"kind":"workspace","workspaceId":${JSON.stringify(directory)}},"title":"By hand"}}`,
      2,
    )) as { conversation: { conversationId: string } };
    const id = conversation.conversationId;
    await world.watch(id);
    const subscribed = (await send(
      `{"jsonrpc":"2.0","id":3,"method":"conversation_subscribe","params":{"schemaVersion":1,"conversationId":"${id}","events":true}}`,
      3,
    )) as { snapshot: Record<string, unknown>; version: number };
    const asked = (await send(
      `{"jsonrpc":"2.0","id":4,"method":"request_user_input","params":{"schemaVersion":1,"conversationId":"${id}","kind":"choice","prompt":" Which? ","options":[{"label":"one"},{"label":" two "}]}}`,
      4,
    )) as {
      status: string;
      revision: number;
      incarnationId: string;
      question: { requestId: string; options: { optionId: string; label: string }[]; originRunId: string };
    };
    assert.is(asked.status, "ready");
    assert.is(asked.question.originRunId, "session:operator");
    const answer = (option: number, id: number) =>
      `{"jsonrpc":"2.0","id":${id},"method":"input_answer","params":{"schemaVersion":1,"conversationId":"${conversation.conversationId}","incarnationId":"${asked.incarnationId}","requestId":"${asked.question.requestId}","expectedRevision":${asked.revision},"answer":{"kind":"choice","optionId":"${asked.question.options[option]?.optionId}"}}}`;
    const first = (await send(answer(0, 5), 5)) as { status: string; question: Record<string, unknown> };
    assert.is(first.status, "resolved");
    const again = (await send(answer(0, 6), 6)) as { status: string; question: Record<string, unknown> };
    assert.is(again.status, "resolved");
    assert.equal(again.question["resolvedAt"], first.question["resolvedAt"]);
    assert.equal(again.question["continuation"], first.question["continuation"]);
    const other = (await send(answer(1, 7), 7)) as { status: string; reason: string; question: unknown };
    assert.is(other.status, "refused");
    assert.is(other.reason, "answer_conflict");
    assert.equal(other.question, again.question);

    const tail = (await send(
      `{"jsonrpc":"2.0","id":8,"method":"conversation_tail","params":{"schemaVersion":1,"conversationId":"${id}"}}`,
      8,
    )) as { events: { type: string; cursor: string }[]; next: string; gap: boolean };
    assert.equal(
      tail.events.map(({ type }) => type),
      ["input_requested", "input_resolved", "turn"],
    );
    assert.is(tail.gap, false);
    assert.is(tail.next, tail.events.at(-1)?.cursor);
    assert.equal(
      owner.notifications.filter(({ method }) => method === "conversation_event").map(({ params }) => params["event"]),
      tail.events,
    );

    let { snapshot, version } = subscribed;
    for (const { method, params } of owner.notifications) {
      if (method !== "conversation_delta") continue;
      assert.is(params["fromVersion"], version);
      version = Number(params["toVersion"]);
      snapshot = applyMergePatch(snapshot, params["patch"]) as Record<string, unknown>;
    }
    const shown = (await send(
      `{"jsonrpc":"2.0","id":9,"method":"conversation_show","params":{"schemaVersion":1,"conversationId":"${id}"}}`,
      9,
    )) as { conversation: unknown };
    assert.equal(withoutNulls(snapshot), withoutNulls(shown.conversation));
  }),
);

test(
  "[5] the subprotocol is clankie.v1, and every reply carries its request's id",
  inWorld(async (world) => {
    assert.is(world.operator.protocol, "clankie.v1");
    const replies = await Promise.all(
      ["a", "b", 3, 4.5].map((id) => world.operator.call("service_status", { schemaVersion: 1 }, id)),
    );
    assert.equal(
      replies.map(({ id }) => id),
      ["a", "b", 3, 4.5],
    );
  }),
);

test(
  "[5] the inbox shows every pending question, and follows what is asked and resolved",
  inWorld(async (world) => {
    const first = await world.pending();
    const client = await world.captain();
    const { inbox, version } = await client.ok("inbox_subscribe", {});
    assert.equal(Object.keys(inbox), [first.target.requestId]);
    const second = await world.pending(TEXT);
    await world.operator.ok("input_cancel", first.target);
    const last = await client.notified(({ params }) => params["toVersion"] === version + 2);
    assert.is(last.method, "inbox_delta");
    const patched = client.notifications.reduce<unknown>(
      (value, { params }) => applyMergePatch(value, params["patch"]),
      inbox,
    );
    assert.equal(Object.keys(patched as object), [second.target.requestId]);
    await client.ok("inbox_unsubscribe", {});
    await world.operator.ok("input_cancel", second.target);
    await client.ok("service_status", {});
    assert.is(client.notifications.length, 2);
  }),
);

test(
  "[5] a tail reads on from its cursor, and says where events are missing",
  inWorld(
    async (world) => {
      const { conversationId } = await world.conversation();
      for (let count = 0; count < 4; count += 1) await world.send(conversationId, `message ${count}`);
      const all = await world.operator.ok("conversation_tail", { conversationId });
      assert.is(all.gap, true);
      assert.is(all.events.length, 5);
      assert.is(all.events[0]?.cursor, all.retainedFrom);
      const read: string[] = [];
      for (let after = all.events[0]!.cursor; ; ) {
        const page = await world.operator.ok("conversation_tail", { conversationId, after, limit: 2 });
        assert.is(page.gap, false);
        if (page.events.length === 0) break;
        read.push(...page.events.map(({ cursor }) => cursor));
        after = page.next;
      }
      assert.equal(
        read,
        all.events.slice(1).map(({ cursor }) => cursor),
      );
    },
    { serve: { retainEvents: 5 } },
  ),
);

test(
  "[8.11] a snapshot works though the question's events were trimmed, and reading writes nothing back",
  inWorld(
    async (world) => {
      const { conversationId, asked, target, optionIds } = await world.pending();
      for (let count = 0; count < 3; count += 1) await world.send(conversationId, `message ${count}`);
      const before = await world.operator.ok("conversation_tail", { conversationId });
      assert.not(before.events.some(({ type }) => type === "input_requested"));
      const { commits } = (await world.operator.ok("service_status", {})).store;

      const snapshot = await world.show(conversationId);
      assert.equal(snapshot.question, asked.question);
      const read = await world.operator.ok("input_get", { conversationId });
      assert.equal(read.question, asked.question);
      assert.is((await world.operator.ok("service_status", {})).store.commits, commits);
      assert.equal(await world.operator.ok("conversation_tail", { conversationId }), before);

      const answered = await world.operator.ok("input_answer", {
        ...target,
        expectedRevision: snapshot.revision,
        answer: { kind: "choice", optionId: optionIds[0]! },
      });
      assert.is(answered.status, "resolved");
    },
    { serve: { retainEvents: 4 } },
  ),
);

test(
  "[7] asking the same again returns the pending question, another draft its id",
  inWorld(async (world) => {
    const { conversationId, agent, asked } = await world.pending();
    const again = await agent.client.ok("request_user_input", { conversationId, ...CHOICE });
    assert.is(again.reason, "already_pending");
    assert.equal(targetOf(again), targetOf(asked));
    const error = await agent.client.error("request_user_input", { conversationId, ...TEXT });
    assert.is(error.data.code, "question_pending");
    assert.is(error.data.requestId, asked.question?.requestId);
    assert.is(error.code, -32004);
  }),
);

test(
  "[5] a subscriber that does not read costs no queue, and ends with the newest state and every kept event",
  inWorld(async (world) => {
    const { conversationId } = await world.conversation();
    const agent = await world.agent(conversationId);
    const reader = await world.connect(await world.token("captain"));
    const { snapshot } = await reader.ok("conversation_subscribe", { conversationId, events: true });
    const { runId } = await world.send(conversationId, "go");
    await agent.client.ok("run_claim", { runId });
    reader.pause();
    const text = "€".repeat(16_000);
    for (let round = 0; round < 3; round += 1) {
      const event = { type: "message", text } as const;
      await Promise.all(Array.from({ length: 100 }, () => agent.client.ok("run_event", { runId, event })));
    }
    await agent.client.ok("run_settle", { runId, state: "completed" });
    reader.resume();
    const last = (await world.show(conversationId)).safeCursor;
    await reader.notified(({ params }) => (params["event"] as { cursor?: string } | undefined)?.cursor === last);
    const events = reader.notifications.filter(({ method }) => method === "conversation_event");
    assert.is(events.length, 303);
    const deltas = reader.notifications.filter(({ method }) => method === "conversation_delta");
    assert.ok(deltas.length < 300, `${deltas.length} deltas were sent to a client that did not read`);
    const patched = deltas.reduce<unknown>((value, { params }) => applyMergePatch(value, params["patch"]), snapshot);
    assert.equal(withoutNulls(patched), withoutNulls(await world.show(conversationId)));
  }),
);

test.run();
