import { lstat, realpath } from "node:fs/promises";
import { basename, dirname, isAbsolute, join, relative, sep } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { type GitOptions, type ListedWorktree, listWorktrees } from "./git.js";
import { leadsTo, resolveWorkspace, type WorkspaceIdentity } from "./identity.js";
import { type RepositoryReading, readRepository } from "./repository.js";

export interface RegisteredProject {
  readonly projectId: string;
  readonly name: string;
  /** The registered path. */
  readonly path: string;
  /** What the registered path led to when it was registered. */
  readonly identity: WorkspaceIdentity;
}

/** The project registry, as far as the fact needs it. Each change of the projects changes the revision. */
export interface ProjectsView {
  current(): { readonly projects: readonly RegisteredProject[]; readonly revision: number };
}

/** The membership fact of contract section 10. `project` is a project id where it is none of the two words. */
export interface ProjectMembership {
  /** The canonical path of the directory; as it was given, where that leads to none. */
  readonly workspace: string;
  readonly project: string;
  readonly projectsRevision: number;
}

export type MembershipOptions = Partial<GitOptions>;

/** Milliseconds that Git may take for one fact (contract section 10). */
const gitLimitMs = 3_000;

/**
 * To which registered project a directory belongs, now (contract section 10). Read-only: nothing is registered, and
 * Git is only asked for its list of worktrees. Never throws for what it finds; what it cannot verify is `unknown`.
 *
 * **A match** is a project whose registered directory is this one or contains it, or is a worktree of the same
 * repository, both of them in Git's list with a `.git` that says the same. A directory inside a worktree goes with its
 * worktree. A project registered for a part of a repository stands for that part and not for the repository: the other
 * worktrees of that repository are not its own, and of its counterpart in them neither can be said (`unknown`).
 *
 * **Which doubts count.** A doubt makes the fact `unknown` when its solution could change the answer, and else spoils
 * nothing:
 *
 * - This directory's own repository: a `.git` that leads nowhere or is not what Git lists, or a Git that fails, is slow
 *   or is missing. (Without Git installed and without any trace of a repository there is nothing to ask it.)
 * - A registered path that no longer leads to the registered directory counts where that project might be this
 *   directory's: the path is this directory or above it; or the registered directory, moved, is (by device and inode)
 *   this directory or above it; or either of them is a worktree that Git lists for this directory's repository. A
 *   project deleted anywhere else says nothing about this directory.
 * - A registered directory whose `.git` and Git's list disagree counts where either of the two says that it belongs to
 *   this directory's repository. Worktrees that nobody registered do not count, however broken.
 *
 * Everything is looked at before and after Git was asked; any difference, or a new registry revision, is `unknown`.
 */
export async function projectMembership(
  directory: WorkspaceIdentity | string,
  registry: ProjectsView,
  options: MembershipOptions = {},
): Promise<ProjectMembership> {
  const { projects, revision } = registry.current();
  const workspace = await identify(directory);
  const project = workspace === undefined ? "unknown" : await decide(workspace, projects, options);
  const projectsRevision = registry.current().revision;
  return {
    workspace: workspace?.path ?? (typeof directory === "string" ? directory : directory.path),
    project: projectsRevision === revision ? project : "unknown",
    projectsRevision,
  };
}

async function identify(directory: WorkspaceIdentity | string): Promise<WorkspaceIdentity | undefined> {
  if (typeof directory !== "string") return (await leadsTo(directory.given, directory)) ? directory : undefined;
  const resolution = await resolveWorkspace(directory);
  return resolution.ok ? resolution.identity : undefined;
}

