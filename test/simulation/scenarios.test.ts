import { suite } from "uvu";
import * as assert from "uvu/assert";
import { check } from "../history/checker.js";
import type { Members } from "./clients.js";
import type { CommitFault } from "./disk.js";
import { simulate } from "./simulate.js";
import { makeBeginning, type World } from "./world.js";

const test = suite("what the simulation has found");

const begin = await makeBeginning();

async function opened(): Promise<World> {
  const world = begin();
  await world.start();
  await world.tasks.drain();
  return world;
}

const COMMAND = 0;
const ATTACHED = 1;
const idOf = (world: World, place: number): string => world.seen[place]?.conversationId ?? "";
const TEXT = { kind: "text", prompt: "Which name?" };

async function done(world: World, name: string, method: string, params: Members = {}): Promise<Members> {
  const reply = await world.ask(world.person(name), method, params);
  if (reply?.ok !== true) throw new Error(`${method}: ${JSON.stringify(reply)}`);
  return reply.result;
}

async function codeOf(world: World, name: string, method: string, params: Members = {}): Promise<string> {
  const reply = await world.ask(world.person(name), method, params);
  return reply === undefined ? "no reply" : reply.ok ? "ok" : reply.code;
}

const asks = (world: World): Promise<Members> =>
  done(world, "agent-1", "request_user_input", { conversationId: idOf(world, ATTACHED), ...TEXT });

const targetOf = ({ question, revision }: Members): Members => {
  const { conversationId, incarnationId, requestId } = question as Members;
  return { conversationId, incarnationId, requestId, expectedRevision: revision };
};

const show = async (world: World, place: number): Promise<Members> =>
  (await done(world, "operator-1", "conversation_show", { conversationId: idOf(world, place) }))[
    "conversation"
  ] as Members;

/** Starts the service again on a disk whose next commits meet this. */
async function startedAgain(world: World, fault: CommitFault, refuses: boolean): Promise<void> {
  world.crash();
  world.disk.arm(fault);
  world.disk.refuses = refuses;
  await world.start();
  await world.tasks.drain();
}

function isWell(world: World): void {
  assert.equal([...world.faults, ...world.ledger.faults], []);
  assert.equal(check(world.recorder.records), []);
}

/** The process ends where it cannot start, and somebody starts it again. */
async function startedAtLast(world: World): Promise<void> {
  world.disk.mend();
  await world.start();
  await world.tasks.drain();
}

for (const fault of ["failed", "torn", "lost"] as const) {
  test(`[8.1] a question is not answerable where its cancellation at the start was not stored (${fault})`, async () => {
    const world = await opened();
    const asked = await asks(world);
    await startedAgain(world, fault, true);
    const answer = { ...targetOf(asked), answer: { kind: "text", text: "Ada" } };
    assert.is.not(await codeOf(world, "operator-1", "input_answer", answer), "ok");
    await startedAtLast(world);
    const { status, reason, question } = await done(world, "operator-1", "input_answer", answer);
    const receipt = question as Members;
    assert.equal([status, reason, receipt["reason"]], ["refused", "question_cancelled", "service_restarted"]);
    isWell(world);
  });

  test(`[8.2] a run of an earlier life is not handed out where its end at the start was not stored (${fault})`, async () => {
    const world = await opened();
    const conversationId = idOf(world, ATTACHED);
    const { runId } = await done(world, "operator-1", "conversation_send", { conversationId, message: "go on" });
    await startedAgain(world, fault, false);
    assert.is.not(await codeOf(world, "agent-1", "run_claim", { runId }), "ok");
    await startedAtLast(world);
    assert.is(await codeOf(world, "agent-1", "run_claim", { runId }), "forbidden");
    assert.is((await show(world, ATTACHED))["activeRun"], null);
    isWell(world);
  });
}

