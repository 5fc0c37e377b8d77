import { suite } from "uvu";
import * as assert from "uvu/assert";
import { FaultError, LinkLost } from "../../clients/link/errors.js";
import { nodeConnector } from "../../clients/link/node.js";
import { recoveredAnswer } from "../../clients/link/outcome.js";
import type { ConversationUpdate, InboxUpdate } from "../../clients/link/watch.js";
import { type Link, type LinkState, openLink } from "../../clients/link.js";
import { ManualClock } from "./manual-clock.js";
import { Peer, type PeerConnection } from "./peer.js";
import { Queue } from "./queue.js";
import { INCARNATION, OPTION, question, REQUEST, snapshot, submitted, TARGET } from "./samples.js";

interface World {
  readonly peer: Peer;
  readonly clock: ManualClock;
  readonly link: Link;
  readonly oddities: string[];
  /** The next change of the link's state. */
  state(): Promise<LinkState>;
  /** The link connected, with the service's end. */
  connected(): Promise<PeerConnection>;
}

const test = suite<{ peer: Peer; links: Link[] }>("link", { peer: undefined as never, links: [] });
test.before.each(async (context) => {
  context.peer = await Peer.start();
  context.links = [];
});
test.after.each(async ({ peer, links }) => {
  for (const link of links) link.close();
  await peer.stop();
});

function open(context: { peer: Peer; links: Link[] }, token = "secret"): World {
  const clock = new ManualClock();
  const oddities: string[] = [];
  const states = new Queue<LinkState>();
  const link = openLink({
    url: context.peer.url,
    token,
    connector: nodeConnector,
    clock,
    random: () => 0.5,
    onOddity: (text) => oddities.push(text),
  });
  link.onState((state) => states.put(state));
  context.links.push(link);
  const state = () => states.take();
  return {
    peer: context.peer,
    clock,
    link,
    oddities,
    state,
    async connected() {
      const connection = await context.peer.connection();
      assert.is((await state()).kind, "connected");
      return connection;
    },
  };
}

/** Lets the link come back after a loss. */
async function reconnected(
  { state, clock, connected }: World,
  meanwhile: () => Promise<void> = async () => {},
): Promise<PeerConnection> {
  const lost = await state();
  if (lost.kind !== "reconnecting") throw new Error(`it is ${lost.kind}`);
  await meanwhile();
  clock.advance(lost.nextTryAt - clock.now());
  return connected();
}

test("[5] the token goes into the Authorization header and every request carries schemaVersion 1", async (context) => {
  const { link, connected } = open(context);
  const peer = await connected();
  assert.is(peer.headers.authorization, "Bearer secret");
  assert.is(peer.headers["sec-websocket-protocol"], "clankie.v1");
  const reply = link.call("conversation_show", { conversationId: "c1" });
  const request = await peer.request();
  assert.equal(request.params, { schemaVersion: 1, conversationId: "c1" });
  peer.reply(request.id, { conversation: snapshot() });
  assert.equal(await reply, { conversation: snapshot() });
});

test("a fault rejects with the contract's code", async (context) => {
  const { link, connected } = open(context);
  const peer = await connected();
  const reply = link.call("conversation_show", { conversationId: "c1" }).catch((error: unknown) => error);
  peer.fault((await peer.request()).id, "unknown_conversation", -32002);
  const error = await reply;
  assert.instance(error, FaultError);
  assert.is(error instanceof FaultError && error.code, "unknown_conversation");
});

test("a refused upgrade closes the link for good", async (context) => {
  context.peer.refuse = 401;
  const { link, state, clock } = open(context);
  assert.equal(await state(), { kind: "closed", reason: "unauthenticated" });
  clock.advance(1_000_000);
  assert.equal(link.state, { kind: "closed", reason: "unauthenticated" });
  const error = await link.ready().catch((caught: unknown) => caught);
  assert.ok(error instanceof LinkLost && !error.sent);
});

test("a refused host or origin closes the link for good", async (context) => {
  context.peer.refuse = 403;
  assert.equal(await open(context).state(), { kind: "closed", reason: "forbidden" });
});

test("a close with 4401 closes the link for good", async (context) => {
  const { connected, state } = open(context);
  (await connected()).socket.close(4401);
  assert.equal(await state(), { kind: "closed", reason: "unauthenticated" });
});

