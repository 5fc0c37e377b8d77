import { checkAcknowledged, checkContinuations, checkGrowth, checkRuns } from "./knowledge.js";
import { Findings, historyOf } from "./operations.js";
import type { HistoryRecord, Violation } from "./records.js";
import { checkRegisters } from "./register.js";
import { checkStreams } from "./streams.js";

/**
 * Judges a history: plain records in (see `records.ts` for what a recorder writes and when), what may never be out.
 * An empty list is the verdict that nothing was wrong. Pure; it reads no clock and no file, and shares no code with the
 * service.
 *
 * ```ts
 * const violations = check(records);
 * ```
 */
export function check(records: readonly HistoryRecord[]): readonly Violation[] {
  const findings = new Findings();
  const history = historyOf(records, findings);
  const streams = checkStreams(history, findings);
  checkRegisters(history, findings);
  checkGrowth(history, streams, findings);
  checkAcknowledged(history, findings);
  checkContinuations(history, streams, findings);
  checkRuns(history, streams, findings);
  return findings.violations.sort((one, other) => one.at - other.at);
}