test("[8.1, 8.9] a conversation that could not be read at the start is recovered before anything else once it can be", async () => {
  const world = await opened();
  const asked = await asks(world);
  const conversationId = idOf(world, ATTACHED);
  world.crash();
  world.disk.armRead("damaged", `conversation/${conversationId}/`, 0);
  await world.start();
  await world.tasks.drain();
  const answer = { ...targetOf(asked), answer: { kind: "text", text: "Ada" } };
  assert.is(await codeOf(world, "operator-1", "input_answer", answer), "question_state_unavailable");
  assert.is(await codeOf(world, "operator-1", "conversation_show", { conversationId: idOf(world, COMMAND) }), "ok");
  world.disk.mend();
  const { question } = await done(world, "operator-1", "input_answer", answer);
  assert.is((question as Members)["reason"], "service_restarted");
  isWell(world);
});

test("[8.8] a claim that was found durable after a fault hands nothing over, and its run has failed", async () => {
  const world = await opened();
  const conversationId = idOf(world, ATTACHED);
  const { runId } = await done(world, "operator-1", "conversation_send", { conversationId, message: "go on" });
  world.disk.arm("lost");
  assert.is(await codeOf(world, "agent-1", "run_claim", { runId }), "forbidden");
  assert.is((await show(world, ATTACHED))["activeRun"], null);
  isWell(world);
});

test("[8.8, 8.9] a read-back that finds neither what was to be stored nor what was there before takes it for neither", async () => {
  const world = await opened();
  const conversationId = idOf(world, ATTACHED);
  const message = { conversationId, message: "go on" };
  await show(world, ATTACHED);
  world.disk.arm("lost");
  world.disk.armRead("corrupt", `conversation/${conversationId}/head`, 0);
  assert.is(await codeOf(world, "operator-1", "conversation_send", message), "question_state_unavailable");
  assert.is(await codeOf(world, "operator-1", "conversation_send", message), "question_state_unavailable");
  world.disk.mend();
  world.environment.advance(3_000);
  await world.tasks.drain();
  const { activeRun, revision } = await show(world, ATTACHED);
  assert.equal([activeRun, revision], [null, 1]);
  isWell(world);
});

test("[8.5] a run that the store did not let begin begins when the store is back", async () => {
  const world = await opened();
  const conversationId = idOf(world, COMMAND);
  world.disk.arm("failed", 1);
  world.disk.refuses = true;
  await done(world, "operator-1", "conversation_send", { conversationId, message: "go on" });
  assert.is(world.agents.length, 0);
  world.disk.mend();
  world.environment.advance(3_000);
  await world.tasks.drain();
  assert.is(world.agents.length, 1);
  assert.equal(((await show(world, COMMAND))["activeRun"] as Members)["state"], "running");
  isWell(world);
});

test("[8.5] the end of a run that was not stored is stored when the store is back", async () => {
  const world = await opened();
  await done(world, "operator-1", "conversation_send", { conversationId: idOf(world, COMMAND), message: "go on" });
  world.disk.arm("failed");
  world.disk.refuses = true;
  world.agents[0]?.end(0);
  await world.tasks.drain();
  world.disk.mend();
  world.environment.advance(3_000);
  await world.tasks.drain();
  assert.is((await show(world, COMMAND))["activeRun"], null);
  isWell(world);
});

test("[6.9] an event that is on the disk and not acknowledged is told once, with its commit", async () => {
  const world = await opened();
  const conversationId = idOf(world, ATTACHED);
  await done(world, "operator-1", "conversation_send", { conversationId, message: "one" });
  world.disk.slowCommits = true;
  world.request(world.person("operator-1"), "conversation_send", { conversationId, message: "two" });
  await world.tasks.step(0);
  await world.tasks.step(0);
  assert.equal(world.tasks.labels, [`committed conversation/${conversationId}/head`]);
  world.request(world.person("device-a"), "conversation_subscribe", {
    conversationId,
    events: true,
    after: "0000000000000000",
  });
  await world.tasks.drain();
  world.recorder.add({ type: "settled" });
  isWell(world);
});