test("[2] a token that is refused at a request closes the link for good", async (context) => {
  const { link, connected, state } = open(context);
  const peer = await connected();
  const reply = link.call("service_status", {}).catch((error: unknown) => error);
  peer.fault((await peer.request()).id, "unauthenticated", -32000);
  assert.ok((await reply) instanceof FaultError);
  assert.equal(await state(), { kind: "closed", reason: "unauthenticated" });
});

test("other failures are tried again, with growing pauses that end at 15 s", async (context) => {
  context.peer.refuse = 503;
  const { state, clock } = open(context);
  const pauses: number[] = [];
  for (let attempt = 1; attempt <= 9; attempt += 1) {
    const next = await state();
    if (next.kind !== "reconnecting") throw new Error(`it is ${next.kind}`);
    assert.is(next.attempt, attempt);
    pauses.push(next.nextTryAt - clock.now());
    clock.advance(next.nextTryAt - clock.now());
  }
  assert.equal(pauses, [125, 250, 500, 1000, 2000, 4000, 7500, 7500, 7500]);
});

test("a stable connection starts the pauses anew", async (context) => {
  const world = open(context);
  (await world.connected()).cut();
  const again = await reconnected(world);
  world.clock.advance(10_000);
  again.cut();
  const state = await world.state();
  assert.ok(state.kind === "reconnecting" && state.attempt === 1);
});

test("a call without a connection is refused at once and never sent later", async (context) => {
  const world = open(context);
  (await world.connected()).cut();
  const peer = await reconnected(world, async () => {
    const error = await world.link.call("run_cancel", { runId: "r" }).catch((caught: unknown) => caught);
    assert.ok(error instanceof LinkLost && !error.sent);
  });
  void world.link.call("service_status", {}).catch(() => {});
  assert.is((await peer.request()).method, "service_status");
});

test("75 s without a sign of life end the connection, and a ping is one", async (context) => {
  const { connected, state, clock } = open(context);
  const peer = await connected();
  clock.advance(60_000);
  const pong = new Promise((resolve) => peer.socket.once("pong", resolve));
  peer.socket.ping();
  await pong;
  clock.advance(60_000);
  clock.advance(15_000);
  const lost = await state();
  assert.ok(lost.kind === "reconnecting" && lost.detail.includes("75 s"), JSON.stringify(lost));
});

test("a request without a reply is given up after 30 s, and its late reply is nobody's", async (context) => {
  const { link, connected, clock, oddities } = open(context);
  const peer = await connected();
  const reply = link.call("service_status", {}).catch((error: unknown) => error);
  const first = await peer.request();
  clock.advance(30_000);
  const error = await reply;
  assert.ok(error instanceof LinkLost && error.sent);
  peer.reply(first.id, {});
  const second = link.call("conversation_show", { conversationId: "c1" });
  peer.reply((await peer.request()).id, { conversation: snapshot() });
  await second;
  assert.equal(oddities, ["a reply that nobody waits for"]);
});

for (const [name, frame] of [
  ["text that is no JSON", "{"],
  ["a binary frame", Buffer.from("{}")],
  ["a batch", "[]"],
  ["null", "null"],
  ["a delta with missing fields", '{"jsonrpc":"2.0","method":"inbox_delta","params":{}}'],
  ["a frame over 1 MiB", JSON.stringify({ jsonrpc: "2.0", method: "x", params: "x".repeat(1_048_576) })],
] as const)
  test(`${name} from the service ends the connection, not the client`, async (context) => {
    const world = open(context);
    const peer = await world.connected();
    const lost = world.link.call("service_status", {}).catch((error: unknown) => error);
    await peer.request();
    peer.raw(frame);
    const error = await lost;
    assert.ok(error instanceof LinkLost && error.sent);
    await reconnected(world);
  });

test("notifications and events of a later version are passed over", async (context) => {
  const { link, connected, oddities } = open(context);
  const peer = await connected();
  peer.notify("news", {});
  peer.notify("conversation_event", { event: { type: "hologram" } });
  const reply = link.call("conversation_show", { conversationId: "c1" });
  peer.reply((await peer.request()).id, { conversation: snapshot() });
  await reply;
  assert.is(oddities.length, 2);
});

