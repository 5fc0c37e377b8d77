import { spawn } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { acceptDamage, inspectStore } from "../../server/store/inspect.js";
import { type LevelStoreOptions, openLevelStore } from "../../server/store/level.js";
import type { Damage, Store } from "../../server/store/port.js";
import { restoreStore } from "../../server/store/restore.js";
import { change, contents, contract, ok, rejects, text } from "./contract.js";

/** Removed at the end of the process. In memory where that is to be had: hundreds of stores are synced here. */
const root = mkdtempSync(join(existsSync("/dev/shm") ? "/dev/shm" : tmpdir(), "clankie-store-"));
process.on("exit", () => rmSync(root, { recursive: true, force: true }));
let places = 0;
/** A directory that is not there yet. */
function freshDir(): string {
  places += 1;
  return join(root, String(places));
}

/** What is on the disk of a store at this moment, as a crash would leave it. LOCK is not touched: closing it unlocks. */
function copyStore(from: string, to: string): void {
  mkdirSync(join(to, "db"), { recursive: true });
  for (const sub of ["", "db"]) {
    for (const entry of readdirSync(join(from, sub), { withFileTypes: true })) {
      if (entry.isFile() && entry.name !== "LOCK") copyFileSync(join(from, sub, entry.name), join(to, sub, entry.name));
    }
  }
}

contract("level", async () => {
  let dir = freshDir();
  return {
    open: () => openLevelStore(dir, { window: 20 }),
    again: async (store: Store) => {
      const next = freshDir();
      copyStore(dir, next);
      await store.close();
      dir = next;
      return openLevelStore(dir, { window: 20 });
    },
    remove: async () => {},
  };
});

const test = suite("level store");

/** The conversation heads that a report names. */
const heads = (damage: readonly Damage[]) =>
  [...new Set(damage.flatMap(({ key }) => (key === undefined ? [] : [key])))].sort();

/** A directory as a crash left it: `groups` synced groups, each of one commit on one of five heads. */
async function crashed(groups: number, options: LevelStoreOptions = {}): Promise<string> {
  const dir = freshDir();
  const store = await openLevelStore(dir, options);
  for (let index = 0; index < groups; index += 1) {
    const head = `c/${index % 5}`;
    const before = index < 5 ? null : `value ${index - 5}`;
    ok(
      await store.commit(
        change(head, before, `value ${index}`, { [`e/${String(index).padStart(4, "0")}`]: "event".repeat(20) }),
      ),
    );
  }
  const left = freshDir();
  copyStore(dir, left);
  await store.close();
  return left;
}

/** The log that LevelDB would replay. */
function logOf(dir: string): string {
  const name = readdirSync(join(dir, "db")).find((file) => file.endsWith(".log"));
  return join(dir, "db", name ?? "none");
}

async function opened<T>(dir: string, use: (store: Store) => Promise<T>, options: LevelStoreOptions = {}): Promise<T> {
  const store = await openLevelStore(dir, options);
  try {
    return await use(store);
  } finally {
    await store.close();
  }
}

test("[8] a crash that lost nothing is no damage", async () => {
  const dir = await crashed(30);
  assert.equal(await opened(dir, async (store) => store.status().report), { commits: 30, damage: [] });
});

test("[8.7] a cut log is reported with the conversations it touches, and never silent", async () => {
  const dir = await crashed(30);
  const size = statSync(logOf(dir)).size;
  for (let keep = size - 1; keep > 0; keep -= 97) {
    const cut = freshDir();
    copyStore(dir, cut);
    truncateSync(logOf(cut), keep);
    const { damage, commits } = await opened(cut, async (store) => {
      const present = await store.range("e/", { limit: 100 });
      const { report } = store.status();
      // Each lost commit names its head, and the count goes on behind what was acknowledged.
      const lost = Array.from({ length: 30 }, (_, index) => index).filter(
        (index) => !present.some(({ key }) => Number(key.slice(2)) === index),
      );
      assert.equal(heads(report.damage), [...new Set(lost.map((index) => `c/${index % 5}`))].sort());
      assert.ok(report.damage.some(({ kind }) => kind === "commits_missing"));
      assert.is(ok(await store.commit(change("d/1", null, "new"))), 31);
      return report;
    });
    assert.is(commits, 30);
    // It stays reported until an operator accepts it, whatever was committed since.
    assert.equal(heads(await opened(cut, async (store) => store.status().report.damage)), heads(damage));
    if (keep < size - 1) continue;
    assert.equal(heads(await acceptDamage(cut)), heads(damage));
    assert.equal(await opened(cut, async (store) => store.status().report), { commits: 31, damage: [] });
  }
});

