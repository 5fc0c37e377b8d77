// The test runner: `npm test [-- FILTER…]`, or `node scripts/test.mjs [--full] [FILTER…]`.
//
// Every test file is a process of its own, in a process group of its own, with an empty home and a temporary directory
// of its own, two at a time. A filter is a part of a file's path, as in `test/protocol` or `server/socket.test.ts`.
// Without one: everything but the folders that need programs npm does not bring; with --full: those folders.
// The last line is `N passed, N failed`. It fails on a failing or skipped test, on a file that ran no test, crashed or
// did not end in time, and when there is no file at all.
import { join, relative, resolve } from "node:path";
import { parseArgs } from "node:util";
import { filesBelow, root, say, stop } from "./project.mjs";
import { setUp } from "./setup.mjs";
import { cleanUp, runTestFile } from "./test-file.mjs";

/** Folders whose tests take long, or need system packages (Chromium, strace) or their own installation: .ci/run. */
const fullerFolders = ["browser/", "crash/", "agents-e2e/", "schedules/"];

/** Seconds a file of a folder may take; the first that fits counts. */
const limits = [
  ["agents-e2e/", 900],
  ["browser/", 600],
  ["crash/", 600],
  ["fuzz/", 600],
  ["operation/", 600],
  ["process/", 600],
  ["service/", 600],
  ["property/", 600],
  ["schedules/", 600],
  ["scripts/", 600],
  ["simulation/", 600],
  ["", 300],
];

const filesAtOnce = 2;

function parse() {
  try {
    return parseArgs({
      allowPositionals: true,
      options: { full: { type: "boolean" }, root: { type: "string" }, limit: { type: "string" } },
    });
  } catch (error) {
    return stop(`test: ${error.message}`);
  }
}

/** The part of a compiled file's path that a filter names: `./dist/test/a/b.test.ts` is `a/b.test`. */
function filterPart(filter) {
  return filter
    .replace(/^\.\//, "")
    .replace(/^dist\//, "")
    .replace(/^test\//, "")
    .replace(/\.(ts|js|mjs)$/, "");
}

function selected(files, filters, full) {
  const isFuller = (file) => fullerFolders.some((folder) => file.startsWith(folder));
  if (filters.length === 0) return files.filter((file) => isFuller(file) === full);
  return files.filter((file) => filters.some((filter) => file.includes(filterPart(filter))));
}

function limitOf(file) {
  return limits.find(([folder]) => file.startsWith(folder))[1];
}

function seconds(milliseconds) {
  return `${(milliseconds / 1000).toFixed(1)} s`;
}

function report(name, result) {
  if (result.problem === undefined) {
    process.stdout.write(`ok      ${name}  (${result.passed})  ${seconds(result.took)}\n`);
    return;
  }
  const output = result.output.trimEnd();
  process.stdout.write(`FAILED  ${name}  ${result.problem}  ${seconds(result.took)}\n`);
  if (output !== "") process.stdout.write(`${output.replace(/^/gm, "        ")}\n`);
}

async function main() {
  const { values, positionals } = parse();
  const directory = values.root === undefined ? join(root, "dist/test") : resolve(values.root);
  if (values.root === undefined) await setUp();

  const found = filesBelow(directory, (path) => /\.test\.m?js$/.test(path));
  const limit = (file) => (values.limit === undefined ? limitOf(file) : Number(values.limit));
  const files = selected(found, positionals, values.full === true);
  const waiting = files.toSorted((one, other) => limit(other) - limit(one)); // those that may take long go first

  let passed = 0;
  let failed = 0;
  const failures = [];
  async function worker() {
    for (let file = waiting.shift(); file !== undefined; file = waiting.shift()) {
      const name =
        values.root === undefined ? `test/${file.replace(/\.js$/, "")}` : relative(root, join(directory, file));
      const result = await runTestFile(join(directory, file), limit(file) * 1000);
      passed += result.passed;
      failed += result.failed;
      if (result.problem !== undefined) failures.push(`${name}: ${result.problem}`);
      report(name, result);
    }
  }
  await Promise.all(Array.from({ length: filesAtOnce }, worker));
  cleanUp();

  if (files.length === 0) {
    failed += 1;
    failures.push(`no test file ${positionals.length > 0 ? `matches ${positionals.join(" ")}` : "found"}`);
  }
  if (failures.length > 0) process.stdout.write(`\n${failures.join("\n")}\n`);
  process.exitCode = failed === 0 ? 0 : 1;
  process.stdout.write(`\n${passed} passed, ${failed} failed\n`);
}

for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) {
  process.once(signal, () => {
    cleanUp();
    say(`test: ended by ${signal}`);
    process.exit(1);
  });
}
await main();
