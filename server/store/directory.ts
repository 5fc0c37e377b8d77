import { constants } from "node:fs";
import { access, chmod, lstat, mkdir, readdir } from "node:fs/promises";
import { dirname, join } from "node:path";
import { codeOf, StoreError } from "./errors.js";

/** Where the database is within a store directory; the witness is beside it. */
export function databaseIn(dir: string): string {
  return join(dir, "db");
}

const UNWRITABLE = new Set([
  "ENOENT",
  "EACCES",
  "EPERM",
  "EROFS",
  "ENOTDIR",
  "EEXIST",
  "ENOSPC",
  "EDQUOT",
  "ELOOP",
  "ENAMETOOLONG",
]);

/** The store's error for a failure of the file system. */
export function fileError(dir: string, thrown: unknown): StoreError {
  if (thrown instanceof StoreError) return thrown;
  const code = codeOf(thrown);
  return code !== undefined && UNWRITABLE.has(code)
    ? new StoreError("STORE_UNWRITABLE", `The data directory ${dir} cannot be written (${code}).`, { cause: thrown })
    : new StoreError("STORE_IO", `The data directory ${dir} cannot be used (${code ?? "unknown"}).`, { cause: thrown });
}

/**
 * Makes the store's directories where they are missing, for their owner alone (0700), and refuses what somebody else
 * could have put there: a link, another user's directory, anything but plain files in the database.
 *
 * LevelDB makes its files with the mode that the umask leaves; the service's main sets umask 077. The 0700 directories
 * keep others out in any case.
 */
export async function prepareDirectory(dir: string): Promise<void> {
  try {
    const database = databaseIn(dir);
    await makeDirectory(dir);
    await makeDirectory(database);
    await plainFiles(database);
    for (const path of [dir, database]) await access(path, constants.W_OK | constants.X_OK);
  } catch (thrown) {
    throw fileError(dir, thrown);
  }
}

/** Makes a directory for its owner alone where there is none; refuses (`STORE_DIRECTORY`) one that is not ours. */
export async function makeDirectory(path: string): Promise<void> {
  const exists = await lstat(path).then(
    () => true,
    (thrown: unknown) => {
      if (codeOf(thrown) === "ENOENT") return false;
      throw thrown;
    },
  );
  if (!exists) await makeWithParents(path);
  await ownDirectory(path);
}

/**
 * Node's own recursive mkdir never ends where a file system that takes no directories answers ENOENT for one whose parent
 * exists (as /proc does); here that is an error.
 */
async function makeWithParents(path: string): Promise<void> {
  try {
    await mkdir(path, { mode: 0o700 });
  } catch (thrown) {
    if (codeOf(thrown) === "EEXIST") return;
    const parent = dirname(path);
    if (codeOf(thrown) !== "ENOENT" || parent === path || (await isThere(parent))) throw thrown;
    await makeWithParents(parent);
    await mkdir(path, { mode: 0o700 });
  }
}

const isThere = (path: string): Promise<boolean> =>
  lstat(path).then(
    () => true,
    () => false,
  );

/** Refuses what is not a directory of ours, and shuts others out of one that is. */
async function ownDirectory(path: string): Promise<void> {
  const found = await lstat(path);
  if (found.isSymbolicLink()) throw refusal(path, "is a link; give the directory itself");
  if (!found.isDirectory()) throw refusal(path, "is not a directory");
  const uid = process.getuid?.();
  if (uid !== undefined && found.uid !== uid) throw refusal(path, "belongs to another user");
  if ((found.mode & 0o077) !== 0) await chmod(path, 0o700);
}

async function plainFiles(database: string): Promise<void> {
  for (const entry of await readdir(database, { withFileTypes: true })) {
    if (!entry.isFile())
      throw refusal(join(database, entry.name), "is not a plain file and was not put there by the store");
  }
}

function refusal(path: string, why: string): StoreError {
  return new StoreError("STORE_DIRECTORY", `${path} ${why}.`);
}

/** What the files of a database say before it is opened. */
export type Found = "nothing" | "database" | "remains";

/**
 * Whether there is a database. `remains`: data without the file that names what is current. LevelDB would take that
 * for an empty directory, make a new database and remove the data.
 */
export async function findDatabase(database: string): Promise<Found> {
  const names = await readdir(database);
  if (names.includes("CURRENT")) return "database";
  return names.some((name) => /\.(ldb|sst|log)$/.test(name)) ? "remains" : "nothing";
}