test("[3] a frame of just under 1 MiB is read", async (context) => {
  const { link, connected } = open(context);
  const peer = await connected();
  const reply = link.call("conversation_list", {});
  const { id } = await peer.request();
  const empty = JSON.stringify({ jsonrpc: "2.0", id, result: { conversations: [] } }).length;
  const each = JSON.stringify(snapshot()).length + 1;
  const conversations = Array.from({ length: Math.floor((1_048_576 - empty) / each) }, () => snapshot());
  peer.reply(id, { conversations });
  assert.is((await reply).conversations.length, conversations.length);
});

test("[3] a request over 65 536 bytes is not sent", async (context) => {
  const { link, connected } = open(context);
  await connected();
  const call = link.call("conversation_send", { conversationId: "c1", message: "\u{10ffff}".repeat(20_000) });
  const error = await call.catch((caught: unknown) => caught);
  assert.ok(error instanceof FaultError && error.code === "frame_too_large");
});

// ---- answers

const CHOICE = { kind: "choice", optionId: OPTION } as const;

test("[8.10] an answer whose reply was lost is uncertain, is read back and never sent again", async (context) => {
  const world = open(context);
  const peer = await world.connected();
  const answering = world.link.answer(TARGET, CHOICE);
  const request = await peer.request();
  assert.equal(request.params, { schemaVersion: 1, ...TARGET, answer: CHOICE });
  peer.cut();
  const outcome = await answering;
  if (outcome.kind !== "uncertain") throw new Error(`it is ${outcome.kind}`);
  const receipt = outcome.receipt();
  receipt.catch(() => {}); // looked at below
  const again = await reconnected(world);
  const read = await again.request();
  assert.equal(
    [read.method, read.params],
    ["input_get", { schemaVersion: 1, conversationId: "c1", requestId: REQUEST }],
  );
  // lost while it is read: reading is repeated, answering is not
  again.cut();
  const third = await reconnected(world);
  const reread = await third.request();
  assert.is(reread.method, "input_get");
  third.reply(reread.id, { status: "resolved", conversationId: "c1", question: submitted() });
  const result = await receipt;
  assert.is(recoveredAnswer(result, CHOICE), "stored");
  assert.equal(third.unread, []);
});

test("[8.10] an answer without a connection was not sent, and says so", async (context) => {
  const world = open(context);
  (await world.connected()).cut();
  await world.state();
  assert.is((await world.link.answer(TARGET, CHOICE)).kind, "not_sent");
});

test("[8.10] an internal error leaves an answer uncertain; every other fault settles it", async (context) => {
  const { link, connected } = open(context);
  const peer = await connected();
  const one = link.answer(TARGET, CHOICE);
  peer.fault((await peer.request()).id, "internal_error", -32603);
  assert.is((await one).kind, "uncertain");
  const two = link.answer(TARGET, CHOICE);
  peer.fault((await peer.request()).id, "storage_unavailable", -32006);
  assert.is((await two).kind, "fault");
  const three = link.answer(TARGET, CHOICE);
  peer.reply((await peer.request()).id, { status: "resolved" });
  assert.is((await three).kind, "uncertain");
  const four = link.cancelQuestion(TARGET);
  const request = await peer.request();
  assert.is(request.method, "input_cancel");
  peer.reply(request.id, { status: "revision_conflict", conversationId: "c1", revision: 9 });
  assert.is((await four).kind, "settled");
});

test("[8.10] a receipt of another answer, a pending and a forgotten question are told apart", () => {
  const result = { status: "ready", conversationId: "c1" } as const;
  const other = submitted({ answer: { kind: "text", text: "x" } });
  assert.is(recoveredAnswer({ ...result, question: other }, CHOICE), "otherwise");
  assert.is(recoveredAnswer({ ...result, question: other }, { kind: "text", text: " x\n" }), "stored");
  assert.is(recoveredAnswer({ ...result, question: question() }, CHOICE), "pending");
  assert.is(recoveredAnswer({ ...result, status: "refused", reason: "unknown_request" }, CHOICE), "unknown");
});

// ---- mirrors

function watch(link: Link, options = {}) {
  const updates = new Queue<ConversationUpdate>();
  const watching = link.watchConversation("c1", options, (update) => updates.put(update));
  return { updates, watching, next: () => updates.take() };
}

