import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { test } from "uvu";
import * as assert from "uvu/assert";

const root = fileURLToPath(new URL("../../../", import.meta.url));

interface Run {
  readonly status: number | null;
  readonly output: string;
  readonly lastLine: string | undefined;
}

/** The runner on the fixtures whose names match. */
function runFixtures(filters: readonly string[], limitSeconds = 60): Run {
  const script = join(root, "scripts/test.mjs");
  const fixtures = join(root, "test/scripts/fixtures");
  const args = [script, "--root", fixtures, "--limit", String(limitSeconds), ...filters];
  const { status, stdout } = spawnSync(process.execPath, args, { cwd: root, encoding: "utf8" });
  return { status, output: stdout, lastLine: stdout.trimEnd().split("\n").at(-1) };
}

/** Whether a process is there and is not just waiting for its parent to notice its end. */
function isRunning(pid: number): boolean {
  try {
    return !/^State:\s+[ZX]/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
  } catch {
    return false;
  }
}

function childOf(output: string): number {
  const pid = Number(/child (\d+)/.exec(output)?.[1]);
  assert.ok(pid > 0, "the fixture told its child's process id");
  return pid;
}

test("passing tests are counted and the run ends well", () => {
  const run = runFixtures(["passing"]);
  assert.is(run.lastLine, "2 passed, 0 failed");
  assert.is(run.status, 0);
});

test("a failing test is counted, shown whole, and fails the run", () => {
  const run = runFixtures(["failing", "passing"]);
  assert.is(run.lastLine, "3 passed, 1 failed");
  assert.is(run.status, 1);
  assert.match(run.output, "Expected values to be strictly equal");
});

const refused: readonly (readonly [string, string, string, RegExp])[] = [
  ["a skipped test", "skipping", "1 passed, 1 failed", /1 skipped/],
  ["a test left out by test.only", "narrowed", "1 passed, 1 failed", /1 skipped/],
  ["a file without a test", "empty", "0 passed, 1 failed", /ran no test/],
  ["a file that forgot to run its tests", "forgotten", "0 passed, 1 failed", /without a summary \(exit status 0\)/],
  ["a test that exits with status 0", "crashing", "0 passed, 1 failed", /without a summary/],
  ["a test that waits for what never comes", "drained", "0 passed, 1 failed", /without a summary/],
  ["a preparation that throws, which uvu overlooks", "unprepared", "0 passed, 2 failed", /2 of 2 failed/],
  ["a failing test that prints a good summary", "pretending", "0 passed, 1 failed", /1 of 1 failed/],
  ["a filter that matches no file", "nowhere", "0 passed, 1 failed", /no test file matches nowhere/],
];

for (const [what, fixture, lastLine, reason] of refused) {
  test(`${what} fails the run`, () => {
    const run = runFixtures([fixture]);
    assert.is(run.lastLine, lastLine);
    assert.is(run.status, 1);
    assert.match(run.output, reason);
  });
}

test("a file that does not end is killed with its children at its limit", () => {
  const run = runFixtures(["hanging"], 2);
  assert.is(run.lastLine, "0 passed, 1 failed");
  assert.match(run.output, "did not end within 2 s");
  assert.not(isRunning(childOf(run.output)));
});

test("a child that a file leaves behind neither holds the run up nor survives it", () => {
  const run = runFixtures(["littering", "failing"]);
  assert.is(run.lastLine, "2 passed, 1 failed");
});

test("a file finds an empty home, an empty temporary directory and nothing of its caller's settings", () => {
  assert.is(runFixtures(["surroundings"]).lastLine, "1 passed, 0 failed");
});

test.run();
