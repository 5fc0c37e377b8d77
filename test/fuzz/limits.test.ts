import { Socket } from "node:net";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { nameOf, RateLimits, type Rates } from "../../server/limits.js";
import type { Presented } from "../../server/principals/registry.js";
import { connectionLimits, Strangers } from "../../server/strangers.js";

const test = suite("limits");

const rates: Rates = {
  operator: { perSecond: 10, burst: 20 },
  others: { perSecond: 2, burst: 4 },
  answering: { perSecond: 5, burst: 10 },
  strangers: { perSecond: 1, burst: 2 },
};
const who = (kind: "operator" | "device" | "agent", id = "one"): Presented => ({
  kind: "stored",
  stamp: { kind, id, generation: 1 },
});

function takeAll(limits: RateLimits, presented: Presented | null, method: "conversation_list" | "input_answer") {
  let taken = 0;
  while (taken < 1_000 && limits.take(presented, "::1", method) === 0) taken += 1;
  return taken;
}

test("a flood empties the sender's own bucket and nobody else's, and never the one of answers", () => {
  const limits = new RateLimits({ now: () => 0 }, rates);
  assert.is(takeAll(limits, who("device"), "conversation_list"), 4);
  assert.is(takeAll(limits, who("device"), "input_answer"), 10);
  assert.is(takeAll(limits, who("device", "two"), "conversation_list"), 4);
  assert.is(takeAll(limits, who("operator"), "conversation_list"), 20);
  assert.is(takeAll(limits, null, "conversation_list"), 2);
  assert.is(takeAll(limits, { kind: "run", runId: "r", conversationId: "c" }, "conversation_list"), 4);
});

test("a rotated token is the same principal, and retryAfterMs is when the next one is let in", () => {
  let now = 0;
  const limits = new RateLimits({ now: () => now }, rates);
  takeAll(limits, who("device"), "conversation_list");
  const rotated: Presented = { kind: "stored", stamp: { kind: "device", id: "one", generation: 2 } };
  assert.is(nameOf(rotated), nameOf(who("device")));
  const retryAfterMs = limits.take(rotated, "", "conversation_list");
  assert.is(retryAfterMs, 500);
  now += retryAfterMs;
  assert.is(limits.take(rotated, "", "conversation_list"), 0);
  now -= 1_000_000;
  assert.ok(limits.take(rotated, "", "conversation_list") > 0, "a clock that was set back gave something");
});

test("buckets of those who have gone are forgotten", () => {
  let now = 0;
  const limits = new RateLimits({ now: () => now }, rates);
  for (let count = 0; count < 20_000; count += 1) {
    now += 1_000;
    limits.take(who("agent", `${count}`), "", "conversation_list");
  }
  assert.ok(limits.size <= 1_024, `${limits.size} are kept`);
});

test("of strangers the oldest goes; who authenticated in time is none", () => {
  let turnedAway = 0;
  const strangers = new Strangers(3, () => {
    turnedAway += 1;
  });
  const sockets = Array.from({ length: 5 }, () => new Socket());
  const [first, second] = sockets;
  strangers.came(first!);
  strangers.isKnown(first!);
  for (const socket of sockets.slice(1)) strangers.came(socket);
  assert.equal(
    sockets.map(({ destroyed }) => destroyed),
    [false, true, false, false, false],
  );
  assert.is(turnedAway, 1);
  assert.is(strangers.count, 3);
  assert.ok(second?.destroyed);
});

test("there are always files left for the store, and room for owners beside strangers", () => {
  for (const openFiles of [400, 1_024, 20_000, Number.POSITIVE_INFINITY]) {
    const { connections, strangers, ofOnePrincipal } = connectionLimits(openFiles);
    assert.ok(connections < openFiles && connections <= 16_384);
    assert.ok(strangers <= connections / 2 && ofOnePrincipal <= connections / 4);
  }
});

test.run();
