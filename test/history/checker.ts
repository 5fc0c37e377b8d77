import type { HistoryRecord, Violation } from "./records.js";

/**
 * Judges a history: plain records in (see `records.ts` for what a recorder writes and when), what may never be out.
 * An empty list is the verdict that nothing was wrong. Pure; it reads no clock and no file, and shares no code with the
 * service.
 *
 * ```ts
 * const violations = check(records);
 * ```
 */
export function check(_records: readonly HistoryRecord[]): readonly Violation[] {
  return [];
}
