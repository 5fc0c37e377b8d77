import { BOUNDS } from "../protocol/bounds.js";
import type { Answer, Continuation, Question } from "../protocol/question.js";
import type { OpenQuestion } from "./context.js";

/** The stored terminal forms of questions: oldest first, bounded in number and in bytes. Contract sections 1 and 3. */
export type Receipts = readonly Question[];

export const findReceipt = (receipts: Receipts, requestId: string): Question | undefined =>
  receipts.find((receipt) => receipt.requestId === requestId);

/** Adds a receipt; the oldest ones that exceed the bounds are evicted. */
export const keepReceipt = (receipts: Receipts, receipt: Question): Receipts =>
  withinBounds([...receipts, receipt], null);

/**
 * Evicts the oldest receipts while there are more than 32, or while they and the pending question take more bytes than
 * the question state of a conversation may; the newest always stays. Contract section 3.
 */
export function withinBounds(receipts: Receipts, open: OpenQuestion | null): Receipts {
  let kept = receipts.slice(-BOUNDS.receipts);
  let bytes = kept.reduce((sum, each) => sum + bytesOf(each), open === null ? 0 : bytesOf(open));
  while (bytes > BOUNDS.stateBytes && kept.length > 1) {
    bytes -= bytesOf(kept[0]);
    kept = kept.slice(1);
  }
  return kept;
}

/** Writes the end of a continuation into the receipt that started it, where that receipt is still kept. */
export const settleContinuation = (receipts: Receipts, continuation: Continuation): Receipts =>
  receipts.map((receipt) =>
    receipt.continuation?.runId === continuation.runId ? { ...receipt, continuation } : receipt,
  );

/** The same option, or the same text after trimming. Contract 6.4. */
export function sameAnswer(one: Answer, other: Answer): boolean {
  switch (one.kind) {
    case "choice":
      return other.kind === "choice" && one.optionId === other.optionId;
    case "text":
      return other.kind === "text" && one.text.trim() === other.text.trim();
    default:
      return one satisfies never;
  }
}

const encoder = new TextEncoder();
const bytesOf = (value: unknown): number => encoder.encode(JSON.stringify(value)).length;
