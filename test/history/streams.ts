import {
  canonical,
  type EventSeen,
  entry,
  type Findings,
  fieldOf,
  type History,
  type Operation,
  pageOf,
  returned,
  type SnapshotSeen,
  snapshotsOf,
} from "./operations.js";

/** A merge patch applied as RFC 7396 says, and once more than in the service on purpose. */
function patched(target: unknown, patch: unknown): unknown {
  if (typeof patch !== "object" || patch === null || Array.isArray(patch)) return patch;
  const result = new Map<string, unknown>(
    typeof target === "object" && target !== null && !Array.isArray(target) ? Object.entries(target) : [],
  );
  for (const [name, value] of Object.entries(patch)) {
    if (value === null) result.delete(name);
    else result.set(name, patched(result.get(name), value));
  }
  return Object.fromEntries(result);
}

/** A client's copy that deltas keep up to date. */
interface Mirror {
  version: number;
  value: unknown;
  /** The last event that came; null where no events were asked for. */
  cursor: string | null;
  /** Events before this one were announced as missing. */
  gapBefore: string;
}

interface Stream {
  readonly conversationId: string;
  /** Nothing between `from` (left out) and `to` (left out) may exist, but what an announced gap covers. */
  readonly checks: { readonly from: string; readonly to: string; readonly at: number; readonly gapBefore: string }[];
}

/** What a snapshot or an inbox was at a version, as the first saw it who had it. */
class Versions {
  readonly #seen = new Map<string, string>();
  readonly newest = new Map<string, number>();

  constructor(readonly findings: Findings) {}

  see(of: string, version: number, value: unknown, at: number): void {
    const key = `${of} ${version}`;
    const text = canonical(value);
    const known = this.#seen.get(key);
    if (known === undefined) this.#seen.set(key, text);
    else if (known !== text) {
      this.findings.add("snapshot_differs", at, `${of} at version ${version}: ${text} but was ${known}`);
    }
    this.newest.set(of, Math.max(version, this.newest.get(of) ?? 0));
  }
}

export interface Streams {
  /** Each conversation's events by cursor, as anyone saw them, with the index of the first sight. */
  readonly events: ReadonlyMap<string, ReadonlyMap<string, { readonly event: EventSeen; readonly at: number }>>;
  /** Snapshots that deltas built, with the index of the delta. */
  readonly mirrored: readonly { readonly snapshot: SnapshotSeen; readonly version: number; readonly at: number }[];
}

