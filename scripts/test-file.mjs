// Runs one compiled uvu file in a process group and a directory of its own, and judges how it went.
import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { stripVTControlCharacters } from "node:util";
import { root } from "./project.mjs";

const mostOutput = 8 * 1024 * 1024;
const lastWordsMs = 1_000;
const running = new Set();
let base;
let count = 0;

/** Kills what still runs and removes what the tests left in their directories. */
export function cleanUp() {
  for (const pid of running) killGroup(pid);
  if (base !== undefined) rmSync(base, { recursive: true, force: true, maxRetries: 5 });
  base = undefined;
}

function killGroup(pid) {
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // nobody of the group is left
  }
}

/** An environment that says nothing about who runs the tests, or from where. */
function environment() {
  base ??= mkdtempSync(join(tmpdir(), "clankie-tests-"));
  count += 1;
  const own = join(base, String(count));
  const env = Object.fromEntries(
    Object.entries(process.env).filter(
      ([name]) => !/^(npm_|clankie_|git_|xdg_)/i.test(name) && !["INIT_CWD", "FORCE_COLOR", "NO_COLOR"].includes(name),
    ),
  );
  env.HOME = join(own, "home");
  env.TMPDIR = join(own, "tmp");
  mkdirSync(env.HOME, { recursive: true });
  mkdirSync(env.TMPDIR);
  return { env, own };
}

/** uvu's own last words; a test may have printed something alike before. */
function summaryIn(output) {
  const pattern = /^ {2}Total: +(\d+)\n {2}Passed: +(\d+)\n {2}Skipped: +(\d+)$/gm;
  const last = [...stripVTControlCharacters(output).matchAll(pattern)].at(-1);
  if (last === undefined) return undefined;
  const [total, passed, skipped] = last.slice(1).map(Number);
  return { total, passed, skipped };
}

function problemOf({ summary, code, signal, timedOut, limitMs }) {
  if (timedOut) return `did not end within ${limitMs / 1000} s`;
  const end = signal === null ? `exit status ${code}` : `signal ${signal}`;
  if (summary === undefined) return `ended without a summary (${end})`;
  if (summary.total === 0 && summary.skipped === 0) return "ran no test";
  if (summary.passed < summary.total) return `${summary.total - summary.passed} of ${summary.total} failed`;
  if (summary.skipped > 0) return `${summary.skipped} skipped`;
  if (code !== 0) return `every test passed, but it ended with ${end}`;
  return undefined;
}

/**
 * Runs the file for at most `limitMs` milliseconds. `problem` is undefined when every test of it ran and passed;
 * otherwise at least one counts as failed.
 */
export async function runTestFile(file, limitMs) {
  const { env, own } = environment();
  const started = Date.now();
  const child = spawn(process.execPath, ["--enable-source-maps", file], {
    cwd: root,
    env,
    detached: true,
    stdio: ["ignore", "pipe", "pipe"],
  });
  running.add(child.pid);
  let stdout = "";
  let output = "";
  const keep = (chunk) => {
    output += chunk;
    if (output.length > mostOutput)
      output = `[the beginning is left out]\n${output.slice(mostOutput / 2 - output.length)}`;
  };
  child.stdout.setEncoding("utf8").on("data", (chunk) => {
    stdout = (stdout + chunk).slice(-mostOutput);
    keep(chunk);
  });
  child.stderr.setEncoding("utf8").on("data", keep);

  let timedOut = false;
  const limit = setTimeout(() => {
    timedOut = true;
    killGroup(child.pid);
  }, limitMs);
  const [code, signal] = await new Promise((resolve, reject) => {
    let ended;
    child.once("error", reject);
    child.once("exit", (...how) => {
      ended = how;
      clearTimeout(limit);
      killGroup(child.pid); // what it left behind ends with it
      setTimeout(() => resolve(ended), lastWordsMs).unref(); // a process outside the group may hold the pipes open
    });
    child.once("close", () => resolve(ended));
  });
  child.stdout.destroy();
  child.stderr.destroy();
  running.delete(child.pid);
  rmSync(own, { recursive: true, force: true, maxRetries: 5 });

  const summary = summaryIn(stdout);
  const problem = problemOf({ summary, code, signal, timedOut, limitMs });
  const passed = summary?.passed ?? 0;
  const failed = Math.max((summary?.total ?? 0) - passed, problem === undefined ? 0 : 1);
  return { passed, failed, problem, output, took: Date.now() - started };
}