test("[5] events that could not be read for a subscriber are read again, and none is skipped", async () => {
  for (const isQuiet of [true, false]) {
    const world = await opened();
    const conversationId = idOf(world, ATTACHED);
    await done(world, "operator-1", "conversation_send", { conversationId, message: "one" });
    world.disk.armRead("error", "", 1);
    const after = "0000000000000000";
    await done(world, "device-a", "conversation_subscribe", { conversationId, events: true, after });
    if (isQuiet) world.environment.advance(3_000);
    else await done(world, "operator-1", "conversation_send", { conversationId, message: "two" });
    await world.tasks.drain();
    await done(world, "operator-1", "conversation_tail", { conversationId });
    world.recorder.add({ type: "settled" });
    isWell(world);
  }
});

test("[5] a subscriber that did not read while events left the history is told of the gap, and has the last state", async () => {
  const world = await opened();
  const conversationId = idOf(world, ATTACHED);
  await done(world, "operator-1", "conversation_subscribe", { conversationId, events: true });
  await done(world, "device-a", "conversation_subscribe", { conversationId, events: true });
  const { socket } = world.person("device-a");
  if (socket === null) throw new Error("the device is not connected");
  socket.stalled = true;
  for (const message of ["1", "2", "3", "4", "5", "6", "7", "8"]) {
    await done(world, "captain", "conversation_send", { conversationId, message });
  }
  assert.ok(socket.unread <= 6, `${socket.unread} frames wait`);
  socket.stalled = false;
  socket.read();
  await world.tasks.drain();
  world.recorder.add({ type: "settled" });
  isWell(world);
  assert.ok(world.recorder.trace.some((line) => line.startsWith("device-a") && line.includes("conversation_gap")));
});

test("[8.11] events that have left the disk before their commit was acknowledged are announced as a gap", async () => {
  const world = await opened();
  const conversationId = idOf(world, ATTACHED);
  const send = (message: string): Members => ({ conversationId, message });
  for (const message of ["1", "2", "3", "4"]) await done(world, "operator-1", "conversation_send", send(message));
  const { next } = await done(world, "operator-1", "conversation_tail", { conversationId, limit: 1 });
  world.disk.slowCommits = true;
  world.request(world.person("operator-1"), "conversation_send", send("5"));
  await world.tasks.step(0);
  await world.tasks.step(0);
  assert.equal(world.tasks.labels, [`committed conversation/${conversationId}/head`]);
  const tail = { conversationId, after: "0000000000000000" };
  const read = await new Promise<Members>((resolve) => {
    world.request(world.person("device-a"), "conversation_tail", tail, false, (reply) =>
      resolve(reply.ok ? reply.result : {}),
    );
  });
  const { gap, events, retainedFrom } = read as { gap: boolean; events: readonly Members[]; retainedFrom: string };
  assert.is(gap, true);
  assert.is(events[0]?.["cursor"], retainedFrom);
  assert.ok(String(next) < retainedFrom);
  await world.tasks.drain();
  isWell(world);
});

test("[7 owner_revoked] a revocation whose outcome was unknown is carried through once it is found durable", async () => {
  const world = await opened();
  await asks(world);
  world.disk.arm("lost");
  world.disk.refuses = true;
  const { "agent-1": credentialId } = world.ids;
  assert.is(await codeOf(world, "operator-1", "credential_revoke", { credentialId }), "storage_unavailable");
  world.disk.mend();
  world.environment.advance(3_000);
  await world.tasks.drain();
  const { question, receipts } = await show(world, ATTACHED);
  assert.is(question, null);
  assert.equal(
    Object.values(receipts as Members).map((receipt) => (receipt as Members)["reason"]),
    ["owner_revoked"],
  );
  assert.is(await codeOf(world, "agent-1", "service_status"), "unauthenticated");
  isWell(world);
});

