// The pictures of docs/tui.md, taken from the real program in a pseudo-terminal.
import { join } from "node:path";
import { root, run } from "./project.mjs";
import { setUp } from "./setup.mjs";

await setUp();
const taken = join(root, "dist/test/terminal/screenshots.js");
process.exitCode = (await run(process.execPath, [taken, join(root, "docs/images")])).code;
