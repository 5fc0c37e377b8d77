import { mkdtemp, readFile, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { type CommandOptions, type CommandProcess, startCommand } from "../../server/runs/command.js";

const patienceMs = 20_000;

/** A temporary directory, and what a command did there. */
class World {
  readonly lines: string[] = [];
  readonly batches: (readonly string[])[] = [];
  stderr = "";
  #started: CommandProcess | undefined;

  private constructor(readonly root: string) {}

  static async make(): Promise<World> {
    return new World(await realpath(await mkdtemp(join(tmpdir(), "clankie-command-"))));
  }

  start(command: readonly [string, ...string[]], options: Partial<CommandOptions> = {}): CommandProcess {
    this.#started = startCommand({
      command,
      cwd: this.root,
      env: { PATH: process.env["PATH"] ?? "/usr/bin:/bin" },
      message: "",
      timeLimitMs: patienceMs,
      killGraceMs: patienceMs,
      onLines: async (lines) => this.take(lines),
      onStderr: (text) => {
        this.stderr += text;
      },
      ...options,
    });
    return this.#started;
  }

  sh(script: string, options: Partial<CommandOptions> = {}): CommandProcess {
    return this.start(["sh", "-c", script], options);
  }

  node(script: string, options: Partial<CommandOptions> = {}): CommandProcess {
    return this.start([process.execPath, "-e", script], options);
  }

  take(lines: readonly string[]): void {
    this.batches.push(lines);
    this.lines.push(...lines);
  }

  /** The pids that a script has written to a file of this name, one a line; `count` of them. */
  async pids(name: string, count: number): Promise<readonly number[]> {
    let pids: readonly number[] = [];
    await becomesTrue(`${count} pids in ${name}`, async () => {
      const text = await readFile(join(this.root, name), "utf8").catch(() => "");
      pids = text
        .split("\n")
        .slice(0, -1)
        .map((line) => Number(line));
      return pids.length === count;
    });
    return pids;
  }

  async remove(): Promise<void> {
    this.#started?.cancel();
    await this.#started?.finished.catch(() => {});
    await rm(this.root, { recursive: true, force: true });
  }
}