async function subscribed(
  peer: PeerConnection,
  version: number,
  over = {},
): Promise<Readonly<Record<string, unknown>>> {
  const request = await peer.request();
  assert.is(request.method, "conversation_subscribe");
  peer.reply(request.id, { snapshot: snapshot(over), version });
  return request.params;
}

const delta = (fromVersion: number, toVersion: number, patch: object) => ({
  conversationId: "c1",
  fromVersion,
  toVersion,
  patch,
});

test("[5] deltas bring the copy up to date, and an absent member is null", async (context) => {
  const { link, connected } = open(context);
  const peer = await connected();
  const { next, watching } = watch(link);
  await subscribed(peer, 7, { question: question() });
  // in the same breath as the reply
  peer.notify("conversation_delta", delta(7, 8, { revision: 4, question: null, receipts: { [REQUEST]: submitted() } }));
  await next();
  const update = await next();
  assert.equal(update, {
    kind: "snapshot",
    version: 8,
    snapshot: snapshot({ revision: 4, receipts: { [REQUEST]: submitted() } }),
  });
  assert.is(watching.snapshot?.question, null);
  watching.close();
  assert.is((await peer.request()).method, "conversation_unsubscribe");
});

for (const [name, notice] of [
  ["a gap", delta(8, 9, {})],
  ["a duplicate delta", delta(6, 7, {})],
  ["a delta that makes no snapshot", delta(7, 8, { revision: -1 })],
  ["a delta that is nested too deep", delta(7, 8, { title: "DEEP" })],
] as const)
  test(`[5] ${name} throws the copy away and subscribes again`, async (context) => {
    const { link, connected } = open(context);
    const peer = await connected();
    const { next } = watch(link);
    await subscribed(peer, 7);
    assert.is((await next()).kind, "snapshot");
    const deep = `${'{"a":'.repeat(50_000)}1${"}".repeat(50_000)}`;
    const frame = JSON.stringify({ jsonrpc: "2.0", method: "conversation_delta", params: notice });
    peer.raw(frame.replace('"DEEP"', deep));
    assert.is((await next()).kind, "stale");
    // still from the old subscription
    peer.notify("conversation_delta", delta(9, 10, { title: "old" }));
    await subscribed(peer, 11, { revision: 8 });
    const update = await next();
    assert.ok(update.kind === "snapshot" && update.version === 11 && update.snapshot.revision === 8);
  });

test("[5] a delta that overtakes the reply it follows is applied after it", async (context) => {
  const { link, connected } = open(context);
  const peer = await connected();
  const { next } = watch(link);
  const { id } = await peer.request();
  peer.notify("conversation_delta", delta(5, 7, { title: "in the snapshot already" }));
  peer.notify("conversation_delta", delta(7, 8, { revision: 4 }));
  peer.notify("conversation_delta", delta(8, 9, { revision: 5 }));
  peer.reply(id, { snapshot: snapshot(), version: 7 });
  const seen = [await next(), await next(), await next()];
  assert.equal(
    seen.map((update) => update.kind === "snapshot" && [update.version, update.snapshot.revision]),
    [
      [7, 3],
      [8, 4],
      [9, 5],
    ],
  );
});

test("[2] a token that is no longer good ends the live view and closes the link for good", async (context) => {
  const { connected, state } = open(context);
  (await connected()).notify("credential_ended", { standing: "revoked" });
  assert.equal(await state(), { kind: "closed", reason: "unauthenticated" });
});

test("[5] a service whose deltas never fit is asked at growing intervals", async (context) => {
  const { link, connected, clock } = open(context);
  const peer = await connected();
  const { next } = watch(link);
  await subscribed(peer, 7);
  await next();
  peer.notify("conversation_delta", delta(1, 2, {}));
  await next();
  await subscribed(peer, 7);
  await next();
  peer.notify("conversation_delta", delta(1, 2, {}));
  await next();
  assert.equal(peer.unread, []);
  clock.advance(500);
  await subscribed(peer, 7);
});

