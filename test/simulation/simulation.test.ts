import fc from "fast-check";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { holds } from "./property.js";
import { schedule } from "./schedule.js";
import { simulate } from "./simulate.js";
import { makeBeginning } from "./world.js";

const test = suite("simulation");

/** Another seed looks elsewhere: `SIMULATION_SEED=7 node dist/test/simulation/simulation.test.js`. */
const SEED = Number(process.env["SIMULATION_SEED"] ?? 1);
const RUNS = Number(process.env["SIMULATION_RUNS"] ?? 1_000);

test("[8.1, 8.2, 8.3, 8.5, 8.6, 8.8, 8.9] whatever clients, disk and schedule do, nothing acknowledged is lost", () =>
  holds(RUNS, SEED));

test("the same schedule is the same history, to the last byte", async () => {
  const begin = await makeBeginning();
  const other = await makeBeginning();
  for (const moves of fc.sample(schedule(60), { numRuns: 20, seed: SEED })) {
    const once = await simulate(begin(), moves);
    const again = await simulate(other(), moves);
    assert.equal(again.trace, once.trace);
  }
});

test.run();
