/** The first pause is at most this long, in milliseconds. */
const BASE = 250;
/** No pause is longer, in milliseconds. */
const CAP = 15_000;

/**
 * The pause before try number `attempt` (from 1), in milliseconds: exponential with full jitter, so that clients that
 * lost the same service do not come back in step. `random` is in [0, 1).
 */
export function pauseBefore(attempt: number, random: () => number): number {
  return Math.floor(random() * Math.min(CAP, BASE * 2 ** Math.min(attempt - 1, 16)));
}
