// Writes docs/statechart.md from the machine; with --check: fails when the committed one is not what it would write.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { exists, root, say } from "./project.mjs";
import { setUp } from "./setup.mjs";

await setUp();
const { statechartDocument } = await import("../dist/machines/chart/document.js");
const file = join(root, "docs/statechart.md");
const wanted = statechartDocument();
if (!process.argv.includes("--check")) {
  writeFileSync(file, wanted);
} else if (!exists(file) || readFileSync(file, "utf8") !== wanted) {
  say("docs/statechart.md is not what the machine says: node scripts/statechart.mjs");
  process.exitCode = 1;
}
