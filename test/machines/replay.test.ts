import fc from "fast-check";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { BEGINNINGS } from "../../machines/chart/moves.js";
import { certainIn, type Piece, type Possible, replay } from "../../machines/chart/replay.js";
import { type ConversationState, decide } from "../../machines/decide.js";
import type { ConversationEvent } from "../../protocol/events.js";
import {
  after,
  answer,
  ask,
  begin,
  cancel,
  conversation,
  eventsIn,
  type Move,
  nativeClaim,
  nativeRelease,
  reportOf,
  reset,
  restarted,
  send,
  settle,
} from "./given.js";

const test = suite("a history replayed");

/** Each event that a way through the machine stores, with the state that its commit led to. */
function storedOn(state: ConversationState, moves: readonly Move[]) {
  const stored: {
    readonly event: ConversationEvent;
    readonly value: ConversationState["value"];
    readonly isLast: boolean;
  }[] = [];
  let current = state;
  for (const move of moves) {
    const decision = decide(current, move(current));
    current = decision.next;
    const events = eventsIn(decision);
    const { value } = decision.next;
    stored.push(...events.map((event, index) => ({ event, value, isLast: index === events.length - 1 })));
  }
  return stored;
}

const eventsOf = (...moves: readonly Move[]) => storedOn(conversation(), moves).map(({ event }) => event);
const shown = (pieces: readonly Piece[]) => replay(pieces).map(({ possible }) => words(possible));
const words = ({ driver, question, turn }: Possible): string =>
  [driver, question, turn].map((states) => [...states].join("|")).join(" ");

const ALL = "service|native none|pending|submitted|cancelled idle|accepted|running";

test("[8] every state a history tells, from the beginning on", () => {
  const events = eventsOf(send(), begin(), reportOf(), ask(), answer(), settle());
  assert.equal(shown([{ gap: false, events }]), [
    "service none idle",
    "service none idle",
    "service none accepted|running",
    "service none running",
    "service pending running",
    "service submitted running",
    "service submitted running",
    "service submitted accepted|running",
  ]);
});

test("[8] nothing is said about what was trimmed, and what follows it tells no more than it does", () => {
  const events = eventsOf(send(), begin(), reportOf(), ask(), answer(), settle());
  assert.equal(shown([{ gap: true, events: events.slice(2, 4) }]), [
    ALL,
    "service none|pending|submitted|cancelled running",
    "service pending running",
  ]);
  assert.is(replay([{ gap: true, events }])[0]?.kind, "trimmed");
  assert.equal(shown([{ gap: true, events: [] }]), [ALL]);
});

test("[8] a gap between two pages is as unknown as one at the beginning", () => {
  const events = eventsOf(send(), begin(), ask());
  const steps = shown([
    { gap: false, events: events.slice(0, 1) },
    { gap: true, events: events.slice(2) },
  ]);
  assert.equal(steps, ["service none idle", "service none idle", ALL, "service pending idle|accepted|running"]);
});

test("[8] after a gap, a run that completed is known to be the last of those before it", () => {
  const events = eventsOf(send(), begin(), reportOf(), settle());
  assert.equal(shown([{ gap: true, events: events.slice(1) }]).at(-1), "service none|pending|submitted|cancelled idle");
});

test("[6] a revision that grew without an event leaves the driver open until an event tells it", () => {
  const events = eventsOf(send(), begin(), ask(), nativeClaim(), nativeRelease(), send());
  const steps = replay([{ gap: false, events }]);
  const taken = steps.find((step) => step.kind === "event" && step.event.type === "input_resolved");
  assert.ok(taken?.kind === "event");
  assert.is(taken.unseen, 1);
  assert.is(words(taken.possible), "service|native cancelled accepted|running");
  const stopped = steps[steps.indexOf(taken) + 1];
  assert.is(stopped && words(stopped.possible), "native cancelled idle");
  const message = steps.at(-2);
  assert.ok(message?.kind === "event");
  assert.is(message.unseen, 1);
  assert.is(words(message.possible), "service cancelled idle");
});

test("[8] the restart's cancellation and failures are told by their events", () => {
  const events = eventsOf(send(), begin(), ask(), restarted());
  assert.is(shown([{ gap: false, events }]).at(-1), "service cancelled idle");
});

test("[7] a cancelled question is certain, and the certain states are the chart's", () => {
  const events = eventsOf(send(), begin(), reportOf(), ask(), cancel(), reset());
  const steps = replay([{ gap: false, events }]);
  assert.equal([...certainIn(steps.at(-1)?.possible ?? BEGINNING)].toSorted(), ["question.cancelled", "turn.idle"]);
});

const BEGINNING: Possible = { driver: new Set(), question: new Set(), turn: new Set() };

test("[8] whatever happened and whatever was trimmed, the true state is among those shown", () => {
  const moves = BEGINNINGS[0]?.moves ?? [];
  fc.assert(
    fc.property(fc.array(fc.nat(moves.length - 1), { maxLength: 60 }), fc.nat(20), (choices, trimmed) => {
      const way = choices.map(
        (index): Move =>
          (state) =>
            moves[index]?.from(state) ?? { type: "native.release", at: "2026-01-01T00:00:00.000Z" },
      );
      const stored = storedOn(BEGINNINGS[0]?.state ?? conversation(), way);
      const kept = stored.slice(trimmed);
      const steps = replay([{ gap: trimmed > 0, events: kept.map(({ event }) => event) }]);
      kept.forEach(({ value, isLast, event }, index) => {
        const possible = steps[index + 1]?.possible;
        // between two events of one commit there is no state that was ever stored
        if (!isLast || possible === undefined) return;
        assert.ok(possible.driver.has(value.driver), `${JSON.stringify(event)}: driver ${value.driver}`);
        assert.ok(possible.question.has(value.question), `${JSON.stringify(event)}: question ${value.question}`);
        assert.ok(possible.turn.has(value.turn), `${JSON.stringify(event)}: turn ${value.turn}`);
      });
    }),
    { numRuns: 300 },
  );
});

test("[1] a run that waits and is cancelled leaves the one that is on", () => {
  const state = after(conversation(), send(), begin(), send());
  const waiting = state.context.waiting[0]?.runId ?? "";
  const events = eventsOf(send(), begin(), reportOf(), send(), () => ({
    type: "run.cancel",
    at: "2026-01-01T00:00:01.000Z",
    runId: waiting,
  }));
  assert.is(shown([{ gap: false, events }]).at(-1), "service none running");
});

test.run();