test("[6.1] a device whose revocation is on its way to the disk does not answer behind it", async () => {
  const world = await opened();
  const asked = await asks(world);
  world.disk.slowCommits = true;
  world.request(world.person("operator-1"), "device_revoke", { deviceId: world.ids["device-a"] });
  await world.tasks.step(99);
  let answer: Members = {};
  world.request(
    world.person("device-a"),
    "input_answer",
    { ...targetOf(asked), answer: { kind: "text", text: "Ada" } },
    false,
    (reply) => {
      answer = reply.ok ? reply.result : {};
    },
  );
  await world.tasks.drain();
  assert.equal([answer["status"], answer["reason"]], ["refused", "device_revoked"]);
  isWell(world);
});

test("[2] a message of one who is revoked while the directory is looked at is not accepted", async () => {
  const world = await opened();
  world.slowLooks = true;
  let reply: unknown;
  const conversationId = idOf(world, ATTACHED);
  world.request(world.person("captain"), "conversation_send", { conversationId, message: "go" }, false, (each) => {
    reply = each;
  });
  world.request(world.person("operator-1"), "credential_revoke", { credentialId: "captain" });
  await world.tasks.step(99);
  await world.tasks.drain();
  assert.equal(reply, { ok: false, code: "unauthenticated" });
  assert.is((await show(world, ATTACHED))["activeRun"], null);
  isWell(world);
});

test("[5] a delta never overtakes the reply to the subscription", async () => {
  const world = await opened();
  const conversationId = idOf(world, ATTACHED);
  world.disk.slowCommits = true;
  world.request(world.person("operator-1"), "conversation_send", { conversationId, message: "go on" });
  while (!world.tasks.labels.some((label) => label.startsWith("committed"))) await world.tasks.step(0);
  world.request(world.person("device-a"), "conversation_subscribe", { conversationId });
  const acknowledged = world.tasks.step(0);
  world.request(world.person("device-b"), "conversation_subscribe", { conversationId });
  await acknowledged;
  await world.tasks.drain();
  world.recorder.add({ type: "settled" });
  isWell(world);
});

test("a subscription that was under way when its connection ended follows nothing", async () => {
  const world = await opened();
  const conversationId = idOf(world, ATTACHED);
  world.crash();
  await world.start();
  await world.tasks.drain();
  world.disk.slowReads = true;
  const device = world.person("device-a");
  world.request(device, "conversation_subscribe", { conversationId, events: true });
  device.socket?.cut();
  await world.tasks.drain();
  world.disk.mend();
  const before = world.recorder.trace.length;
  await done(world, "operator-1", "conversation_send", { conversationId, message: "go on" });
  assert.is(world.service?.followersOf(conversationId), 0);
  assert.ok(world.recorder.trace.slice(before).every((line) => !line.startsWith("device-a")));
  isWell(world);
});

test("an idle conversation that is not settled stays the only object of its id", async () => {
  const { faults } = await simulate(begin(), [
    { do: "request", who: 0, what: "send", where: 4, pick: 1, isLate: false },
    { do: "disk", fault: "lost", later: 0, refuses: true },
    { do: "request", who: 0, what: "send", where: 4, pick: 1, isLate: false },
    { do: "request", who: 0, what: "show", where: 0, pick: 1, isLate: false },
    { do: "mend" },
    { do: "request", who: 0, what: "show", where: 0, pick: 1, isLate: false },
    { do: "request", who: 0, what: "show", where: 7, pick: 1, isLate: false },
    { do: "request", who: 0, what: "show", where: 4, pick: 1, isLate: false },
    { do: "wait", seconds: 2 },
  ]);
  assert.equal(faults, []);
});

test("a run whose conversation cannot be read for a moment is settled when it can be read again", async () => {
  const { faults } = await simulate(begin(), [
    { do: "request", who: 0, what: "send", where: 0, pick: 0, isLate: false },
    { do: "read", fault: "corrupt", where: 0, count: 1 },
    { do: "request", who: 0, what: "show", where: 24, pick: 0, isLate: false },
    { do: "agent", pick: 0, does: "say" },
  ]);
  assert.equal(faults, []);
});

test.run();
