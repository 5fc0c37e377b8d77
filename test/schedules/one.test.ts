import { suite } from "uvu";
import { holds } from "../simulation/property.js";

const test = suite("schedules, part one");

test("[8.1, 8.2, 8.3, 8.5, 8.6, 8.8, 8.9] 5 000 schedules lose nothing that was acknowledged", () =>
  holds(5_000, 1_000));

test.run();
