import { mkdir, readdir, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { Level } from "level";
import { beginChain, type Database, put } from "./database.js";
import { databaseIn, fileError, makeDirectory } from "./directory.js";
import { StoreError } from "./errors.js";
import { checkKey } from "./keys.js";
import type { Entry } from "./port.js";
import { beginWitness, syncDirectory } from "./witness.js";

const BATCH_BYTES = 1024 * 1024;

/**
 * Makes a store in a directory from the entries of a backup; its commits count on from `commits`. Rejects with
 * `STORE_NOT_EMPTY` where there is a store already. Nothing is there until everything is: the database is built aside
 * and moved in place at the end, so a restore that was interrupted is simply begun again.
 */
export async function restoreStore(
  dir: string,
  commits: number,
  entries: AsyncIterable<Entry> | Iterable<Entry>,
): Promise<void> {
  const database = databaseIn(dir);
  const aside = join(dir, "db.restoring");
  try {
    await makeDirectory(dir);
    const names = await readdir(dir);
    if (names.includes("db") && (await readdir(database)).length > 0) {
      throw new StoreError("STORE_NOT_EMPTY", `There is a store in ${dir}; restore into an empty directory.`);
    }
    await rm(aside, { recursive: true, force: true });
    await mkdir(aside, { mode: 0o700 });
  } catch (thrown) {
    throw fileError(dir, thrown);
  }
  const db: Database = new Level<string, Buffer>(aside, { keyEncoding: "utf8", valueEncoding: "buffer" });
  try {
    await db.open();
    await fill(db, entries);
    await beginChain(db, commits);
  } catch (thrown) {
    throw thrown instanceof StoreError
      ? thrown
      : new StoreError("STORE_IO", "The backup could not be restored.", { cause: thrown });
  } finally {
    await db.close();
  }
  try {
    beginWitness(dir);
    await rm(database, { recursive: true, force: true });
    await rename(aside, database);
    syncDirectory(dir);
  } catch (thrown) {
    throw fileError(dir, thrown);
  }
}

async function fill(db: Database, entries: AsyncIterable<Entry> | Iterable<Entry>): Promise<void> {
  let operations: ReturnType<typeof put>[] = [];
  let bytes = 0;
  const write = async () => {
    // Each synced: a log that LevelDB has left behind is not synced by a later write.
    if (operations.length > 0) await db.batch(operations, { sync: true });
    operations = [];
    bytes = 0;
  };
  for await (const { key, value } of entries) {
    checkKey(key);
    operations.push(put(key, value));
    bytes += key.length + value.length;
    if (bytes >= BATCH_BYTES) await write();
  }
  await write();
}
