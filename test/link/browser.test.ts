import { suite } from "uvu";
import * as assert from "uvu/assert";
import { WebSocket } from "ws";
import { browserConnector } from "../../clients/link/browser.js";
import { LinkLost } from "../../clients/link/errors.js";
import { type Link, type LinkState, openLink } from "../../clients/link.js";
import { ManualClock } from "./manual-clock.js";
import { Peer } from "./peer.js";
import { Queue } from "./queue.js";

const test = suite<{ peer: Peer }>("link in a browser", { peer: undefined as never });
test.before.each(async (context) => {
  context.peer = await Peer.start();
});
test.after.each(({ peer }) => peer.stop());

/** `ws` has the shape of a browser's WebSocket; a browser's throws no errors at those who do not listen. */
class Socket extends WebSocket {
  constructor(url: string, protocol: string) {
    super(url, protocol);
    this.on("error", () => {});
  }
}

function open(peer: Peer, token?: string): { link: Link; states: Queue<LinkState>; clock: ManualClock } {
  const clock = new ManualClock();
  const states = new Queue<LinkState>();
  const connector = browserConnector(Socket as unknown as Parameters<typeof browserConnector>[0]);
  const options = { url: peer.url, connector, clock, random: () => 0.5 };
  const link = openLink(token === undefined ? options : { ...options, token });
  link.onState((state) => states.put(state));
  return { link, states, clock };
}

const DEVICE = { kind: "device", id: "d1", mode: "active" } as const;

test("[5] the first request is authenticate, and only then the link is connected", async ({ peer }) => {
  const { link, states, clock } = open(peer, "secret");
  const connection = await peer.connection();
  assert.is(connection.headers.authorization, undefined);
  const first = await connection.request();
  assert.equal([first.method, first.params], ["authenticate", { schemaVersion: 1, token: "secret" }]);
  assert.is(link.state.kind, "connecting");
  connection.reply(first.id, { principal: DEVICE });
  assert.equal(await states.take(), { kind: "connected", principal: DEVICE });
  // pings cannot be seen: silence is answered by a question, and any reply is a sign of life
  clock.advance(45_000);
  const probe = await connection.request();
  assert.is(probe.method, "project_list");
  connection.reply(probe.id, { projects: [], projectsRevision: 0 });
  const reply = link.call("run_cancel", { runId: "r" });
  connection.reply((await connection.request()).id, {});
  await reply;
  clock.advance(45_000);
  assert.is((await connection.request()).method, "project_list");
  clock.advance(30_000);
  assert.is((await states.take()).kind, "reconnecting");
  link.close();
});

test("a refused token closes the link for good", async ({ peer }) => {
  const { link, states } = open(peer, "secret");
  const connection = await peer.connection();
  connection.fault((await connection.request()).id, "unauthenticated", -32000);
  assert.equal(await states.take(), { kind: "closed", reason: "unauthenticated" });
  const error = await link.call("service_status", {}).catch((caught: unknown) => caught);
  assert.ok(error instanceof LinkLost && !error.sent);
});

test("a device pairs on a link without a token, and a wrong code does not close it", async ({ peer }) => {
  const { link, states } = open(peer);
  const connection = await peer.connection();
  assert.equal(await states.take(), { kind: "connected" });
  const wrong = link.call("device_pair_complete", { code: "0", name: "phone" }).catch((error: unknown) => error);
  connection.fault((await connection.request()).id, "unauthenticated", -32000);
  await wrong;
  assert.is(link.state.kind, "connected");
  const right = link.call("device_pair_complete", { code: "1", name: "phone" });
  connection.reply((await connection.request()).id, { deviceId: "d1", token: "t", mode: "active" });
  assert.is((await right).deviceId, "d1");
  link.close();
});

test("the network is back: a pause ends at once", async ({ peer }) => {
  peer.refuse = 503;
  const { link, states } = open(peer);
  assert.is((await states.take()).kind, "reconnecting");
  peer.refuse = undefined;
  link.nudge();
  assert.is((await states.take()).kind, "connected");
  link.close();
});

test.run();
