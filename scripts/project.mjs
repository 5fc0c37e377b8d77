// What every script here needs: where the project is, how to speak (stderr only), how to run a program.
import { spawn } from "node:child_process";
import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/** Absolute path of the project directory. */
export const root = fileURLToPath(new URL("..", import.meta.url));

/** Progress is for people: stdout stays free for results. */
export function say(text) {
  process.stderr.write(`${text}\n`);
}

/** Ends the process with a message and no stack: for what the user can put right. */
export function stop(text) {
  say(text);
  process.exit(1);
}

/**
 * Runs a program in the project directory to its end. With `quiet`, its output is collected and returned instead of
 * shown; stdout of a program that is not quiet goes to our stderr.
 */
export function run(command, args, { env = process.env, cwd = root, quiet = false } = {}) {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { cwd, env, stdio: quiet ? ["ignore", "pipe", "pipe"] : ["ignore", 2, 2] });
    let output = "";
    const collect = (chunk) => {
      output += chunk;
    };
    child.stdout?.setEncoding("utf8").on("data", collect);
    child.stderr?.setEncoding("utf8").on("data", collect);
    child.once("error", reject);
    child.once("close", (code, signal) => resolve({ code: code ?? 1, signal, output }));
  });
}

/** Every file below a directory of the project, as sorted paths relative to it; none when it does not exist. */
export function filesBelow(directory, accept = () => true, base = directory) {
  const found = [];
  let entries;
  try {
    entries = readdirSync(directory, { withFileTypes: true });
  } catch (error) {
    if (error.code === "ENOENT") return found;
    throw error;
  }
  for (const entry of entries) {
    const path = join(directory, entry.name);
    if (entry.isDirectory()) {
      if (entry.name !== "node_modules" && entry.name !== "dist") found.push(...filesBelow(path, accept, base));
    } else if (accept(path)) {
      found.push(path.slice(base.length + 1));
    }
  }
  return found.sort();
}

/** Whether a path exists, whatever it is. */
export function exists(path) {
  return statSync(path, { throwIfNoEntry: false }) !== undefined;
}
