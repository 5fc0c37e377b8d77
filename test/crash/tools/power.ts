import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { readdir, readFile, stat, truncate } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const source = fileURLToPath(new URL("../../../../test/crash/tools/synced.c", import.meta.url));

/** The environment in which a process notes what it synced, and the power cut that takes the rest. */
export interface Power {
  readonly env: Readonly<Record<string, string>>;
  /** Cuts every file below a directory to the length at its last sync. Returns how many bytes that took. */
  cut(directory: string): Promise<number>;
}

/** Builds the shim with the system's C compiler. */
export function preparePower(directory: string): Power {
  const library = join(directory, "synced.so");
  if (!existsSync(library)) execFileSync("cc", ["-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"]);
  const notes = join(directory, "synced");
  return {
    env: { LD_PRELOAD: library, CLANKIE_SYNCED: notes },
    cut: async (below) => {
      // The notes of every life so far: a file may have been synced in an earlier one.
      const lines = (await readFile(notes, "utf8").catch(() => "")).split("\n").filter((line) => line !== "");
      const synced = new Map<string, { length: number; at: bigint }>();
      for (const line of lines) {
        const [inode = "", length = "0", at = "0"] = line.split(" ");
        synced.set(inode, { length: Number(length), at: BigInt(at) });
      }
      let taken = 0;
      for (const path of await filesBelow(below)) {
        const { ino, size, birthtimeNs } = await stat(path, { bigint: true });
        const note = synced.get(String(ino));
        // An older note is of a file that had this inode before.
        const length = note === undefined || note.at < birthtimeNs ? 0 : Math.min(note.length, Number(size));
        if (length === Number(size)) continue;
        taken += Number(size) - length;
        await truncate(path, length);
      }
      return taken;
    },
  };
}

async function filesBelow(directory: string): Promise<readonly string[]> {
  const entries = await readdir(directory, { recursive: true, withFileTypes: true });
  return entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
}
