// `npm start`: sets up, then the main job in the directory npm was called from. Arguments after `--` are passed on.
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { root } from "./project.mjs";
import { setUp } from "./setup.mjs";

await setUp();
const bin = join(root, "dist/clients/cli/bin.js");
process.argv.splice(1, 1, bin, "start");
process.chdir(process.env.INIT_CWD ?? process.cwd());
await import(pathToFileURL(bin).href);
