import { randomBytes } from "node:crypto";
import { constants } from "node:fs";
import { open, readFile, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { makeDirectory } from "./store/directory.js";
import { codeOf, StoreError } from "./store/errors.js";

/** What the service leaves in its data directory beside the store. Contract section 9. */
export interface DataDirectory {
  readonly path: string;
  readonly store: string;
  /** Notes of the runs that have processes. */
  readonly runs: string;
  /** Where the service is while it runs: `{ url, pid }`. */
  readonly serviceFile: string;
  tokenFile(credentialId: string): string;
}

export const dataDirectoryAt = (path: string): DataDirectory => ({
  path,
  store: join(path, "store"),
  runs: join(path, "runs"),
  serviceFile: join(path, "service.json"),
  tokenFile: (credentialId) => join(path, `${credentialId}.token`),
});

/** Makes the directory for its owner alone. @throws {StoreError} where it is not ours or cannot be written. */
export async function prepareDataDirectory({ path }: DataDirectory): Promise<void> {
  try {
    await makeDirectory(path);
  } catch (error) {
    if (error instanceof StoreError) throw error;
    throw new StoreError("STORE_UNWRITABLE", `The data directory ${path} cannot be made (${codeOf(error) ?? error}).`, {
      cause: error,
    });
  }
}

/** Writes a file that only its owner reads, all of it or none: a new file, synced, in place of the old one. */
export async function writePrivate(file: string, text: string): Promise<void> {
  const fresh = `${file}.${randomBytes(6).toString("hex")}.new`;
  const handle = await open(fresh, constants.O_CREAT | constants.O_EXCL | constants.O_WRONLY, 0o600);
  try {
    await handle.writeFile(text);
    await handle.sync();
  } finally {
    await handle.close();
  }
  try {
    await rename(fresh, file);
  } catch (error) {
    await rm(fresh, { force: true });
    throw error;
  }
}

/** The token in a file, or null where there is no such file. A link is not followed. */
export async function readToken(file: string): Promise<string | null> {
  try {
    return (await readFile(file, { encoding: "utf8", flag: constants.O_RDONLY | constants.O_NOFOLLOW })).trim();
  } catch (error) {
    if (codeOf(error) === "ENOENT") return null;
    throw error;
  }
}
