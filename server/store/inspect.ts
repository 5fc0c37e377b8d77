import { constants } from "node:fs";
import { access, copyFile, lstat, mkdir, mkdtemp, readdir, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Level } from "level";
import { DAMAGE_KEY } from "./chain.js";
import {
  type Database,
  del,
  entriesOf,
  isEmpty,
  isOpenHere,
  openDatabase,
  readError,
  verifyDatabase,
} from "./database.js";
import { databaseIn, fileError, findDatabase } from "./directory.js";
import { codeOf, StoreError } from "./errors.js";
import { openLevelStore } from "./level.js";
import type { Damage, StoreReport } from "./port.js";
import { readWitness } from "./witness.js";

/** What an inspection of a store directory found. */
export type Inspection =
  /** There is no store in the directory. */
  | { readonly found: "nothing" }
  /** A running service has it; ask that one. */
  | { readonly found: "locked" }
  /** It does not open at all. */
  | { readonly found: "unreadable"; readonly error: Error }
  | { readonly found: "store"; readonly report: StoreReport };

/**
 * Looks into the store of a directory, reading every value, and changes nothing there. Opening LevelDB rewrites its log
 * and with it what shows a damage, so a copy in a private temporary directory is opened instead.
 */
export async function inspectStore(dir: string): Promise<Inspection> {
  const database = databaseIn(dir);
  try {
    if (!(await lstat(dir)).isDirectory() || (await findDatabase(database)) === "nothing") {
      return (readWitness(dir) ?? []).length === 0 ? { found: "nothing" } : lost(dir);
    }
  } catch (thrown) {
    if (codeOf(thrown) === "ENOENT") return { found: "nothing" };
    return { found: "unreadable", error: fileError(dir, thrown) };
  }
  if (await isOpenHere(dir)) return { found: "locked" };
  const scratch = await mkdtemp(join(tmpdir(), "clankie-inspect-"));
  try {
    if (!(await copyUnlocked(dir, scratch))) return { found: "locked" };
    const db = await openDatabase(scratch);
    try {
      const { tip, report } = await verifyDatabase(db, scratch, 0);
      return { found: "store", report: { commits: tip.commit, damage: [...report, ...(await readAll(db, report))] } };
    } finally {
      await db.close();
    }
  } catch (thrown) {
    return { found: "unreadable", error: thrown instanceof StoreError ? thrown : fileError(dir, thrown) };
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}

function lost(dir: string): Inspection {
  const message = `The witness in ${dir} names commits and there is no database.`;
  return { found: "unreadable", error: new StoreError("STORE_DAMAGED", message) };
}

/** Every value that does not match its digest and is not in the report already. */
async function readAll(db: Database, report: readonly Damage[]): Promise<readonly Damage[]> {
  const known = new Set(report.map(({ key }) => key));
  const found: Damage[] = [];
  const detail = "The stored bytes do not match their digest.";
  try {
    for await (const _ of entriesOf(db, undefined, (key) => {
      if (!known.has(key)) found.push({ kind: "value_damaged", detail, key });
    }));
  } catch (thrown) {
    if (!(thrown instanceof StoreError && thrown.code === "STORE_DAMAGED")) throw thrown;
    found.push({ kind: "value_damaged", detail: "A part of the database cannot be read." });
  }
  return found;
}

/** Copies database and witness while holding the database's lock; false where somebody else holds it. */
async function copyUnlocked(dir: string, scratch: string): Promise<boolean> {
  const lock = join(databaseIn(dir), "LOCK");
  // LevelDB locks the file that LOCK leads to, so an empty database over a link takes the lock and reads nothing.
  const probe = join(scratch, "probe");
  await mkdir(probe, { mode: 0o700 });
  const held = await access(lock, constants.R_OK | constants.W_OK).then(
    () => true,
    (thrown: unknown) => {
      if (codeOf(thrown) === "ENOENT") return false;
      throw thrown;
    },
  );
  if (held) await symlink(lock, join(probe, "LOCK"));
  const holder = new Level(probe);
  try {
    await holder.open();
  } catch (thrown) {
    const cause = thrown instanceof Error ? thrown.cause : undefined;
    if (codeOf(cause) === "LEVEL_LOCKED") return false;
    throw readError(cause);
  }
  try {
    await mkdir(databaseIn(scratch), { mode: 0o700 });
    for (const from of [dir, databaseIn(dir)]) {
      for (const entry of await readdir(from, { withFileTypes: true })) {
        // Opening and closing LOCK would let go of a lock of this process.
        if (!entry.isFile() || entry.name === "LOCK") continue;
        if (from === dir && !entry.name.startsWith("witness.")) continue;
        const to = from === dir ? scratch : databaseIn(scratch);
        await copyFile(join(from, entry.name), join(to, entry.name), constants.COPYFILE_FICLONE);
      }
    }
    return true;
  } finally {
    await holder.close();
  }
}

/**
 * Forgets the damage that the store of a directory has found, once an operator has decided to live with what is left:
 * the next open reports only what it finds anew. Not while a service has the directory (`STORE_LOCKED`).
 */
export async function acceptDamage(dir: string): Promise<readonly Damage[]> {
  // Opening settles what was not seen yet, so that exactly what is returned is accepted.
  const store = await openLevelStore(dir);
  const { damage } = store.status().report;
  await store.close();
  const db = await openDatabase(dir);
  try {
    if (!(await isEmpty(db))) await db.batch([del(DAMAGE_KEY)], { sync: true });
  } finally {
    await db.close();
  }
  return damage;
}
