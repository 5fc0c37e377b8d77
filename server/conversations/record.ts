import { cursorOf } from "../../machines/context.js";
import type { ConversationState } from "../../machines/decide.js";
import type { Effect } from "../../machines/effects.js";
import { persist, type Restored, restore } from "../../machines/persisted.js";
import type { ConversationEvent } from "../../protocol/events.js";
import { parsed } from "../json.js";
import { toBytes } from "../store/json.js";
import type { Commit, Compare, Entry, Store } from "../store/port.js";

/** Where a conversation lives in the store, and the one batch that changes it. */
export const headKey = (id: string): string => `conversation/${id}/head`;
const stateKey = (id: string): string => `conversation/${id}/state`;
const receiptPrefix = (id: string): string => `conversation/${id}/receipt/`;
export const eventPrefix = (id: string): string => `event/${id}/`;
const runKey = (runId: string): string => `run/${runId}`;

/** Conversations with something pending or running: what a restart has to look at. */
export const ACTIVE = "active/";
/** Conversations in the order of their making. */
export const LISTED = "list/";

/** The small record every commit of a conversation is compared with. */
interface Head {
  readonly version: number;
  /** Number of the oldest event that is kept. */
  readonly oldestEvent: number;
}

/** A conversation as it is in the store. */
export interface Loaded {
  readonly state: ConversationState;
  readonly head: Uint8Array;
  readonly oldestEvent: number;
}

export type Loading =
  | { readonly kind: "loaded"; readonly loaded: Loaded }
  | { readonly kind: "unknown" }
  | { readonly kind: "unreadable"; readonly fault: string };

/** Ids come from outside: only what this service may have made is looked up. */
const isOwnId = (id: string): boolean => /^[0-9a-z-]{1,64}$/.test(id);
const isOwnRunId = isOwnId;

export async function loadConversation(store: Store, id: string): Promise<Loading> {
  if (!isOwnId(id)) return { kind: "unknown" };
  const damaged: string[] = [];
  const entries = await store.range(`conversation/${id}/`, { limit: 100, onDamage: (key) => damaged.push(key) });
  if (damaged.length > 0) return { kind: "unreadable", fault: `${damaged[0]} does not match its digest` };
  if (entries.length === 0) return { kind: "unknown" };
  const byKey = new Map(entries.map(({ key, value }) => [key, value]));
  const head = byKey.get(headKey(id));
  const state = byKey.get(stateKey(id));
  if (head === undefined || state === undefined)
    return { kind: "unreadable", fault: "the head or the state is missing" };
  const receipts = new Map(
    entries
      .filter(({ key }) => key.startsWith(receiptPrefix(id)))
      .map(({ key, value }) => [key.slice(receiptPrefix(id).length), parsed(value)]),
  );
  const restored: Restored = restore(parsed(state), receipts);
  if (!restored.ok) return { kind: "unreadable", fault: restored.fault };
  const { context } = restored.state;
  const { version, oldestEvent } = (parsed(head) ?? {}) as Partial<Head>;
  if (context.conversationId !== id || version !== context.version || typeof oldestEvent !== "number") {
    return { kind: "unreadable", fault: "head and state do not belong together" };
  }
  return { kind: "loaded", loaded: { state: restored.state, head, oldestEvent } };
}

/** The runs of a conversation by id, and back. */
export async function conversationOfRun(store: Store, runId: string): Promise<string | null> {
  if (!isOwnRunId(runId)) return null;
  const value = await store.get(runKey(runId));
  const found = value === null ? undefined : (parsed(value) as { conversationId?: string } | undefined);
  return found?.conversationId ?? null;
}

export interface Change {
  readonly previous: Loaded | null;
  readonly next: ConversationState;
  readonly effects: readonly Effect[];
  readonly fence: readonly Compare[];
  readonly retainEvents: number;
  /** Only for a new conversation: when it was made, for its place in the list. */
  readonly listedAt?: string;
}

/** Everything one transition changes, as one atomic batch. */
export function commitOf(change: Change): { readonly commit: Commit; readonly reached: Loaded } {
  const { previous, next, effects, fence, retainEvents } = change;
  const { context } = next;
  const id = context.conversationId;
  const persisted = persist(next);
  const oldestEvent = Math.max(previous?.oldestEvent ?? 1, context.eventSequence - retainEvents + 1);
  const head = toBytes({ version: context.version, oldestEvent } satisfies Head);

  const puts: Entry[] = [
    { key: headKey(id), value: head },
    { key: stateKey(id), value: toBytes(persisted) },
  ];
  const deletes: string[] = [];

  const before = new Map(previous?.state.context.receipts.map((receipt) => [receipt.requestId, receipt]));
  for (const receipt of context.receipts) {
    if (before.get(receipt.requestId) !== receipt) {
      puts.push({ key: receiptPrefix(id) + receipt.requestId, value: toBytes(receipt) });
    }
    before.delete(receipt.requestId);
  }
  for (const requestId of before.keys()) deletes.push(receiptPrefix(id) + requestId);

  for (const event of eventsOf(effects)) {
    if (event.cursor >= cursorOf(oldestEvent))
      puts.push({ key: eventPrefix(id) + event.cursor, value: toBytes(event) });
  }
  const storedEvents = previous?.state.context.eventSequence ?? 0;
  for (let sequence = previous?.oldestEvent ?? 1; sequence < oldestEvent && sequence <= storedEvents; sequence += 1) {
    deletes.push(eventPrefix(id) + cursorOf(sequence));
  }

  const runsBefore = previous === null ? new Set<string>() : runIdsOf(previous.state);
  const runsAfter = runIdsOf(next);
  for (const runId of runsAfter) {
    if (!runsBefore.has(runId)) puts.push({ key: runKey(runId), value: toBytes({ conversationId: id }) });
  }
  for (const runId of runsBefore) if (!runsAfter.has(runId)) deletes.push(runKey(runId));

  const wasActive = previous !== null && isActive(previous.state);
  if (isActive(next) && !wasActive) puts.push({ key: ACTIVE + id, value: toBytes({ serviceId: context.serviceId }) });
  if (!isActive(next) && wasActive) deletes.push(ACTIVE + id);
  if (change.listedAt !== undefined) puts.push({ key: `${LISTED}${change.listedAt}/${id}`, value: toBytes({}) });

  return {
    commit: { head: headKey(id), expected: previous?.head ?? null, puts, deletes, fence },
    reached: { state: next, head, oldestEvent },
  };
}

export const eventsOf = (effects: readonly Effect[]): readonly ConversationEvent[] =>
  effects.flatMap((effect) => (effect.type === "event" ? [effect.event] : []));

/** Something a restart would have to cancel or fail. */
export const isActive = ({ context }: ConversationState): boolean =>
  context.open !== null || context.active !== null || context.waiting.length > 0;

/** Every run the conversation still knows: live ones and the newest settled ones. */
const runIdsOf = ({ context }: ConversationState): Set<string> =>
  new Set([
    ...(context.active === null ? [] : [context.active.runId]),
    ...context.waiting.map(({ runId }) => runId),
    ...context.settled.map(({ runId }) => runId),
  ]);

export const sameBytes = (one: Uint8Array, other: Uint8Array): boolean => Buffer.compare(one, other) === 0;
