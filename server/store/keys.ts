import { StoreError } from "./errors.js";
import type { Commit, RangeOptions } from "./port.js";

/** Longest key, in characters. */
const KEY_LENGTH = 1024;

/** Sorts after every key that can follow a prefix: no key contains it. */
export const ABOVE = "\x7f";

const KEY = /^[\x20-\x7e]+$/;

/** Whether a key may be used with a store. */
function isKey(key: string): boolean {
  return key.length <= KEY_LENGTH && KEY.test(key);
}

/** Throws `STORE_INVALID` unless the key may be used with a store. */
export function checkKey(key: string): void {
  if (!isKey(key)) throw new StoreError("STORE_INVALID", "A key is 1 to 1024 printable ASCII characters.");
}

/** Throws `STORE_INVALID` unless the prefix may begin a key. The empty prefix begins them all. */
export function checkPrefix(prefix: string): void {
  if (prefix !== "") checkKey(prefix);
}

/** Throws `STORE_INVALID` where a commit is malformed. */
export function checkCommit({ head, puts, deletes, fence = [] }: Commit): void {
  const written = new Set<string>();
  for (const key of [...puts.map((put) => put.key), ...deletes]) {
    checkKey(key);
    if (written.has(key)) throw new StoreError("STORE_INVALID", "A commit writes a key twice.", { key });
    written.add(key);
  }
  for (const { key } of fence) checkKey(key);
  if (!puts.some((put) => put.key === head)) {
    throw new StoreError("STORE_INVALID", "A commit has to put its head.", { key: head });
  }
}

/** The bounds of a read: keys from `low` (included) or above it, below `high` or up to it. */
export interface Bounds {
  readonly low: string;
  readonly lowIncluded: boolean;
  readonly high: string;
  readonly highIncluded: boolean;
}

/** What a prefix and the options of a range come to. Throws `STORE_INVALID` where they are malformed. */
export function boundsOf(prefix: string, { from, after, limit, reverse = false }: RangeOptions): Bounds {
  checkPrefix(prefix);
  if (from !== undefined && after !== undefined) {
    throw new StoreError("STORE_INVALID", "A range takes `from` or `after`, not both.");
  }
  if (!Number.isSafeInteger(limit) || limit < 0) throw new StoreError("STORE_INVALID", "A limit counts entries.");
  // A space is the lowest key character; what sorts below it is the adapter's own.
  const low = prefix === "" ? " " : prefix;
  const high = prefix + ABOVE;
  const start = from ?? after;
  const included = after === undefined;
  const whole = { low, lowIncluded: true, high, highIncluded: false };
  if (start === undefined) return whole;
  checkKey(start);
  if (reverse) return start < high ? { ...whole, high: start, highIncluded: included } : whole;
  return start >= low ? { ...whole, low: start, lowIncluded: included } : whole;
}

/** Whether a key is within the bounds. */
export function within(key: string, { low, lowIncluded, high, highIncluded }: Bounds): boolean {
  return (lowIncluded ? key >= low : key > low) && (highIncluded ? key <= high : key < high);
}