async function decide(
  workspace: WorkspaceIdentity,
  projects: readonly RegisteredProject[],
  options: MembershipOptions,
): Promise<string> {
  if (projects.length === 0) return "unassigned";
  const before = await observe(workspace, projects);
  if (before === undefined || before.repository.kind === "broken") return "unknown";
  // Not even asked: some Git versions, run from a moved or copied worktree, write its new place into the repository.
  if (before.repository.kind === "linked" && !before.repository.paired) return "unknown";
  const list = await listWorktrees(workspace.path, {
    env: options.env ?? process.env,
    limitMs: options.limitMs ?? gitLimitMs,
  });
  const repository = await compare(before.repository, list);
  if (repository === undefined) return "unknown";

  const matches: string[] = [];
  for (const standing of before.standings) {
    switch (relationOf(before, standing, repository)) {
      case "match":
        matches.push(standing.project.projectId);
        break;
      case "doubt":
        return "unknown";
      case "none":
        break;
    }
  }
  if (matches.length > 1) return "unknown";
  if (!isDeepStrictEqual(before, await observe(workspace, projects))) return "unknown";
  return matches[0] ?? "unassigned";
}

/** All that the file system says about the directory and the projects at one moment. */
interface Observation {
  readonly workspace: WorkspaceIdentity;
  /** Device and inode of the directory and of all above it. */
  readonly lineage: readonly string[];
  readonly repository: RepositoryReading;
  readonly standings: readonly Standing[];
}

interface Standing {
  readonly project: RegisteredProject;
  /** Whether the registered path still leads to the registered directory. */
  readonly holds: boolean;
  readonly repository: RepositoryReading;
}

async function observe(
  workspace: WorkspaceIdentity,
  projects: readonly RegisteredProject[],
): Promise<Observation | undefined> {
  if (!(await leadsTo(workspace.given, workspace))) return undefined;
  const lineage: string[] = [];
  for (let at = workspace.path; ; at = dirname(at)) {
    const inode = await inodeOf(at);
    if (inode === undefined) return undefined;
    lineage.push(inode);
    if (dirname(at) === at) break;
  }
  const standings: Standing[] = [];
  for (const project of projects) {
    const holds = await leadsTo(project.path, project.identity);
    const repository: RepositoryReading = holds ? await readRepository(project.identity.path) : { kind: "none" };
    standings.push({ project, holds, repository });
  }
  return { workspace, lineage, repository: await readRepository(workspace.path), standings };
}

/** The directory's repository, once the files and Git agree on it. */
type AgreedRepository =
  | { readonly kind: "none" }
  | {
      readonly kind: "agreed";
      readonly common: string;
      /** The directory's worktree; undefined inside the repository's own directory. */
      readonly top: string | undefined;
      /** Git lists that worktree by its path. */
      readonly listed: boolean;
      readonly worktrees: readonly SeenWorktree[];
    };

interface SeenWorktree extends ListedWorktree {
  readonly main: boolean;
  readonly inode: string | undefined;
}

async function compare(
  reading: Exclude<RepositoryReading, { readonly kind: "broken" }>,
  list: Awaited<ReturnType<typeof listWorktrees>>,
): Promise<AgreedRepository | undefined> {
  switch (list.kind) {
    case "slow":
    case "failed":
      return undefined;
    case "no_git":
    case "no_repository":
      return reading.kind === "none" ? { kind: "none" } : undefined;
    case "listed":
      break;
    default:
      return list satisfies never;
  }
  const worktrees = await Promise.all(
    list.worktrees.map(async (worktree, index): Promise<SeenWorktree> => {
      const path = await realpath(worktree.path).catch(() => worktree.path);
      return { ...worktree, path, main: index === 0, inode: await inodeOf(path) };
    }),
  );
  const main = worktrees[0]?.path;
  switch (reading.kind) {
    case "none":
      return undefined;
    case "main":
      if (main !== reading.top) return undefined;
      return { kind: "agreed", common: reading.common, top: reading.top, listed: true, worktrees };
    case "linked":
      if (!isListed(worktrees, reading.top)) return undefined;
      return { kind: "agreed", common: reading.common, top: reading.top, listed: true, worktrees };
    case "apart":
      if (main !== reading.top && main !== reading.common && main !== holderOf(reading.common)) return undefined;
      return { kind: "agreed", common: reading.common, top: reading.top, listed: false, worktrees };
    case "inside":
      if (main !== reading.common && main !== holderOf(reading.common)) return undefined;
      return { kind: "agreed", common: reading.common, top: undefined, listed: false, worktrees };
    default:
      return reading satisfies never;
  }
}

