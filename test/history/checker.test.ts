import { suite } from "uvu";
import * as assert from "uvu/assert";
import { check } from "./checker.js";
import type { HistoryRecord, ViolationKind } from "./records.js";

const test = suite("the history checker");

type Json = Readonly<Record<string, unknown>>;

/** Writes a history down by hand. */
class Pen {
  readonly records: HistoryRecord[] = [{ type: "start" }];
  #op = 0;

  begin(method: string, params: Json = {}, client = "a"): number {
    this.#op += 1;
    this.records.push({ type: "invoke", client, op: this.#op, method, params });
    return this.#op;
  }

  end(op: number, result: unknown): void {
    this.records.push({ type: "return", op, result });
  }

  fail(op: number, code: string): void {
    this.records.push({ type: "error", op, code });
  }

  call(method: string, params: Json, result: unknown, client = "a"): void {
    this.end(this.begin(method, params, client), result);
  }

  told(method: string, params: Json, client = "a"): void {
    this.records.push({ type: "notify", client, method, params });
  }

  add(...records: readonly HistoryRecord[]): void {
    this.records.push(...records);
  }
}

const C = "conversation";
const pending = { requestId: "q", conversationId: C, status: "pending" };
const submitted = (text: string, runId = "run", more: Json = {}) => ({
  requestId: "q",
  conversationId: C,
  status: "submitted",
  resolvedAt: "2026-01-01T00:00:01.000Z",
  answer: { kind: "text", text },
  continuation: { runId, state: "accepted", ...more },
});
const cancelled = {
  requestId: "q",
  conversationId: C,
  status: "cancelled",
  resolvedAt: "2026-01-01T00:00:01.000Z",
  reason: "cancelled_by_owner",
};
const reply = (status: string, question: Json | undefined, more: Json = {}) => ({
  status,
  conversationId: C,
  incarnationId: "i",
  revision: 1,
  safeCursor: "1",
  ...(question && { question }),
  ...more,
});
const snapshot = (more: Json = {}) => ({
  conversationId: C,
  incarnationId: "i",
  revision: 1,
  safeCursor: "1",
  question: null,
  receipts: {},
  activeRun: null,
  ...more,
});
const event = (cursor: string, more: Json = {}) => ({
  conversationId: C,
  cursor,
  revision: 1,
  type: "activity",
  phase: "waiting",
  ...more,
});
const answer = (text: string) => ({ conversationId: C, requestId: "q", answer: { kind: "text", text } });
const page = (cursors: readonly string[], more: Json = {}) => ({
  events: cursors.map((cursor) => event(cursor)),
  retainedFrom: "1",
  gap: false,
  ...more,
});

const asked = (): Pen => {
  const pen = new Pen();
  pen.call("request_user_input", { conversationId: C }, reply("ready", pending));
  return pen;
};

const answered = (): Pen => {
  const pen = asked();
  pen.call("input_answer", answer("yes"), reply("resolved", submitted("yes")));
  return pen;
};

const kindsIn = (pen: Pen): readonly ViolationKind[] => [...new Set(check(pen.records).map(({ kind }) => kind))];
const isGood = (pen: Pen): void => assert.equal(check(pen.records), []);
const shows = (pen: Pen, ...kinds: readonly ViolationKind[]): void => {
  for (const kind of kinds) assert.ok(kindsIn(pen).includes(kind), `${kind} is not in ${kindsIn(pen).join()}`);
};

test("finds nothing in a history in which everything is as it should be", () => {
  const pen = answered();
  pen.call("input_answer", answer(" yes "), reply("resolved", submitted("yes")), "b");
  pen.call("input_answer", answer("no"), reply("refused", submitted("yes"), { reason: "answer_conflict" }), "b");
  pen.call("input_get", { conversationId: C, requestId: "q" }, reply("resolved", submitted("yes")));
  pen.add({ type: "run", conversationId: C, runId: "run", requestId: "q" });
  isGood(pen);
});

test("leaves open what nobody got a reply to: it may have happened, and it may not", () => {
  for (const seen of [pending, submitted("yes")]) {
    const pen = asked();
    pen.begin("input_answer", answer("yes"), "b");
    pen.call("input_get", { conversationId: C }, reply(seen.status === "pending" ? "ready" : "resolved", seen));
    isGood(pen);
  }
});

test("takes no answer for open that came too late: a request of an earlier life cannot happen after the start", () => {
  const pen = asked();
  pen.begin("input_answer", answer("yes"), "b");
  pen.add({ type: "start" });
  pen.call(
    "input_get",
    { conversationId: C, requestId: "q" },
    reply("resolved", { ...cancelled, reason: "service_restarted" }),
  );
  pen.call("input_get", { conversationId: C, requestId: "q" }, reply("resolved", submitted("yes")));
  shows(pen, "not_linearizable");
});

test("sees two answers that were accepted for one request", () => {
  const pen = answered();
  pen.call("input_answer", answer("no"), reply("resolved", submitted("no", "run-2")), "b");
  shows(pen, "not_linearizable");
});

test("sees two answers that were accepted for one request at the same time", () => {
  const pen = asked();
  const one = pen.begin("input_answer", answer("yes"), "b");
  const other = pen.begin("input_answer", answer("no"), "c");
  pen.end(one, reply("resolved", submitted("yes")));
  pen.end(other, reply("resolved", submitted("no", "run-2")));
  shows(pen, "not_linearizable");
});

test("sees a duplicate that got another receipt", () => {
  for (const other of [submitted("yes", "run-2"), { ...submitted("yes"), resolvedAt: "2026-01-01T00:00:09.000Z" }]) {
    const pen = answered();
    pen.call("input_answer", answer("yes"), reply("resolved", other));
    shows(pen, "not_linearizable");
  }
});

test("sees an answer that was stored in other words than it was given", () => {
  const pen = asked();
  pen.call("input_answer", answer("yes"), reply("resolved", submitted("no")));
  shows(pen, "not_linearizable");
});

test("sees an answer that was accepted after the cancellation, and a conflict with nothing", () => {
  const pen = asked();
  pen.call("input_cancel", { conversationId: C, requestId: "q" }, reply("resolved", cancelled));
  pen.call("input_answer", answer("yes"), reply("resolved", submitted("yes")));
  shows(pen, "not_linearizable");
  const other = asked();
  other.call("input_answer", answer("yes"), reply("refused", submitted("no"), { reason: "answer_conflict" }));
  other.call("input_get", { conversationId: C }, reply("ready", pending));
  shows(other, "not_linearizable");
});

test("sees a question pending again after its answer", () => {
  const pen = answered();
  pen.call("input_get", { conversationId: C }, reply("ready", pending));
  shows(pen, "not_linearizable");
});

test("sees a receipt that is gone after a restart", () => {
  const pen = answered();
  pen.add({ type: "start" });
  pen.call(
    "input_get",
    { conversationId: C, requestId: "q" },
    reply("refused", undefined, { reason: "unknown_request" }),
  );
  shows(pen, "acknowledged_lost");
  const other = answered();
  other.add({ type: "start" });
  other.call("conversation_show", { conversationId: C }, { conversation: snapshot() });
  shows(other, "acknowledged_lost");
});

test("sees an answer that a restart has taken back", () => {
  const pen = answered();
  pen.add({ type: "start" });
  pen.call(
    "input_get",
    { conversationId: C, requestId: "q" },
    reply("resolved", { ...cancelled, reason: "service_restarted" }),
  );
  shows(pen, "not_linearizable");
});

test("sees a question that is pending after a restart", () => {
  const pen = asked();
  pen.add({ type: "start" });
  pen.call("input_get", { conversationId: C }, reply("ready", pending));
  shows(pen, "pending_after_start");
});

test("accepts an eviction only where there are receipts enough to evict for", () => {
  const pen = answered();
  for (let index = 0; index < 33; index += 1) {
    const question = { ...pending, requestId: `q${index}` };
    pen.call("request_user_input", { conversationId: C }, reply("ready", question));
    pen.call(
      "input_cancel",
      { conversationId: C, requestId: question.requestId },
      reply("resolved", {
        ...cancelled,
        requestId: question.requestId,
        resolvedAt: `2026-01-01T00:01:${10 + index}.000Z`,
      }),
    );
  }
  pen.call("input_answer", answer("yes"), reply("refused", undefined, { reason: "unknown_request" }));
  isGood(pen);
  pen.call("input_answer", answer("yes"), reply("resolved", submitted("yes")));
  shows(pen, "not_linearizable");
});

test("sees an acknowledged message, conversation, device or revocation that is gone", () => {
  const pen = new Pen();
  pen.call("conversation_send", { conversationId: C }, { status: "accepted", runId: "run", revision: 1 });
  pen.call("conversation_tail", { conversationId: C }, page(["1"]));
  shows(pen, "acknowledged_lost");
  const made = new Pen();
  made.call("conversation_create", {}, { conversation: snapshot() });
  made.fail(made.begin("conversation_show", { conversationId: C }), "unknown_conversation");
  shows(made, "acknowledged_lost");
  const revoked = new Pen();
  revoked.call("device_revoke", { deviceId: "d" }, { device: {} });
  revoked.call("device_list", {}, { devices: [{ deviceId: "d" }] });
  shows(revoked, "acknowledged_lost");
  const paired = new Pen();
  paired.call("device_pair_complete", {}, { deviceId: "d" });
  paired.call("device_list", {}, { devices: [] });
  shows(paired, "acknowledged_lost");
});

test("sees a revision, a cursor and a version that fell, but not one that was overtaken", () => {
  const low = reply("ready", undefined);
  const high = reply("ready", undefined, { revision: 2, safeCursor: "2" });
  const pen = new Pen();
  pen.call("input_get", { conversationId: C }, high);
  pen.call("input_get", { conversationId: C }, low);
  shows(pen, "revision_fell", "version_fell");
  const overtaken = new Pen();
  const slow = overtaken.begin("input_get", { conversationId: C });
  overtaken.call("input_get", { conversationId: C }, high, "b");
  overtaken.end(slow, low);
  isGood(overtaken);
  const version = new Pen();
  version.call("conversation_subscribe", { conversationId: C }, { snapshot: snapshot(), version: 4 });
  version.call("conversation_subscribe", { conversationId: C }, { snapshot: snapshot(), version: 3 }, "b");
  shows(version, "version_fell");
});

test("sees an incarnation that came back", () => {
  const pen = new Pen();
  for (const incarnationId of ["i", "j", "i"]) {
    pen.call("input_get", { conversationId: C }, reply("ready", undefined, { incarnationId }));
  }
  shows(pen, "revision_fell");
});

test("sees a continuation whose end changed or was taken back", () => {
  const failed = { state: "failed", reasonCode: "acceptance_interrupted" };
  for (const then of [{}, { state: "completed" }]) {
    const pen = answered();
    for (const more of [failed, then]) {
      pen.call("input_get", { conversationId: C, requestId: "q" }, reply("resolved", submitted("yes", "run", more)));
    }
    shows(pen, "continuation_changed");
  }
});

const followed = (more: Json = {}): Pen => {
  const pen = new Pen();
  pen.call("conversation_subscribe", { conversationId: C, ...more }, { snapshot: snapshot(), version: 1 });
  return pen;
};
const delta = (fromVersion: number, toVersion: number, patch: Json) => ({
  conversationId: C,
  fromVersion,
  toVersion,
  patch,
});

test("follows deltas, and sees one that is left out, one that comes twice and one that nobody asked for", () => {
  const good = followed();
  good.told("conversation_delta", delta(1, 3, { queuedRuns: 1 }));
  good.add({ type: "settled" });
  isGood(good);
  for (const [from, to] of [
    [2, 3],
    [1, 1],
  ] as const) {
    const pen = followed();
    pen.told("conversation_delta", delta(from, to, {}));
    shows(pen, "delta_chain_broken");
  }
  const stranger = new Pen();
  stranger.told("conversation_delta", delta(1, 2, {}));
  shows(stranger, "unexpected_notification");
  const over = followed();
  over.add({ type: "closed", client: "a" });
  over.told("conversation_delta", delta(1, 2, {}));
  shows(over, "unexpected_notification");
});

test("sees a chain of deltas that does not rebuild the true snapshot", () => {
  const pen = followed();
  pen.told("conversation_delta", delta(1, 2, { revision: 2 }));
  pen.call("conversation_subscribe", { conversationId: C }, { snapshot: snapshot({ revision: 3 }), version: 2 }, "b");
  shows(pen, "snapshot_differs");
});

test("sees a subscriber that was never told the last state", () => {
  const pen = followed();
  pen.call("conversation_subscribe", { conversationId: C }, { snapshot: snapshot(), version: 2 }, "b");
  pen.add({ type: "settled" });
  shows(pen, "last_state_lost");
  const inbox = new Pen();
  inbox.call("inbox_subscribe", {}, { inbox: {}, version: 1 });
  inbox.call("inbox_subscribe", {}, { inbox: {}, version: 2 }, "b");
  inbox.add({ type: "settled" });
  shows(inbox, "last_state_lost");
});

test("sees an inbox whose deltas do not fit", () => {
  const pen = new Pen();
  pen.call("inbox_subscribe", {}, { inbox: {}, version: 1 });
  pen.told("inbox_delta", { fromVersion: 2, toVersion: 3, patch: {} });
  shows(pen, "delta_chain_broken");
});

test("sees events that come twice, out of order, with two meanings, or not at all", () => {
  const told = (...cursors: readonly string[]): Pen => {
    const pen = followed({ events: true });
    pen.call("conversation_tail", { conversationId: C }, page(["1", "2", "3"]), "b");
    for (const cursor of cursors) pen.told("conversation_event", { event: event(cursor) });
    return pen;
  };
  isGood(told("2", "3"));
  shows(told("2", "2"), "event_order");
  shows(told("2", "3", "2"), "event_order");
  shows(told("3"), "event_gap");
  const meaning = told("2");
  meaning.told("conversation_event", { event: event("3", { phase: "thinking" }) });
  shows(meaning, "event_order");
  const unfinished = told("2");
  unfinished.add({ type: "settled" });
  shows(unfinished, "last_state_lost");
});

test("accepts a gap that was announced, and no other", () => {
  const pen = followed({ events: true });
  pen.call("conversation_tail", { conversationId: C }, page(["1", "2", "3", "4"]), "b");
  pen.told("conversation_gap", { conversationId: C, retainedFrom: "3" });
  pen.told("conversation_event", { event: event("3") });
  isGood(pen);
  const wide = followed({ events: true });
  wide.call("conversation_tail", { conversationId: C }, page(["1", "2", "3", "4"]), "b");
  wide.told("conversation_gap", { conversationId: C, retainedFrom: "3" });
  wide.told("conversation_event", { event: event("4") });
  shows(wide, "event_gap");
});

test("sees a page that leaves events out, turns them around or has lost them", () => {
  const tail = (result: Json, ...before: readonly string[]): Pen => {
    const pen = new Pen();
    pen.call("conversation_tail", { conversationId: C }, page(before), "b");
    pen.call("conversation_tail", { conversationId: C }, result);
    return pen;
  };
  isGood(tail(page(["1", "2", "3"]), "1", "2", "3"));
  isGood(tail(page(["2", "3"], { gap: true, retainedFrom: "2" }), "1", "2", "3"));
  shows(tail(page(["1", "3"]), "1", "2", "3"), "event_gap");
  shows(tail(page(["2", "1"])), "event_order");
  shows(tail(page(["1"]), "1", "2"), "acknowledged_lost");
});

test("sees a run that was started twice, also where one of the starts was a claim", () => {
  const run = { type: "run", conversationId: C, runId: "run", requestId: "q" } as const;
  const pen = answered();
  pen.add(run, run);
  shows(pen, "run_started_twice");
  const claimed = answered();
  claimed.call("run_claim", { runId: "run" }, { runId: "run", message: "go on" });
  claimed.add(run);
  shows(claimed, "run_started_twice");
});

test("sees a run of an earlier life that was started again", () => {
  const pen = answered();
  pen.add({ type: "start" }, { type: "run", conversationId: C, runId: "run", requestId: "q" });
  shows(pen, "run_replayed");
});

test("sees a run that was started after its end", () => {
  const pen = new Pen();
  pen.call("conversation_send", { conversationId: C }, { status: "accepted", runId: "run", revision: 1 });
  pen.call("run_cancel", { runId: "run" }, {});
  pen.add({ type: "run", conversationId: C, runId: "run" });
  shows(pen, "run_started_after_end");
});

test("sees a run that was started for a cancelled or an unknown request, or for nothing", () => {
  const run = { type: "run", conversationId: C, runId: "run", requestId: "q" } as const;
  const pen = asked();
  pen.call("input_cancel", { conversationId: C, requestId: "q" }, reply("resolved", cancelled));
  pen.add(run);
  shows(pen, "run_unfounded");
  const unknown = new Pen();
  unknown.add(run);
  shows(unknown, "run_unfounded");
  const other = answered();
  other.add({ ...run, runId: "run-2" });
  shows(other, "run_unfounded");
});

test("says of a malformed history that it is malformed", () => {
  const pen = new Pen();
  pen.end(7, {});
  shows(pen, "malformed");
  const twice = asked();
  twice.end(1, {});
  shows(twice, "malformed");
});

test.run();
