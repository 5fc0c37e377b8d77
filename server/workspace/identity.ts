import { type BigIntStats, constants } from "node:fs";
import { access, lstat, realpath } from "node:fs/promises";
import { isAbsolute } from "node:path";

/**
 * Which directory a workspace is: what is stored in a binding and compared at each use (contract sections 4 and 6.6).
 * Device and inode are decimal strings, since both are 64 bits wide and JSON numbers are not.
 */
export interface WorkspaceIdentity {
  /** The absolute path as it was given; it may lead through symlinks. */
  readonly given: string;
  /** The canonical path: absolute, without symlinks. */
  readonly path: string;
  readonly device: string;
  readonly inode: string;
}

/** Why a path is no workspace. */
export type WorkspaceRefusal = "missing" | "not_directory" | "not_absolute" | "unreadable";

export type WorkspaceResolution =
  | { readonly ok: true; readonly identity: WorkspaceIdentity }
  | { readonly ok: false; readonly reason: WorkspaceRefusal };

/**
 * Resolves a given path to the directory it names now. A symlink is followed, here and only here: the identity is that
 * of the directory behind it. Never throws; what the file system refuses is `unreadable`.
 */
export async function resolveWorkspace(path: string): Promise<WorkspaceResolution> {
  if (!isAbsolute(path)) return { ok: false, reason: "not_absolute" };
  const located = await locate(path);
  if (!located.ok) return located;
  try {
    await access(located.identity.path, constants.R_OK | constants.X_OK);
    return located;
  } catch {
    return { ok: false, reason: "unreadable" };
  }
}

/**
 * Whether the given path still leads to the same canonical path, device and inode (contract section 6.6). A directory
 * that cannot be looked at is not known to be the same one, so the answer is no.
 */
export async function sameWorkspace(identity: WorkspaceIdentity): Promise<boolean> {
  return leadsTo(identity.given, identity);
}

/** Whether `path` leads to exactly the directory of `identity`, now. */
export async function leadsTo(path: string, identity: WorkspaceIdentity): Promise<boolean> {
  const located = await locate(path);
  return (
    located.ok &&
    located.identity.path === identity.path &&
    located.identity.device === identity.device &&
    located.identity.inode === identity.inode
  );
}

async function locate(given: string): Promise<WorkspaceResolution> {
  let path: string;
  let stats: BigIntStats;
  try {
    path = await realpath(given);
    // lstat: whoever puts a symlink at the canonical path between the two calls is seen, not followed.
    stats = await lstat(path, { bigint: true });
  } catch (error) {
    return { ok: false, reason: refusalOf(error) };
  }
  if (!stats.isDirectory()) return { ok: false, reason: "not_directory" };
  return { ok: true, identity: { given, path, device: stats.dev.toString(), inode: stats.ino.toString() } };
}

function refusalOf(error: unknown): WorkspaceRefusal {
  switch (error instanceof Error && "code" in error ? error.code : undefined) {
    case "ENOENT":
    case "ENOTDIR":
    case "ENAMETOOLONG":
    case "ERR_INVALID_ARG_VALUE": // a NUL byte: no file system has such a name
      return "missing";
    default:
      return "unreadable";
  }
}