test("[8.7] a flipped byte in the log is reported or harms nothing, wherever it is", async () => {
  const dir = await crashed(60);
  const good = freshDir();
  copyStore(dir, good);
  const whole = await opened(good, (store) => contents(store));
  const log = readFileSync(logOf(dir));
  let reported = 0;
  let positions = 0;
  for (let at = 0; at < log.length; at += 61) {
    positions += 1;
    const bad = freshDir();
    copyStore(dir, bad);
    const flipped = Buffer.from(log);
    flipped[at] = (flipped[at] ?? 0) ^ (1 << (at % 8));
    writeFileSync(logOf(bad), flipped);
    const { report, found } = await opened(bad, async (store) => ({
      report: store.status().report,
      found: await contents(store),
    }));
    if (report.damage.length > 0) reported += 1;
    else assert.equal(found, whole, `byte ${at}`);
    // What differs is laid to its conversation.
    const blamed = new Set(heads(report.damage));
    for (const [key, value] of Object.entries(whole)) {
      const head = key.startsWith("e/") ? `c/${Number(key.slice(2)) % 5}` : key;
      if (found[key] !== value) assert.ok(blamed.has(head), `byte ${at}: ${key} is not what was committed`);
    }
    rmSync(bad, { recursive: true });
  }
  assert.ok(positions > 200 && reported > positions * 0.9, `${reported} of ${positions} reported`);
});

test("[8] a flipped byte in a table is found when it is read, and spoils no other key", async () => {
  const dir = await crashed(40);
  // Opening moves the log into a table.
  await opened(dir, async () => {});
  const table = readdirSync(join(dir, "db")).find((name) => name.endsWith(".ldb")) ?? "none";
  const path = join(dir, "db", table);
  const good = readFileSync(path);
  let found = 0;
  for (let at = 0; at < good.length; at += 211) {
    const bad = freshDir();
    copyStore(dir, bad);
    const flipped = Buffer.from(good);
    flipped[at] = (flipped[at] ?? 0) ^ 0x10;
    writeFileSync(join(bad, "db", table), flipped);
    const inspection = await inspectStore(bad);
    if (inspection.found === "unreadable" || (inspection.found === "store" && inspection.report.damage.length > 0))
      found += 1;
    const store = await openLevelStore(bad).catch((error: unknown) => error);
    if (store instanceof Error) continue;
    const open = store as Store;
    for (let index = 0; index < 40; index += 1) {
      const key = `e/${String(index).padStart(4, "0")}`;
      const value = await open.get(key).catch(() => "refused");
      if (value instanceof Uint8Array)
        assert.is(text(value), "event".repeat(20), `byte ${at}: ${key} is never another value`);
    }
    await open.close();
  }
  assert.ok(found > 0);
});

test("[8] a lost witness is reported, and the rest goes on", async () => {
  const dir = await crashed(10);
  rmSync(join(dir, "witness.log"));
  const { damage, commits } = await opened(dir, async (store) => store.status().report);
  assert.equal([damage.map(({ kind }) => kind), commits], [["witness_missing"], 10]);
});

test("[8] a torn or damaged line of the witness harms nothing", async () => {
  const dir = await crashed(10);
  const path = join(dir, "witness.log");
  const whole = readFileSync(path, "latin1");
  for (const broken of [
    whole.slice(0, -5),
    whole.slice(0, 40),
    "",
    whole.replace("c/3", "c/4"),
    whole.replaceAll("\n", "\0"),
  ]) {
    const copy = freshDir();
    copyStore(dir, copy);
    writeFileSync(join(copy, "witness.log"), broken);
    for (const _ of [1, 2])
      assert.equal(await opened(copy, async (store) => store.status().report), { commits: 10, damage: [] });
  }
});

test("[8.7] a database that was put back to an earlier copy is noticed, even after it went on", async () => {
  const early = await crashed(20);
  const dir = freshDir();
  copyStore(early, dir);
  await opened(dir, async (store) => ok(await store.commit(change("c/0", "value 15", "later"))));
  rmSync(join(dir, "db"), { recursive: true });
  mkdirSync(join(dir, "db"));
  for (const name of readdirSync(join(early, "db")))
    if (name !== "LOCK") copyFileSync(join(early, "db", name), join(dir, "db", name));
  const { damage } = await opened(dir, async (store) => store.status().report);
  assert.equal(heads(damage), ["c/0"]);
});

test("[8] a database that lost CURRENT is refused and not made anew", async () => {
  const dir = await crashed(10);
  rmSync(join(dir, "db", "CURRENT"));
  const before = readdirSync(join(dir, "db")).sort();
  await rejects("STORE_DAMAGED", () => openLevelStore(dir));
  assert.equal(readdirSync(join(dir, "db")).sort(), before);
  assert.is((await inspectStore(dir)).found, "unreadable");
});

