import { constants, type Stats } from "node:fs";
import { lstat, open, realpath } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";

/**
 * What the files say, without Git: which repository a canonical directory seems to be in. Git's own answer is compared
 * with it. `top` is the directory with the `.git`, `common` the directory with the objects and refs; both canonical.
 */
export type RepositoryReading =
  | { readonly kind: "none" }
  /** `top/.git` is a directory. */
  | { readonly kind: "main"; readonly top: string; readonly common: string }
  /** `top/.git` is a file made by `git worktree add`; `paired` when the repository's own record points back to it. */
  | { readonly kind: "linked"; readonly top: string; readonly common: string; readonly paired: boolean }
  /** `top/.git` leads to a whole repository elsewhere, which keeps no record of it: submodules, separate directories. */
  | { readonly kind: "apart"; readonly top: string; readonly common: string }
  /** The directory is in a repository's own directory: a bare one, or inside a `.git`. */
  | { readonly kind: "inside"; readonly common: string }
  /** There is a `.git`, but it leads nowhere or cannot be read. */
  | { readonly kind: "broken"; readonly top: string };

/** A `.git` file is one path: what is larger is something else. */
const gitFileLimit = 16_384;

/** Reads the nearest repository at or above `directory`, in the places and the order in which Git looks. */
export async function readRepository(directory: string): Promise<RepositoryReading> {
  for (let at = directory; ; at = dirname(at)) {
    const reading = (await readDotGit(at)) ?? (await readGitDirectory(at));
    if (reading !== undefined) return reading;
    if (dirname(at) === at) return { kind: "none" };
  }
}

async function readDotGit(top: string): Promise<RepositoryReading | undefined> {
  const dotGit = join(top, ".git");
  let stats: Stats;
  try {
    stats = await lstat(dotGit);
  } catch (error) {
    return isAbsence(error) ? undefined : { kind: "broken", top };
  }
  try {
    if (stats.isDirectory()) return { kind: "main", top, common: dotGit };
    if (stats.isSymbolicLink()) return { kind: "apart", top, common: await realpath(dotGit) };
    const text = /^gitdir: (.+?)[\r\n]*$/s.exec(await readSmall(dotGit))?.[1];
    if (text === undefined) return { kind: "broken", top };
    const admin = await realpath(resolve(top, text));
    const common = await readCommon(admin);
    if (common === undefined) return { kind: "apart", top, common: admin };
    if (dirname(admin) !== join(common, "worktrees")) return { kind: "broken", top };
    return { kind: "linked", top, common, paired: await pointsTo(admin, dotGit) };
  } catch {
    return { kind: "broken", top };
  }
}

async function readGitDirectory(at: string): Promise<RepositoryReading | undefined> {
  if (!(await exists(join(at, "HEAD")))) return undefined;
  try {
    const common = await readCommon(at);
    if (common !== undefined) return { kind: "inside", common };
  } catch {
    return undefined;
  }
  const bare = (await exists(join(at, "objects"))) && (await exists(join(at, "refs")));
  return bare ? { kind: "inside", common: at } : undefined;
}

/** The repository a worktree's record belongs to; undefined where `admin` is a whole repository itself. */
async function readCommon(admin: string): Promise<string | undefined> {
  const file = join(admin, "commondir");
  if (!(await exists(file))) return undefined;
  return realpath(resolve(admin, withoutEol(await readSmall(file))));
}

/** Whether the repository's record of a worktree names this `.git` file, seen through symlinks above it. */
async function pointsTo(admin: string, dotGit: string): Promise<boolean> {
  try {
    const named = resolve(admin, withoutEol(await readSmall(join(admin, "gitdir"))));
    return basename(named) === ".git" && join(await realpath(dirname(named)), ".git") === dotGit;
  } catch {
    return false;
  }
}

function withoutEol(text: string): string {
  return text.replace(/[\r\n]+$/, "");
}

/** Without waiting for a writer, where somebody put a named pipe. */
async function readSmall(file: string): Promise<string> {
  const handle = await open(file, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    const stats = await handle.stat();
    if (!stats.isFile() || stats.size > gitFileLimit) throw new Error(`${file} is not a file of one path`);
    return await handle.readFile("utf8");
  } finally {
    await handle.close();
  }
}

async function exists(path: string): Promise<boolean> {
  try {
    await lstat(path);
    return true;
  } catch {
    return false;
  }
}

function isAbsence(error: unknown): boolean {
  return error instanceof Error && "code" in error && (error.code === "ENOENT" || error.code === "ENOTDIR");
}