test("nothing from before a reconnect is kept, and events go on after the last one seen", async (context) => {
  const world = open(context);
  const peer = await world.connected();
  const { next, watching } = watch(world.link, { events: true, after: "c0001" });
  assert.equal(await subscribed(peer, 7), { schemaVersion: 1, conversationId: "c1", events: true, after: "c0001" });
  await next();
  const event = (cursor: string) => ({
    event: {
      schemaVersion: 1,
      conversationId: "c1",
      cursor,
      revision: 3,
      occurredAt: "2026-01-02T03:04:05.000Z",
      type: "message",
      role: "agent",
      text: cursor,
      streaming: false,
    },
  });
  peer.notify("conversation_event", event("c0002"));
  peer.notify("conversation_event", event("c0002"));
  peer.notify("conversation_event", event("c0004"));
  const seen = [await next(), await next()].map((update) => update.kind === "event" && update.event.cursor);
  assert.equal(seen, ["c0002", "c0004"]);
  peer.cut();
  assert.is((await next()).kind, "stale");
  assert.is(watching.snapshot, undefined);
  const again = await reconnected(world);
  assert.is((await subscribed(again, 9))["after"], "c0004");
  again.notify("conversation_gap", { conversationId: "c1", retainedFrom: "c0010" });
  assert.is((await next()).kind, "snapshot");
  assert.equal(await next(), { kind: "gap", retainedFrom: "c0010" });
});

test("a lifecycle event that the snapshot does not reflect in time makes the link read the question", async (context) => {
  const { link, connected, clock } = open(context);
  const peer = await connected();
  const { next } = watch(link, { events: true });
  await subscribed(peer, 7, { safeCursor: "c0003" });
  await next();
  const resolved = (cursor: string) => ({
    event: {
      schemaVersion: 1,
      conversationId: "c1",
      cursor,
      revision: 4,
      occurredAt: "2026-01-02T03:04:05.000Z",
      type: "input_resolved",
      requestId: REQUEST,
      outcome: "submitted",
    },
  });
  peer.notify("conversation_event", resolved("c0004"));
  peer.notify("conversation_delta", delta(7, 8, { safeCursor: "c0004" }));
  await next();
  await next();
  clock.advance(250);
  assert.equal(peer.unread, []);
  peer.notify("conversation_event", resolved("c0006"));
  await next();
  clock.advance(250);
  const read = await peer.request();
  assert.equal([read.method, read.params["requestId"]], ["input_get", REQUEST]);
  peer.reply(read.id, { status: "resolved", conversationId: "c1", question: submitted() });
  assert.is((await next()).kind, "question");
});

test("a conversation that is not shown fails the watch; a fault that passes does not", async (context) => {
  const { link, connected, clock } = open(context);
  const peer = await connected();
  const { next } = watch(link);
  peer.fault((await peer.request()).id, "storage_unavailable", -32006);
  const reply = link.call("service_status", {}).catch(() => {});
  peer.fault((await peer.request()).id, "forbidden", -32001);
  await reply;
  clock.advance(1_000);
  peer.fault((await peer.request()).id, "unknown_conversation", -32002);
  assert.is((await next()).kind, "failed");
});

test("[5] the inbox is mirrored likewise", async (context) => {
  const world = open(context);
  const peer = await world.connected();
  const updates = new Queue<InboxUpdate>();
  world.link.watchInbox((update) => updates.put(update));
  const request = await peer.request();
  assert.is(request.method, "inbox_subscribe");
  peer.reply(request.id, { inbox: {}, version: 0 });
  const entry = { conversationId: "c1", title: "place", question: question() };
  peer.notify("inbox_delta", { fromVersion: 0, toVersion: 1, patch: { [REQUEST]: entry } });
  peer.notify("inbox_delta", { fromVersion: 1, toVersion: 2, patch: { [REQUEST]: null } });
  assert.equal(await updates.take(), { kind: "inbox", inbox: {}, version: 0 });
  assert.equal(await updates.take(), { kind: "inbox", inbox: { [REQUEST]: entry }, version: 1 });
  assert.equal(await updates.take(), { kind: "inbox", inbox: {}, version: 2 });
  peer.cut();
  assert.equal(await updates.take(), { kind: "stale" });
  const again = await reconnected(world);
  assert.is((await again.request()).method, "inbox_subscribe");
  assert.is(INCARNATION.length, 36);
});

test.run();
