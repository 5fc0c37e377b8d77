import fc from "fast-check";
import { schedule } from "./schedule.js";
import { simulate } from "./simulate.js";
import { makeBeginning } from "./world.js";

/** Moves in the longest schedules. */
const MOVES = 60;

/**
 * Plays `runs` schedules. Where one fails, the error has the seed, the path and the shortened moves: play them again in
 * a test of their own (`scenarios.test.ts`) and leave it there.
 */
export async function holds(runs: number, seed: number): Promise<void> {
  const begin = await makeBeginning();
  const started = performance.now();
  await fc.assert(
    fc.asyncProperty(schedule(MOVES), async (moves) => {
      const { faults } = await simulate(begin(), moves);
      if (faults.length > 0) throw new Error(faults.join("\n"));
    }),
    { numRuns: runs, seed, includeErrorInReport: true },
  );
  const seconds = (performance.now() - started) / 1_000;
  console.log(`${runs} schedules in ${seconds.toFixed(1)} s, ${(runs / seconds).toFixed(0)} a second (seed ${seed})`);
}