test("the chain is verified over more commits than its window, with the witness turning", async () => {
  const options = { window: 16, witnessBytes: 2000 };
  const dir = await crashed(200, options);
  assert.ok(existsSync(join(dir, "witness.old.log")));
  assert.ok(statSync(join(dir, "witness.log")).size < 4000);
  for (const _ of [1, 2])
    assert.equal(await opened(dir, async (store) => store.status().report, options), { commits: 200, damage: [] });
  await opened(
    dir,
    async (store) => {
      const outcomes = await Promise.all(
        Array.from({ length: 100 }, (_, index) => store.commit(change(`d/${index}`, null, "v"))),
      );
      assert.is(Math.max(...outcomes.map(ok)), 300);
    },
    options,
  );
  assert.equal(await opened(dir, async (store) => store.status().report, options), { commits: 300, damage: [] });
});

test("a head that another commit writes or deletes is no damage", async () => {
  const dir = freshDir();
  await opened(dir, async (store) => {
    ok(await store.commit(change("p/1", null, "a")));
    ok(await store.commit(change("c/1", null, "a", { "p/1": "b" })));
    ok(await store.commit(change("p/2", null, "a")));
    const together = [
      store.commit(change("p/3", null, "a")),
      store.commit(change("c/1", "a", "b", { "p/2": null, "p/3": null })),
    ];
    for (const outcome of await Promise.all(together)) ok(outcome);
  });
  assert.equal(await opened(dir, async (store) => store.status().report.damage), []);
});

test("[2] a second opener of the directory is told so and harms nothing", async () => {
  const dir = freshDir();
  const store = await openLevelStore(dir);
  ok(await store.commit(change("c", null, "v")));
  await rejects("STORE_LOCKED", () => openLevelStore(dir));
  const link = freshDir();
  symlinkSync(root, link);
  await rejects("STORE_LOCKED", () => openLevelStore(join(link, dir.slice(root.length + 1))));
  assert.equal(await inspectStore(dir), { found: "locked" });

  // In another process, which also shows that the attempts above have not let go of the lock.
  const level = new URL("../../server/store/level.js", import.meta.url).href;
  const inspect = new URL("../../server/store/inspect.js", import.meta.url).href;
  const script = `
    const { openLevelStore } = await import(${JSON.stringify(level)});
    const { inspectStore } = await import(${JSON.stringify(inspect)});
    const code = await openLevelStore(${JSON.stringify(dir)}).then(() => 'opened', (error) => error.code);
    console.log(code, (await inspectStore(${JSON.stringify(dir)})).found);
  `;
  const child = spawn(process.execPath, ["--input-type=module", "-e", script], {
    cwd: fileURLToPath(new URL(".", import.meta.url)),
  });
  let out = "";
  child.stdout.on("data", (chunk: Buffer) => {
    out += chunk.toString();
  });
  await once(child, "close");
  assert.is(out, "STORE_LOCKED locked\n");
  ok(await store.commit(change("c", "v", "w")));
  await store.close();
  assert.is(text(await opened(dir, (next) => next.get("c"))), "w");
});

test("[2] a directory that is not ours, or cannot be made, is refused with the reason", async () => {
  const dir = freshDir();
  mkdirSync(dir);
  const link = freshDir();
  symlinkSync(dir, link);
  await rejects("STORE_DIRECTORY", () => openLevelStore(link));
  const nowhere = freshDir();
  symlinkSync(join(root, "nowhere"), nowhere);
  await rejects("STORE_DIRECTORY", () => openLevelStore(nowhere));
  const file = freshDir();
  writeFileSync(file, "");
  await rejects("STORE_DIRECTORY", () => openLevelStore(file));
  await rejects("STORE_UNWRITABLE", () => openLevelStore(join(file, "below")));
  symlinkSync(dir, join(dir, "db"));
  await rejects("STORE_DIRECTORY", () => openLevelStore(dir));
  rmSync(join(dir, "db"));
  mkdirSync(join(dir, "db"));
  symlinkSync("/dev/null", join(dir, "db", "LOG"));
  await rejects("STORE_DIRECTORY", () => openLevelStore(dir));
  rmSync(join(dir, "db", "LOG"));
  symlinkSync(file, join(dir, "witness.log"));
  await rejects("STORE_UNWRITABLE", () => openLevelStore(dir));
});

