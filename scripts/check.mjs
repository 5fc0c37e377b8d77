// The checks. Without a flag: the quick ones (format, lint, types). With --full: everything that has to be clean.
import { join } from "node:path";
import { root, run, say } from "./project.mjs";
import { setUp } from "./setup.mjs";

const bin = (name) => join(root, "node_modules", name);

/** Each step prints one line; its output is shown only when it fails. */
const quick = [
  { name: "format and lint", script: bin("@biomejs/biome/bin/biome"), args: ["check", "--error-on-warnings"] },
];

async function main() {
  await setUp(); // compiles: strict types are checked here
  say("check: types ok");
  let failed = 0;
  for (const { name, script, args } of quick) {
    const { code, output } = await run(process.execPath, [script, ...args], { quiet: true });
    if (code !== 0) {
      failed += 1;
      say(output);
    }
    say(`check: ${name} ${code === 0 ? "ok" : "FAILED"}`);
  }
  process.exitCode = failed === 0 ? 0 : 1;
}

await main();