async function becomesTrue(what: string, condition: () => boolean | Promise<boolean>): Promise<void> {
  const deadline = Date.now() + patienceMs;
  while (!(await condition())) {
    if (Date.now() > deadline) throw new Error(`never became true: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

/** Whether a process runs; one that has ended and was not waited for does not. */
async function runs(pid: number): Promise<boolean> {
  try {
    process.kill(pid, 0);
  } catch {
    return false;
  }
  const stat = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => undefined);
  return stat === undefined ? process.platform !== "linux" : !/\) [ZX] /.test(stat);
}

const test = suite<{ world: World }>("command");

test.before.each(async (context) => {
  context.world = await World.make();
});
test.after.each(async (context) => {
  await context.world.remove();
});

test("[10] a command runs without a shell, in its directory, with its environment only and the message on stdin", async ({
  world,
}) => {
  const script = `
    let message = "";
    process.stdin.setEncoding("utf8").on("data", (text) => (message += text)).on("end", () => {
      console.log(JSON.stringify({ message, cwd: process.cwd(), env: process.env, args: process.argv.slice(1) }));
    });`;
  const args = ["$HOME; `exit 3`", "--flag", "", "'\"*"];
  const command = world.start([process.execPath, "-e", script, "--", ...args], {
    env: { CLANKIE_RUN: "r1" },
    message: "/quit --now\n<b>é😀</b>",
  });
  assert.equal(await command.finished, { kind: "exited", code: 0 });
  assert.equal(JSON.parse(world.lines.join("\n")), {
    message: "/quit --now\n<b>é😀</b>",
    cwd: world.root,
    env: { CLANKIE_RUN: "r1" },
    args,
  });
});

test("[10] the exit status is told, and the signal of a crash", async ({ world }) => {
  assert.equal(await world.sh("exit 3").finished, { kind: "exited", code: 3 });
  assert.equal(await world.sh("kill -SEGV $$").finished, { kind: "signalled", signal: "SIGSEGV" });
  assert.equal(await world.sh("kill -KILL $$").finished, { kind: "signalled", signal: "SIGKILL" });
});

test("[10] a command that cannot be started says why", async ({ world }) => {
  await writeFile(join(world.root, "text"), "no program", { mode: 0o644 });
  const ended = async (command: readonly [string, ...string[]], options: Partial<CommandOptions> = {}) =>
    world.start(command, options).finished;
  assert.equal(await ended(["not-there"]), { kind: "not_started", code: "ENOENT" });
  assert.equal(await ended(["./text"]), { kind: "not_started", code: "EACCES" });
  assert.equal(await ended(["sh"], { cwd: join(world.root, "gone") }), { kind: "not_started", code: "ENOENT" });
  assert.equal(await ended(["sh", "x".repeat(4_000_000)]), { kind: "not_started", code: "E2BIG" });
  assert.equal(await ended(["sh", "a\0b"]), { kind: "not_started", code: "ERR_INVALID_ARG_VALUE" });
  assert.equal(await ended(["a\0b"]), { kind: "not_started", code: "ERR_INVALID_ARG_VALUE" });
  assert.equal(await ended([""]), { kind: "not_started", code: "ERR_INVALID_ARG_VALUE" });
  assert.equal(await ended(["sh"], { env: { A: "a\0b" } }), { kind: "not_started", code: "ERR_INVALID_ARG_VALUE" });
});

test("[10] cancelling what could not be started changes nothing", async ({ world }) => {
  const command = world.start(["not-there"]);
  command.cancel();
  assert.equal(await command.finished, { kind: "not_started", code: "ENOENT" });
});

test("[10] lines come as they are printed, those that came together in one call", async ({ world }) => {
  const command = world.sh(
    'echo one; echo two; while [ ! -e go ]; do sleep 0.01; done; printf "three\\r\\nfour"; echo err >&2',
  );
  await becomesTrue("two lines have come", () => world.lines.length === 2);
  await writeFile(join(world.root, "go"), "");
  assert.equal(await command.finished, { kind: "exited", code: 0 });
  assert.equal(world.lines, ["one", "two", "three", "four"]);
  assert.is(world.stderr, "err\n");
});

test("[10] binary output becomes well-formed lines", async ({ world }) => {
  const script = `process.stdout.write(Buffer.from(Array.from({ length: 65_536 }, (_, i) => (i * 7 + (i >> 8)) & 255)))`;
  assert.equal(await world.node(script).finished, { kind: "exited", code: 0 });
  const text = world.lines.join("\n");
  assert.ok(text.length > 30_000);
  assert.is(Buffer.from(text).toString(), text);
});

test("[10] a message that is never read does no harm", async ({ world }) => {
  const message = "x".repeat(16_384);
  assert.equal(await world.sh("exec <&-; echo done", { message }).finished, { kind: "exited", code: 0 });
  assert.equal(await world.sh("exit 5", { message: "x".repeat(4_000_000) }).finished, { kind: "exited", code: 5 });
  assert.equal(world.lines, ["done"]);
});

test("[10] a command that hangs is ended at its time limit", async ({ world }) => {
  const command = world.sh("echo $$ >> pid; echo started; sleep 1000", { timeLimitMs: 2_000 });
  assert.equal(await command.finished, { kind: "timed_out" });
  const [pid = 0] = await world.pids("pid", 1);
  assert.not(await runs(pid));
  assert.equal(world.lines, ["started"], "what it said before counts");
});

test("[10] a time limit beyond what a timer takes is no limit of nothing", async ({ world }) => {
  assert.equal(await world.sh("sleep 0.05", { timeLimitMs: Number.POSITIVE_INFINITY }).finished, {
    kind: "exited",
    code: 0,
  });
});

test("[10] cancelling ends the command and its children", async ({ world }) => {
  const command = world.sh("sleep 1000 & echo $! >> pids; sh -c 'echo $$ >> pids; sleep 1000' & wait");
  const pids = await world.pids("pids", 2);
  command.cancel();
  command.cancel();
  assert.equal(await command.finished, { kind: "cancelled" });
  for (const pid of pids) assert.not(await runs(pid));
});

test("[10] a command that is cancelled at once never gets far", async ({ world }) => {
  const command = world.sh("sleep 1000; echo far");
  command.cancel();
  assert.equal(await command.finished, { kind: "cancelled" });
  assert.equal(world.lines, []);
  command.cancel();
});

test("[10] a command may use the grace after SIGTERM, and is cancelled all the same", async ({ world }) => {
  const command = world.sh("trap 'echo bye; exit 0' TERM; echo ready; while :; do sleep 0.01; done");
  await becomesTrue("it is ready", () => world.lines.includes("ready"));
  command.cancel();
  assert.equal(await command.finished, { kind: "cancelled" });
  assert.equal(world.lines, ["ready", "bye"]);
});

test("[10] what ignores SIGTERM is killed after the grace", async ({ world }) => {
  const script = "trap '' TERM; (echo ready; while :; do sleep 0.05; done) & echo $$ >> pids; echo $! >> pids; wait";
  const command = world.sh(script, { killGraceMs: 100 });
  const pids = await world.pids("pids", 2);
  command.cancel();
  assert.equal(await command.finished, { kind: "cancelled" });
  for (const pid of pids) assert.not(await runs(pid));
});

test("[10] a stopped process is ended too", async ({ world }) => {
  const command = world.sh("echo $$ >> pids; kill -STOP $$; sleep 1000", { killGraceMs: 100 });
  const [pid = 0] = await world.pids("pids", 1);
  command.cancel();
  assert.equal(await command.finished, { kind: "cancelled" });
  assert.not(await runs(pid));
});

test("[10] children left behind with the output open end with the run, which does not wait for them", async ({
  world,
}) => {
  const command = world.sh(
    "sleep 1000 & echo $! >> pids; (while :; do echo more; sleep 0.01; done) & echo $! >> pids; echo last",
  );
  assert.equal(await command.finished, { kind: "exited", code: 0 });
  for (const pid of await world.pids("pids", 2)) assert.not(await runs(pid));
  assert.ok(world.lines.includes("last"));
});

test("[10] children left behind with the output closed end with the run, also those that ignore SIGTERM", async ({
  world,
}) => {
  const child = "trap '' TERM; echo $$ >> pids; while :; do sleep 0.05; done";
  const script = `sh -c "${child.replaceAll("$", "\\$")}" > /dev/null 2>&1 < /dev/null & while [ ! -e pids ]; do sleep 0.01; done; exit 4`;
  assert.equal(await world.sh(script, { killGraceMs: 100 }).finished, { kind: "exited", code: 4 });
  const [pid = 0] = await world.pids("pids", 1);
  assert.not(await runs(pid));
});

test("[10] a process that left the group keeps the run from nothing, though it holds the output open", async ({
  world,
}) => {
  const command = world.sh("setsid sh -c 'echo $$ >> pids; exec yes' & while [ ! -s pids ]; do sleep 0.01; done");
  const [pid = 0] = await world.pids("pids", 1);
  try {
    assert.equal(await command.finished, { kind: "exited", code: 0 });
  } finally {
    if (await runs(pid)) process.kill(pid, "SIGKILL"); // no one else does
  }
});

test("[10] a flood waits for a slow consumer, in bounded memory, and loses nothing", async ({ world }) => {
  let taking = 0;
  let count = 0;
  let last = "";
  let largest = 0;
  const command = world.sh("yes 0123456789abcdef | head -n 200000; echo last", {
    onLines: async (lines) => {
      taking += 1;
      assert.is(taking, 1, "one call at a time");
      await new Promise((resolve) => setTimeout(resolve, 1));
      count += lines.length;
      last = lines.at(-1) ?? "";
      largest = Math.max(largest, lines.length);
      taking -= 1;
    },
  });
  assert.equal(await command.finished, { kind: "exited", code: 0 });
  assert.is(count, 200_001);
  assert.is(last, "last");
  assert.ok(largest <= 16_384, `${largest} lines of 17 bytes in one call`);
});

test("[10] what was printed before the end comes, though its consumer is busy until long after the end", async ({
  world,
}) => {
  const command = world.sh("echo $$ >> pids; echo first; while [ ! -e go ]; do sleep 0.01; done; echo second", {
    onLines: async (lines) => {
      if (lines[0] === "first") {
        await writeFile(join(world.root, "go"), "");
        const [pid = 0] = await world.pids("pids", 1);
        await becomesTrue("it has ended", async () => !(await runs(pid)));
        await new Promise((resolve) => setTimeout(resolve, 500)); // the slowness that this is about
      }
      world.take(lines);
    },
  });
  assert.equal(await command.finished, { kind: "exited", code: 0 });
  assert.equal(world.lines, ["first", "second"]);
});

test("[10] an endless flood before a consumer that takes nothing is held back and ends at once when cancelled", async ({
  world,
}) => {
  let release = (): void => {};
  const held = new Promise<void>((resolve) => {
    release = resolve;
  });
  let bytes = 0;
  const script = `
    let bytes = 0;
    const fs = require("node:fs");
    const line = Buffer.alloc(4096, "x\\n");
    for (;;) { bytes += fs.writeSync(1, line); fs.writeFileSync("bytes", String(bytes)); }`;
  const command = world.node(script, {
    onLines: (lines) => {
      bytes += lines.length * 2;
      return held;
    },
  });
  // It is held back once it has written nothing more for a while; before that the bound is what counts.
  const written = async (): Promise<number> =>
    Number(await readFile(join(world.root, "bytes"), "utf8").catch(() => "0"));
  let before = -1;
  let unchanged = 0;
  await becomesTrue("it writes no more", async () => {
    const now = await written();
    unchanged = now > 0 && now === before ? unchanged + 1 : 0;
    before = now;
    assert.ok(now < 4_000_000, `${now} bytes were written`);
    return unchanged > 20;
  });
  command.cancel();
  release();
  assert.equal(await command.finished, { kind: "cancelled" });
  assert.ok(bytes < 4_000_000);
});

test("[10] one endless line comes in pieces", async ({ world }) => {
  const command = world.sh("head -c 100000 /dev/zero | tr '\\0' x");
  assert.equal(await command.finished, { kind: "exited", code: 0 });
  assert.equal(
    world.lines.map((line) => line.length),
    [16_384, 16_384, 16_384, 16_384, 16_384, 16_384, 1_696],
  );
});

test("[10] when lines cannot be taken the run is ended and says so", async ({ world }) => {
  const command = world.sh("echo $$ >> pids; while :; do echo more; sleep 0.01; done", {
    onLines: async () => {
      throw new Error("storage is gone");
    },
  });
  const error = await command.finished.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  assert.instance(error, Error);
  assert.match(String(error), "storage is gone");
  const [pid = 0] = await world.pids("pids", 1);
  assert.not(await runs(pid));
});

test("[10] nothing is handed over after the end", async ({ world }) => {
  let after = false;
  let late = 0;
  const command = world.sh("(while :; do echo out; echo err >&2; done) & sleep 0.05", {
    onLines: async () => {
      if (after) late += 1;
    },
    onStderr: () => {
      if (after) late += 1;
    },
  });
  await command.finished;
  after = true;
  await new Promise((resolve) => setImmediate(resolve));
  assert.is(late, 0);
});

test("[10] an agent's files have the modes its owner's umask leaves, not the service's own", async ({ world }) => {
  const own = process.umask(0o077);
  try {
    const command = world.sh("umask", { umask: 0o022 });
    assert.is(process.umask(), 0o077);
    await command.finished;
  } finally {
    process.umask(own);
  }
  assert.equal(world.lines, ["0022"]);
});

test.run();
