import { test } from "uvu";
import * as assert from "uvu/assert";
import type { Notifications } from "../../protocol/operations.js";
import type { Notification, RawClient } from "../raw-client.js";
import { inWorld } from "../world.js";

type Transition = Notifications["chart_transition"];

// the client has held it against the protocol's validator
const transitionOf = ({ params }: Notification): Transition => params as unknown as Transition;

const told = (client: RawClient): readonly Transition[] =>
  client.notifications.filter(({ method }) => method === "chart_transition").map(transitionOf);

/** The first transition of an event, of those that came or will come. */
const transition = async (client: RawClient, event: string, fits: (each: Transition) => boolean = () => true) =>
  transitionOf(
    await client.notified(
      (each) => each.method === "chart_transition" && transitionOf(each).event === event && fits(transitionOf(each)),
    ),
  );

test(
  "[6.9] an operator sees each transition with its guard, its rule and its effects after its commit",
  inWorld(async (world) => {
    const { conversationId, target, optionIds, agent } = await world.pending();
    const viewer = await world.connect(await world.token("operator"));
    const { states, version, facts } = await viewer.ok("chart_subscribe", { conversationId });
    assert.equal(states, { driver: "service", question: "pending", turn: "idle" });
    assert.equal(
      [facts.workspaceIsSame, facts.owner, facts.asker],
      [
        true,
        { kind: "operator", id: "operator", standing: "good" },
        { kind: "agent", id: agent.credentialId, standing: "good" },
      ],
    );
    await world.operator.ok("input_answer", { ...target, answer: { kind: "choice", optionId: optionIds[0]! } });
    const seen = await transition(viewer, "question.answer");
    assert.equal([seen.changed, seen.refused, seen.version], [true, false, version + 1]);
    assert.equal(
      seen.steps.map(({ region, from, to, guard, rule, actions }) => [region, from, to, guard, rule, actions]),
      [
        ["question", "pending", "submitted", undefined, "6.9", ["acceptAnswer"]],
        ["turn", "idle", "accepted", "aRunWaits", "1, run", ["takeNextRun"]],
      ],
    );
  }),
);

test(
  "[6.1] refusals are seen too, the captain's who is refused before anything is read, and none says what was written",
  inWorld(async (world) => {
    const { conversationId, target } = await world.pending();
    const viewer = await world.connect(await world.token("operator"));
    const { version } = await viewer.ok("chart_subscribe", { conversationId });
    const answer = { kind: "text", text: "a secret of the owner" } as const;
    await (await world.captain()).ok("input_answer", { ...target, answer });
    const refused = await transition(viewer, "question.answer");
    assert.equal(
      [refused.changed, refused.refused, refused.reason, refused.version],
      [false, true, "not_permitted", version],
    );
    assert.equal(
      refused.steps.map(({ guard, rule }) => [guard, rule]),
      [["callerMayNotAnswer", "6.1"]],
    );
    await world.operator.ok("input_answer", { ...target, answer });
    const unfit = await transition(viewer, "question.answer", ({ reason }) => reason === "text_not_allowed");
    assert.is(unfit.steps[0]?.guard, "textIsNotAllowed");
    await world.operator.ok("conversation_send", { conversationId, message: "a secret of the owner" });
    await transition(viewer, "message.send");
    assert.not.match(JSON.stringify(viewer.notifications), /secret/);
  }),
);

test(
  "[7] looking is no use: it finds the directory gone and cancels nothing",
  inWorld(async (world) => {
    const { conversationId } = await world.pending();
    const { scope } = await world.show(conversationId);
    const { rename } = await import("node:fs/promises");
    await rename(scope.workspaceId!, `${scope.workspaceId!}-moved`);
    const { facts } = await world.operator.ok("chart_subscribe", { conversationId });
    assert.is(facts.workspaceIsSame, false);
    assert.is((await world.show(conversationId)).question?.status, "pending");
    await world.operator.ok("input_get", { conversationId });
    const read = await transition(world.operator, "question.read");
    assert.equal(
      read.steps.map(({ guard, to }) => [guard, to]),
      [["readsOneWhoseContextIsLost", "cancelled"]],
    );
  }),
);

test(
  "[2] it is the operator's alone, ends when it is ended, and ends with the token",
  inWorld(async (world) => {
    const { conversationId } = await world.pending();
    for (const client of [await world.captain(), (await world.device("active")).client]) {
      const { error } = await client.call("chart_subscribe", { schemaVersion: 1, conversationId });
      assert.is(error?.data.code, "forbidden");
    }
    const { operator } = world;
    await operator.ok("chart_subscribe", { conversationId });
    await operator.ok("chart_unsubscribe", { conversationId });
    await operator.ok("input_get", { conversationId });
    assert.equal(told(operator), []);
    const viewer = await world.connect(await world.token("operator"));
    await viewer.ok("chart_subscribe", { conversationId });
    await operator.ok("credential_rotate", { credentialId: "operator" });
    await viewer.notified(({ method }) => method === "credential_ended");
    await (await world.captain()).ok("input_get", { conversationId });
    const { error } = await viewer.call("chart_subscribe", { schemaVersion: 1, conversationId });
    assert.is(error?.data.code, "unauthenticated");
    assert.equal(told(viewer), []);
  }),
);

test(
  "asking again looks again and tells nothing twice",
  inWorld(async (world) => {
    const { conversationId } = await world.pending();
    const { operator } = world;
    await operator.ok("chart_subscribe", { conversationId });
    await operator.ok("chart_subscribe", { conversationId });
    await operator.ok("input_get", { conversationId });
    await operator.ok("service_status", {});
    assert.is(told(operator).length, 1);
  }),
);

test.run();