/** Checks the delta chains and the event streams, and collects what they say. */
export function checkStreams(history: History, findings: Findings): Streams {
  const events = new Map<string, Map<string, { event: EventSeen; at: number }>>();
  const mirrored: { snapshot: SnapshotSeen; version: number; at: number }[] = [];
  const versions = new Versions(findings);
  const streams: Stream[] = [];
  const mirrors = new Map<string, { readonly mirror: Mirror; readonly stream: Stream }>();
  const inboxes = new Map<string, Mirror>();
  let life = 0;

  const seeEvent = (event: EventSeen, at: number): void => {
    const ofConversation = entry(events, event.conversationId, () => new Map());
    const known = ofConversation.get(event.cursor);
    if (known === undefined) ofConversation.set(event.cursor, { event, at });
    else if (canonical(known.event) !== canonical(event)) {
      findings.add(
        "event_order",
        at,
        `cursor ${event.cursor} of ${event.conversationId} names ${canonical(event)} and ${canonical(known.event)}`,
      );
    }
  };

  const subscribed = (operation: Operation, at: number): void => {
    const conversationId = String(operation.params["conversationId"]);
    const snapshot = returned(operation, "snapshot") as SnapshotSeen;
    const version = Number(returned(operation, "version"));
    versions.see(conversationId, version, snapshot, at);
    const wantsEvents = operation.params["events"] === true;
    const after = operation.params["after"];
    const stream: Stream = { conversationId, checks: [] };
    streams.push(stream);
    mirrors.set(`${operation.client} ${conversationId}`, {
      stream,
      mirror: {
        version,
        value: snapshot,
        cursor: wantsEvents ? (typeof after === "string" ? after : snapshot.safeCursor) : null,
        gapBefore: "",
      },
    });
  };

  const delta = (mirror: Mirror | undefined, of: string, params: unknown, at: number): void => {
    if (mirror === undefined) {
      findings.add("unexpected_notification", at, `a delta of ${of}, which is not subscribed`);
      return;
    }
    const from = fieldOf(params, "fromVersion");
    const to = Number(fieldOf(params, "toVersion"));
    if (from !== mirror.version || to <= mirror.version) {
      findings.add("delta_chain_broken", at, `${of}: a delta from ${from} to ${to} for one who has ${mirror.version}`);
      return;
    }
    mirror.value = patched(mirror.value, fieldOf(params, "patch"));
    mirror.version = to;
    versions.see(of, to, mirror.value, at);
  };

  history.records.forEach((record, at) => {
    switch (record.type) {
      case "start":
        life += 1;
        return;
      case "return": {
        const operation = history.byOp.get(record.op);
        if (operation === undefined || operation.endedAt !== at) return;
        for (const event of pageOf(operation)?.events ?? []) seeEvent(event, at);
        const key = `${operation.client} ${String(operation.params["conversationId"])}`;
        if (operation.method === "conversation_subscribe") subscribed(operation, at);
        if (operation.method === "conversation_unsubscribe") mirrors.delete(key);
        if (operation.method === "inbox_subscribe") {
          const version = Number(returned(operation, "version"));
          const value = returned(operation, "inbox");
          versions.see(`the inbox of life ${life}`, version, value, at);
          inboxes.set(operation.client, { version, value, cursor: null, gapBefore: "" });
        }
        if (operation.method === "inbox_unsubscribe") inboxes.delete(operation.client);
        return;
      }
      case "notify": {
        const { client, method, params } = record;
        const conversationId = String(fieldOf(params, "conversationId"));
        switch (method) {
          case "conversation_delta": {
            const mirror = mirrors.get(`${client} ${conversationId}`)?.mirror;
            delta(mirror, conversationId, params, at);
            if (mirror !== undefined) {
              mirrored.push({ snapshot: mirror.value as SnapshotSeen, version: mirror.version, at });
            }
            return;
          }
          case "inbox_delta":
            delta(inboxes.get(client), `the inbox of life ${life}`, params, at);
            return;
          case "conversation_gap": {
            const entry = mirrors.get(`${client} ${conversationId}`);
            const from = fieldOf(params, "retainedFrom");
            if (entry !== undefined && typeof from === "string") entry.mirror.gapBefore = from;
            return;
          }
          case "conversation_event": {
            const event = fieldOf(params, "event") as EventSeen;
            seeEvent(event, at);
            const entry = mirrors.get(`${client} ${event.conversationId}`);
            if (entry === undefined || entry.mirror.cursor === null) {
              findings.add("unexpected_notification", at, `an event of ${event.conversationId} for ${client}`);
              return;
            }
            const { mirror, stream } = entry;
            const from = entry.mirror.cursor;
            if (event.cursor <= from) {
              findings.add("event_order", at, `${client} got event ${event.cursor} after ${from}`);
              return;
            }
            stream.checks.push({ from, to: event.cursor, at, gapBefore: mirror.gapBefore });
            mirror.cursor = event.cursor;
            return;
          }
          case "credential_ended":
            for (const key of mirrors.keys()) if (key.startsWith(`${client} `)) mirrors.delete(key);
            inboxes.delete(client);
            return;
          default:
            return;
        }
      }
      case "closed":
        for (const key of mirrors.keys()) if (key.startsWith(`${record.client} `)) mirrors.delete(key);
        inboxes.delete(record.client);
        return;
      case "settled": {
        for (const [key, { mirror, stream }] of mirrors) {
          const newest = versions.newest.get(stream.conversationId) ?? 0;
          if (mirror.version < newest) {
            findings.add("last_state_lost", at, `${key} is at version ${mirror.version} of ${newest}`);
          }
          const { cursor } = mirror;
          if (cursor === null) continue;
          const missed = [...(events.get(stream.conversationId)?.keys() ?? [])].filter((one) => one > cursor);
          if (missed.length > 0) {
            findings.add("last_state_lost", at, `${key} has events up to ${cursor} and misses ${missed.join()}`);
          }
        }
        const inbox = `the inbox of life ${life}`;
        for (const [client, mirror] of inboxes) {
          const newest = versions.newest.get(inbox) ?? 0;
          if (mirror.version < newest) {
            findings.add("last_state_lost", at, `${client} is at version ${mirror.version} of ${inbox}, of ${newest}`);
          }
        }
        return;
      }
      case "invoke":
      case "error":
      case "run":
        return;
      default:
        record satisfies never;
    }
  });

  for (const { conversationId, checks } of streams) {
    if (checks.length === 0) continue;
    const cursors = [...(events.get(conversationId)?.keys() ?? [])].sort();
    for (const { from, to, at, gapBefore } of checks) {
      const missed = cursors.filter((cursor) => cursor > from && cursor < to && cursor >= gapBefore);
      if (missed.length > 0) {
        findings.add("event_gap", at, `${conversationId}: ${missed.join()} left out between ${from} and ${to}`);
      }
    }
  }
  checkPages(history, events, findings);
  return { events, mirrored };
}

