import { BOUNDS } from "../protocol/bounds.js";
import type { Answer, Continuation, Question } from "../protocol/question.js";

/** The stored terminal forms of questions: oldest first, bounded in number and in bytes. Contract sections 1 and 3. */
export type Receipts = readonly Question[];

export const findReceipt = (receipts: Receipts, requestId: string): Question | undefined =>
  receipts.find((receipt) => receipt.requestId === requestId);

/** Adds a receipt and evicts the oldest ones that exceed the bounds; the new one always stays. */
export function keepReceipt(receipts: Receipts, receipt: Question): Receipts {
  let kept = [...receipts, receipt].slice(-BOUNDS.receipts);
  let bytes = kept.reduce((sum, each) => sum + bytesOf(each), 0);
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
