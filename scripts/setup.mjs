// Everything between a fresh clone and a program that runs: packages, then dist/. Does nothing when nothing changed,
// and several at once wait for each other.
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build, isBuilt } from "./build.mjs";
import { install, isInstalled } from "./install.mjs";
import { withLock } from "./lock.mjs";
import { root, say, stop } from "./project.mjs";

const oldestNode = [20, 19];

function checkNode() {
  const [major, minor] = process.versions.node.split(".").map(Number);
  if (major > oldestNode[0] || (major === oldestNode[0] && minor >= oldestNode[1])) return;
  stop(`Clankie needs Node ${oldestNode.join(".")} or newer; this is ${process.version} (${process.execPath}).`);
}

/** Installs and builds as far as needed. Ends the process with a message when that fails. */
export async function setUp() {
  checkNode();
  if (isInstalled() && isBuilt()) return;
  try {
    await withLock(
      join(root, "tmp/setup.lock"),
      async () => {
        if (!isInstalled()) await install();
        if (!isBuilt()) await build();
      },
      (owner) => say(`setup: waiting for another set-up${owner ? ` (process ${owner.pid})` : ""}`),
    );
  } catch (error) {
    stop(`setup: ${error.message}`);
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await setUp();