test("[2] nobody else can enter the directories or read the witness", async () => {
  const dir = freshDir();
  mkdirSync(dir);
  chmodSync(dir, 0o777);
  await opened(dir, async (store) => ok(await store.commit(change("c", null, "v"))));
  const mode = (path: string) => statSync(path).mode & 0o777;
  assert.equal([mode(dir), mode(join(dir, "db")), mode(join(dir, "witness.log"))], [0o700, 0o700, 0o600]);
});

test("an inspection changes nothing and finds what an open would", async () => {
  assert.equal(await inspectStore(join(root, "none")), { found: "nothing" });
  const dir = await crashed(20);
  truncateSync(logOf(dir), statSync(logOf(dir)).size - 300);
  const state = () =>
    readdirSync(join(dir, "db"))
      .sort()
      .map((name) => [name, readFileSync(join(dir, "db", name)).toString("base64")]);
  const before = state();
  const inspection = await inspectStore(dir);
  assert.equal(state(), before);
  const report = await opened(dir, async (store) => store.status().report);
  assert.equal(inspection, { found: "store", report });
  assert.ok(heads(report.damage).length > 0);
  const later = await inspectStore(dir);
  assert.equal(later.found === "store" && heads(later.report.damage), heads(report.damage));
});

test("a backup restores into an empty directory, and nowhere else; the count goes on", async () => {
  const dir = await crashed(30);
  const target = freshDir();
  await opened(dir, async (store) => {
    const backup = await store.backup();
    await restoreStore(target, backup.commits, backup.entries);
    await backup.close();
    const before = await contents(store);
    await opened(target, async (restored) => {
      assert.equal(await contents(restored), before);
      assert.equal(restored.status().report, { commits: 30, damage: [] });
      assert.is(ok(await restored.commit(change("c/new", null, "v"))), 31);
    });
    await rejects("STORE_NOT_EMPTY", () => restoreStore(target, 0, []));
  });
  const torn = freshDir();
  const failing = async function* () {
    yield { key: "a", value: new Uint8Array() };
    throw new Error("torn file");
  };
  await rejects("STORE_IO", () => restoreStore(torn, 1, failing()));
  assert.equal(await inspectStore(torn), { found: "nothing" });
  await restoreStore(torn, 1, []);
  assert.is((await opened(torn, async (store) => store.status())).commits, 1);
});

test("[8.6] after a write that failed on the disk nothing is acknowledged until the reopen found everything", async () => {
  // A real failure: the log may not grow beyond a limit; the next log begins anew, as after a disk was freed.
  const dir = freshDir();
  const level = new URL("../../server/store/level.js", import.meta.url).href;
  const script = `
    const { openLevelStore } = await import(${JSON.stringify(level)});
    const store = await openLevelStore(${JSON.stringify(dir)});
    const value = Buffer.alloc(3000, "v");
    const put = (key) => store.commit({ head: key, expected: null, puts: [{ key, value }], deletes: [] });
    const said = [];
    const acknowledged = [];
    for (let round = 0; said.length < 3; round += 1) {
      const keys = [0, 1, 2].map((index) => "c/" + round + "/" + index);
      const outcomes = await Promise.all(keys.map(put));
      for (const [index, { outcome }] of outcomes.entries()) {
        if (outcome !== "ok") said.push(outcome);
        else if (said.length > 0) throw new Error("acknowledged after a failure");
        else acknowledged.push(keys[index]);
      }
    }
    const late = (await put("late")).outcome;
    const read = await store.get("late").catch((error) => error.code);
    const before = store.status().state;
    const again = await store.reopen();
    const lost = [];
    for (const key of acknowledged) if ((await store.get(key)) === null) lost.push(key);
    const next = await put("next");
    console.log(JSON.stringify({
      said, late, read, before, again: again.outcome, damage: again.report?.damage, lost,
      next: next.outcome, counted: next.commit > acknowledged.length, many: acknowledged.length > 10,
    }));
    await store.close();
  `;
  const limited = `trap '' XFSZ; ulimit -f 200; exec "$0" --input-type=module -e "$1"`;
  const child = spawn("bash", ["-c", limited, process.execPath, script]);
  let out = "";
  let faults = "";
  child.stdout.on("data", (chunk: Buffer) => {
    out += chunk.toString();
  });
  child.stderr.on("data", (chunk: Buffer) => {
    faults += chunk.toString();
  });
  await once(child, "close");
  assert.is(faults, "");
  assert.equal(JSON.parse(out), {
    said: ["unknown", "unknown", "unknown"],
    late: "failed",
    read: "STORE_FAULTED",
    before: "faulted",
    again: "ok",
    damage: [],
    lost: [],
    next: "ok",
    counted: true,
    many: true,
  });
  assert.equal((await opened(dir, async (store) => store.status().report)).damage, []);
});

test.run();
