import { spawn } from "node:child_process";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PassThrough, Readable } from "node:stream";
import { fileURLToPath } from "node:url";
import { main } from "../../clients/cli/main.js";

/** The real binary. */
export const BIN = fileURLToPath(new URL("../../clients/cli/bin.js", import.meta.url));

export interface Ran {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface RunOptions {
  readonly env?: Readonly<Record<string, string>>;
  readonly input?: string | Buffer;
  readonly cwd?: string;
}

/** An empty directory of a test's own. */
export const emptyDirectory = (): string => mkdtempSync(join(tmpdir(), "clankie-cli-"));

const home = emptyDirectory();

/** Starts the binary as a process, with nothing of this process's environment but the path. */
export function startProcess(args: readonly string[], { env = {}, input, cwd = home }: RunOptions = {}) {
  const child = spawn(process.execPath, [BIN, ...args], {
    cwd,
    env: { PATH: process.env["PATH"] ?? "", HOME: home, ...env },
    stdio: ["pipe", "pipe", "pipe"],
  });
  child.stdin.on("error", () => {}); // it need not read what it is given
  child.stdin.end(input);
  const stdout = collect(child.stdout);
  const stderr = collect(child.stderr);
  const ended = new Promise<Ran>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code) => resolve({ code, stdout: stdout(), stderr: stderr() }));
  });
  return { child, ended };
}

/** Runs the command line in this process: the same but for the few lines of `bin.ts`. */
export async function runCli(
  args: readonly string[],
  { env = {}, input = "", cwd = home }: RunOptions = {},
): Promise<Ran> {
  const out = new PassThrough();
  const err = new PassThrough();
  const stdout = collect(out);
  const stderr = collect(err);
  const stdin = Readable.from(input.length === 0 ? [] : [Buffer.from(input)]);
  const code = await main(args, { env: { HOME: home, ...env }, cwd: () => cwd, stdin, stdout: out, stderr: err });
  return { code, stdout: stdout(), stderr: stderr() };
}

function collect(stream: Readable): () => string {
  let text = "";
  stream.setEncoding("utf8").on("data", (chunk: string) => {
    text += chunk;
  });
  return () => text;
}
