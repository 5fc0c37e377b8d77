// Writes docs/statechart.md and its figure from the machine; with --check: fails when a committed one is not what it
// would write.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { exists, root, say } from "./project.mjs";
import { setUp } from "./setup.mjs";

await setUp();
const { statechartDocument } = await import("../dist/machines/chart/document.js");
const { svg } = await import("../dist/machines/chart/svg.js");

for (const [name, wanted] of [
  ["docs/statechart.md", statechartDocument()],
  ["docs/statechart.svg", svg()],
]) {
  const file = join(root, name);
  if (!process.argv.includes("--check")) {
    writeFileSync(file, wanted);
  } else if (!exists(file) || readFileSync(file, "utf8") !== wanted) {
    say(`${name} is not what the machine says: node scripts/statechart.mjs`);
    process.exitCode = 1;
  }
}
