import { lstat, opendir } from "node:fs/promises";
import { join } from "node:path";
import { type Kind, kindOfName } from "./kinds.js";

/** A file or a folder that was found, by its path below the workspace, with `/` between its parts. */
export type Entry =
  | {
      readonly type: "file";
      readonly path: string;
      readonly kind: Kind;
      readonly bytes: number;
      readonly changed: Date;
    }
  | { readonly type: "folder"; readonly path: string };

export type FileEntry = Extract<Entry, { type: "file" }>;

/** What was found, and whether there was more than the bounds let in. */
export interface Found {
  readonly entries: readonly Entry[];
  readonly complete: boolean;
}

/** Enough for a greeting and a choice; a home directory has more, and nobody waits for all of it. */
const MOST_ENTRIES = 2_000;
const MOST_LEVELS = 4;

/** Folders that a package manager or a build fills: nobody asks for a description of what is in them. */
const MADE_BY_MACHINES: readonly string[] = ["node_modules", "__pycache__", "dist", "build", "target", "vendor"];

/**
 * Looks at a directory, level by level: names, sizes, kinds. Hidden entries and what machines made are skipped, symbolic
 * links are not followed, and what cannot be read is left out.
 */
export async function look(directory: string): Promise<Found> {
  const entries: Entry[] = [];
  let complete = true;
  let level: readonly string[] = [""];
  for (let depth = 0; depth < MOST_LEVELS && level.length > 0; depth += 1) {
    const next: string[] = [];
    for (const folder of level) {
      const inside = await entriesOf(directory, folder, MOST_ENTRIES - entries.length);
      complete &&= inside.complete;
      entries.push(...inside.entries);
      next.push(...inside.entries.flatMap((entry) => (entry.type === "folder" ? [entry.path] : [])));
      if (entries.length >= MOST_ENTRIES) return { entries, complete: false };
    }
    level = next;
  }
  return { entries, complete: complete && level.length === 0 };
}

export const filesOf = ({ entries }: Found): readonly FileEntry[] => entries.filter((entry) => entry.type === "file");

async function entriesOf(directory: string, folder: string, most: number): Promise<Found> {
  const names: string[] = [];
  let complete = true;
  try {
    for await (const { name } of await opendir(join(directory, folder))) {
      if (name.startsWith(".") || MADE_BY_MACHINES.includes(name)) continue;
      if (names.length >= most) {
        complete = false;
        break;
      }
      names.push(name);
    }
  } catch {
    complete = false;
  }
  const found = await Promise.all(
    names.sort().map((name) => entryAt(directory, folder === "" ? name : `${folder}/${name}`)),
  );
  return { entries: found.filter((entry) => entry !== undefined), complete };
}

async function entryAt(directory: string, path: string): Promise<Entry | undefined> {
  try {
    const { size, mtime, ...stat } = await lstat(join(directory, path)).then((stats) => ({
      size: stats.size,
      mtime: stats.mtime,
      isFile: stats.isFile(),
      isDirectory: stats.isDirectory(),
    }));
    if (stat.isFile) return { type: "file", path, kind: kindOfName(path), bytes: size, changed: mtime };
    return stat.isDirectory ? { type: "folder", path } : undefined;
  } catch {
    return undefined; // gone, or not ours to see
  }
}
