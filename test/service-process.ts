import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

/** The program, as `npm run build` made it. */
export const BINARY = fileURLToPath(new URL("../clients/cli/bin.js", import.meta.url));

/** A real `clankie serve`. */
export interface ServiceProcess {
  readonly url: string;
  readonly pid: number;
  /** Everything it has logged so far. */
  log(): string;
  /** SIGTERM, and waits for the end. */
  stop(): Promise<void>;
  /** SIGKILL, and waits for the end. */
  kill(): Promise<void>;
}

/** Starts `clankie serve` on a free port and waits for its first line. */
export async function startServiceProcess(data: string, args: readonly string[] = []): Promise<ServiceProcess> {
  const child = spawn(process.execPath, [BINARY, "serve", "--data", data, "--port", "0", "--json", ...args], {
    stdio: ["ignore", "pipe", "pipe"],
  });
  const { stdout, stderr } = child;
  let log = "";
  stderr.setEncoding("utf8").on("data", (text: string) => {
    log += text;
  });
  const exited = once(child, "close");
  const line = await Promise.race([
    once(createInterface({ input: stdout }), "line").then(([text]) => String(text)),
    exited.then(() => ""),
  ]);
  const { url, pid } = await announced(line).catch(async () => {
    const [code] = (await exited) as [number | null];
    throw new Error(`clankie serve ended with ${code}: ${log}`);
  });
  return {
    url,
    pid,
    log: () => log,
    stop: () => end(child, exited, "SIGTERM"),
    kill: () => end(child, exited, "SIGKILL"),
  };
}

async function announced(line: string): Promise<{ readonly url: string; readonly pid: number }> {
  return JSON.parse(line) as { readonly url: string; readonly pid: number };
}

async function end(child: ChildProcess, exited: Promise<unknown>, signal: NodeJS.Signals): Promise<void> {
  child.kill(signal);
  await exited;
}
