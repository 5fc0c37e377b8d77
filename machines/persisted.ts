import typia from "typia";
import type { Counter } from "../protocol/bounds.js";
import { checked } from "../protocol/checked.js";
import type { Question } from "../protocol/question.js";
import type { ConversationContext } from "./context.js";
import { conversationMachine } from "./conversation.js";
import type { ConversationState } from "./decide.js";

/**
 * How a conversation is stored: the machine's own snapshot in an envelope. Receipts are stored beside it, one record
 * each, so that a change does not rewrite them all.
 */
export interface PersistedConversation {
  readonly format: typeof FORMAT;
  readonly version: Counter;
  readonly state: {
    readonly status: "active";
    readonly value: {
      readonly driver: "service" | "native";
      readonly question: "none" | "pending" | "submitted" | "cancelled";
      readonly turn: "idle" | "accepted" | "running";
    };
    readonly context: Omit<ConversationContext, "receipts">;
  };
  /** The kept receipts, oldest first. */
  readonly receiptIds: readonly string[];
}

const FORMAT = 1;

const persistedValidator = typia.createValidateEquals<PersistedConversation>();
const receiptValidator = typia.createValidateEquals<Question>();

/** Pure upgrades on plain JSON, from the format that is their key to the next. */
const MIGRATIONS: { readonly [format: number]: (stored: unknown) => unknown } = {};

export function persist(state: ConversationState): PersistedConversation {
  const { receipts, ...context } = state.context;
  return {
    format: FORMAT,
    version: context.version,
    state: { status: "active", value: state.value, context },
    receiptIds: receipts.map(({ requestId }) => requestId),
  };
}

export type Restored =
  | { readonly ok: true; readonly state: ConversationState }
  | { readonly ok: false; readonly fault: string };

/**
 * Reads a stored conversation. What does not parse, or does not fit together, is a fault and is never treated as empty.
 * Contract section 8.
 */
export function restore(stored: unknown, receipts: ReadonlyMap<string, unknown>): Restored {
  const envelope = checked(persistedValidator, upgrade(stored));
  if (!envelope.ok) return fault(`state: ${envelope.errors[0]?.path ?? ""}`);
  const { state, receiptIds, version } = envelope.value;
  const kept: Question[] = [];
  for (const requestId of receiptIds) {
    const receipt = checked(receiptValidator, receipts.get(requestId));
    if (!receipt.ok) return fault(`receipt ${requestId}: ${receipt.errors[0]?.path ?? ""}`);
    if (receipt.value.requestId !== requestId) return fault(`receipt ${requestId}: requestId`);
    if (receipt.value.status === "pending") return fault(`receipt ${requestId}: status`);
    kept.push(receipt.value);
  }
  const { value } = state;
  const context: ConversationContext = { ...state.context, receipts: kept };
  if (version !== context.version) return fault("state: version");
  if ((value.question === "pending") !== (context.open !== null)) return fault("state: question");
  if (context.open !== null && context.open.question.status !== "pending") return fault("state: open");
  if ((value.turn === "idle") !== (context.active === null)) return fault("state: turn");
  if ((value.driver === "native") !== (context.harness !== null)) return fault("state: driver");
  return { ok: true, state: conversationMachine.resolveState({ value, context }) };
}

const fault = (text: string): Restored => ({ ok: false, fault: text });

function upgrade(stored: unknown): unknown {
  let current = stored;
  for (let format = formatOf(current); format !== FORMAT; format = formatOf(current)) {
    const migrate = MIGRATIONS[format];
    if (migrate === undefined) return current;
    current = migrate(current);
  }
  return current;
}

const formatOf = (stored: unknown): number =>
  typeof stored === "object" && stored !== null && "format" in stored && typeof stored.format === "number"
    ? stored.format
    : Number.NaN;