type Relation = "match" | "none" | "doubt";

function relationOf(seen: Observation, standing: Standing, repository: AgreedRepository): Relation {
  const { project } = standing;
  if (!standing.holds) return mightHold(seen, project, repository) ? "doubt" : "none";
  if (contains(project.identity.path, seen.workspace.path)) return "match";
  if (repository.kind === "none") return "none";
  const path = project.identity.path;
  const reading = standing.repository;
  switch (reading.kind) {
    case "none":
      return repository.worktrees.some((worktree) => worktree.path === path) ? "doubt" : "none";
    case "broken":
      if (!repository.worktrees.some((worktree) => worktree.path === reading.top)) return "none";
      return path === reading.top || isCounterpart(seen, repository, reading.top, path) ? "doubt" : "none";
    case "inside":
      if (reading.common !== repository.common || path !== reading.common) return "none";
      return repository.listed && repository.worktrees[0]?.path === path ? "match" : "doubt";
    case "main":
    case "linked":
    case "apart":
      if (reading.common !== repository.common || reading.top === repository.top) return "none";
      if (path !== reading.top) return isCounterpart(seen, repository, reading.top, path) ? "doubt" : "none";
      return repository.listed && agrees(reading, repository.worktrees) ? "match" : "doubt";
    default:
      return reading satisfies never;
  }
}

/** Whether a project whose registered path no longer leads to it could still be this directory's. */
function mightHold(seen: Observation, project: RegisteredProject, repository: AgreedRepository): boolean {
  const { identity } = project;
  const inode = `${identity.device}:${identity.inode}`;
  const paths = [project.path, identity.path];
  if (seen.lineage.includes(inode)) return true;
  if (paths.some((path) => contains(path, seen.workspace.path) || contains(path, seen.workspace.given))) return true;
  if (repository.kind === "none") return false;
  return repository.worktrees.some(
    (worktree) =>
      worktree.inode === inode ||
      paths.some(
        (path) =>
          worktree.path === path ||
          (worktree.path !== repository.top && isCounterpart(seen, repository, worktree.path, path)),
      ),
  );
}

/** Whether Git's list names a project's worktree as its own `.git` does. */
function agrees(
  reading: Extract<RepositoryReading, { readonly kind: "main" | "linked" | "apart" }>,
  worktrees: readonly SeenWorktree[],
): boolean {
  switch (reading.kind) {
    case "main":
      return worktrees[0]?.path === reading.top;
    case "linked":
      return reading.paired && isListed(worktrees, reading.top);
    case "apart":
      return false;
    default:
      return reading satisfies never;
  }
}

function isListed(worktrees: readonly SeenWorktree[], top: string): boolean {
  return worktrees.some((worktree) => worktree.path === top && !worktree.main && !worktree.prunable);
}

/** Whether this directory is, in its own worktree, where a project at `path` is in the worktree `top`, or deeper. */
function isCounterpart(
  seen: Observation,
  repository: Extract<AgreedRepository, { readonly kind: "agreed" }>,
  top: string,
  path: string,
): boolean {
  if (repository.top === undefined || path === top || !contains(top, path)) return false;
  return contains(join(repository.top, relative(top, path)), seen.workspace.path);
}

/** Whether the absolute path `inner` is `outer` or below it. */
function contains(outer: string, inner: string): boolean {
  const way = relative(outer, inner);
  return way === "" || (way !== ".." && !way.startsWith(`..${sep}`) && !isAbsolute(way));
}

/** The directory that has `common` as its `.git`; Git names a main worktree so, whatever its files say. */
function holderOf(common: string): string {
  return basename(common) === ".git" ? dirname(common) : common;
}

async function inodeOf(path: string): Promise<string | undefined> {
  try {
    const stats = await lstat(path, { bigint: true });
    return `${stats.dev}:${stats.ino}`;
  } catch {
    return undefined;
  }
}
