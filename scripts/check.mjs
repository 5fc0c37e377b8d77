// The checks. Without a flag: the quick ones (types, format, lint). With --full: everything that has to be clean.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { exists, root, run, say } from "./project.mjs";
import { setUp } from "./setup.mjs";

const packaged = (path) => join(root, "node_modules", path);
const own = (path) => join(root, path);
const isThere = (folder) => exists(own(folder));
const sourceFolders = ["machines", "protocol", "server", "clients", "bench", "scripts", "test"];

const quick = [
  { name: "format and lint", script: packaged("@biomejs/biome/bin/biome"), args: ["check", "--error-on-warnings"] },
];

const slower = [
  {
    name: "dependency direction",
    script: packaged("dependency-cruiser/bin/dependency-cruise.mjs"),
    args: ["--config", ".dependency-cruiser.cjs", "--output-type", "err-long", ...sourceFolders.filter(isThere)],
  },
  {
    name: "unused code",
    script: packaged("knip/bin/knip.js"),
    args: ["--no-progress", "--no-config-hints"],
  },
  { name: "a test for every rule", script: own("scripts/check-rules.mjs"), args: [] },
];

/**
 * Documents made from code. scripts/generated.json lists them as `{ "file", "command": [SCRIPT, ARG…] }`: the script is
 * run by Node with `--check` added, and fails when the committed file is not what it would write.
 */
function generatedDocuments() {
  const listed = JSON.parse(readFileSync(own("scripts/generated.json"), "utf8"));
  return listed.map(({ file, command: [script, ...args] }) => ({
    name: `${file} is current`,
    script: own(script),
    args: [...args, "--check"],
  }));
}

/** Prints one line for each step; its output only when it fails. */
async function passes({ name, script, args }) {
  const { code, output } = await run(process.execPath, [script, ...args], { quiet: true });
  if (code !== 0) say(output.trimEnd());
  say(`check: ${name} ${code === 0 ? "ok" : "FAILED"}`);
  return code === 0;
}

await setUp(); // compiles: this is the check of the types
say("check: types ok");
const steps = process.argv.includes("--full") ? [...quick, ...slower, ...generatedDocuments()] : quick;
let failed = 0;
for (const step of steps) {
  if (!(await passes(step))) failed += 1;
}
process.exitCode = failed === 0 ? 0 : 1;