const PAGE = 200;

function checkPages(history: History, events: Streams["events"], findings: Findings): void {
  const acknowledged = new Map<string, { readonly at: number; readonly runId: string }[]>();
  for (const operation of history.operations) {
    const { conversationId } = operation.params;
    const runId = acceptedRunOf(operation);
    if (runId !== undefined) {
      entry(acknowledged, String(conversationId), () => []).push({ at: operation.endedAt, runId });
    }
  }
  for (const operation of history.operations) {
    const page = pageOf(operation);
    if (page === undefined) continue;
    const at = operation.endedAt;
    const conversationId = String(operation.params["conversationId"]);
    const after = typeof operation.params["after"] === "string" ? operation.params["after"] : "";
    const limit = typeof operation.params["limit"] === "number" ? operation.params["limit"] : PAGE;
    let last = after;
    for (const { cursor } of page.events) {
      if (cursor <= last) findings.add("event_order", at, `a page has ${cursor} after ${last}`);
      last = cursor;
    }
    const isWhole = page.events.length < limit;
    const from = page.gap ? page.retainedFrom : "";
    const here = new Set(page.events.map(({ cursor }) => cursor));
    for (const [cursor, seen] of events.get(conversationId) ?? []) {
      if (cursor <= after || cursor < from || here.has(cursor)) continue;
      if (cursor < last) findings.add("event_gap", at, `a page leaves out ${cursor} and announces no gap`);
      else if (isWhole && seen.at < operation.invokedAt) {
        findings.add("acknowledged_lost", at, `event ${cursor} of ${conversationId} was seen and is gone`);
      }
    }
    if (after !== "" || page.gap || !isWhole) continue;
    const accepted = new Set(
      page.events.flatMap(({ type, phase, runId }) => (type === "turn" && phase === "accepted" ? [runId] : [])),
    );
    for (const { at: known, runId } of acknowledged.get(conversationId) ?? []) {
      if (known < operation.invokedAt && !accepted.has(runId)) {
        findings.add("acknowledged_lost", at, `run ${runId} was accepted, and the whole history does not know it`);
      }
    }
  }
}

/** The run that a message or an answer was told it has started. */
export function acceptedRunOf(operation: Operation): string | undefined {
  if (operation.method === "conversation_send") {
    const runId = returned(operation, "runId");
    return typeof runId === "string" ? runId : undefined;
  }
  if (operation.method !== "input_answer" || returned(operation, "status") !== "resolved") return undefined;
  const runId = fieldOf(fieldOf(returned(operation, "question"), "continuation"), "runId");
  return typeof runId === "string" ? runId : undefined;
}

/** Every snapshot that anyone saw: in a reply, with its operation, or built from deltas. */
export const snapshotsSeen = (history: History): readonly { snapshot: SnapshotSeen; operation: Operation }[] =>
  history.operations.flatMap((operation) => snapshotsOf(operation).map((snapshot) => ({ snapshot, operation })));
