import { type ChildProcess, spawn } from "node:child_process";
import { StringDecoder } from "node:string_decoder";

/** One entry of `git worktree list`; the first of a list is the main worktree, or the bare repository. */
export interface ListedWorktree {
  readonly path: string;
  readonly bare: boolean;
  /** Git would remove this entry: what it points to is gone. */
  readonly prunable: boolean;
}

/** What Git says of a directory. `failed` covers every answer that is not one of the others, a refusal included. */
export type WorktreeList =
  | { readonly kind: "listed"; readonly worktrees: readonly ListedWorktree[] }
  | { readonly kind: "no_repository" }
  | { readonly kind: "no_git" }
  | { readonly kind: "slow" }
  | { readonly kind: "failed" };

export interface GitOptions {
  /** Where PATH and HOME come from; `GIT_*` and `CLANKIE_*` are left out. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Milliseconds until Git is killed. */
  readonly limitMs: number;
}

/** Bytes of output that are read; some five thousand worktrees. */
const outputLimit = 1_048_576;

const quietly = ["--no-pager", "-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false"] as const;

/**
 * Asks Git which worktrees it lists for the repository it finds at `directory` (contract section 10). Needs Git 2.36
 * (`-z`); an older one is `failed`. Never throws.
 */
export async function listWorktrees(directory: string, options: GitOptions): Promise<WorktreeList> {
  const run = await runGit(["-C", directory, ...quietly, "worktree", "list", "--porcelain", "-z"], options);
  if (run.kind !== "exited") return run;
  if (run.code === 0) {
    const worktrees = parseWorktrees(run.stdout);
    return worktrees === undefined ? { kind: "failed" } : { kind: "listed", worktrees };
  }
  return run.code === 128 && /^fatal: not a git repository/m.test(run.stderr)
    ? { kind: "no_repository" }
    : { kind: "failed" };
}

/**
 * Reads `git worktree list --porcelain -z`: attributes end with NUL, and an empty one ends an entry.
 * Undefined where the text is not of that form.
 */
export function parseWorktrees(text: string): readonly ListedWorktree[] | undefined {
  const worktrees: ListedWorktree[] = [];
  if (!text.endsWith("\0\0")) return undefined;
  for (const entry of text.slice(0, -2).split("\0\0")) {
    const [first = "", ...attributes] = entry.split("\0");
    if (!first.startsWith("worktree ")) return undefined;
    worktrees.push({
      path: first.slice("worktree ".length),
      bare: attributes.includes("bare"),
      prunable: attributes.some((attribute) => attribute === "prunable" || attribute.startsWith("prunable ")),
    });
  }
  return worktrees;
}

type GitRun =
  | { readonly kind: "exited"; readonly code: number | null; readonly stdout: string; readonly stderr: string }
  | { readonly kind: "no_git" | "slow" | "failed" };

/**
 * Runs Git once, without a shell. `spawn` and not `execFile`, which cannot make a process group: a Git that is too
 * slow, or says too much, is killed together with whatever it started.
 */
function runGit(args: readonly string[], options: GitOptions): Promise<GitRun> {
  return new Promise((resolve) => {
    let child: ChildProcess;
    try {
      child = spawn("git", args, {
        cwd: "/", // so that ENOENT means Git, and a relative PATH entry leads to nothing in the directory
        env: gitEnvironment(options.env),
        stdio: ["ignore", "pipe", "pipe"],
        detached: true,
      });
    } catch {
      resolve({ kind: "failed" }); // an environment or a path that no process can have
      return;
    }
    const stop = (kind: "slow" | "failed"): void => {
      if (child.pid !== undefined) killGroup(child.pid);
      child.stdout?.destroy();
      child.stderr?.destroy();
      finish({ kind });
    };
    const limit = setTimeout(() => stop("slow"), options.limitMs);
    const finish = (run: GitRun): void => {
      clearTimeout(limit);
      resolve(run);
    };
    let size = 0;
    const collect = (stream: NodeJS.ReadableStream | null): (() => string) => {
      const decoder = new StringDecoder("utf8");
      let text = "";
      stream?.on("data", (chunk: Buffer) => {
        size += chunk.length;
        if (size > outputLimit) stop("failed");
        else text += decoder.write(chunk);
      });
      return () => text + decoder.end();
    };
    child.once("error", (error) => finish({ kind: "code" in error && error.code === "ENOENT" ? "no_git" : "failed" }));
    const stdout = collect(child.stdout);
    const stderr = collect(child.stderr);
    child.once("close", (code) => finish({ kind: "exited", code, stdout: stdout(), stderr: stderr() }));
  });
}

/**
 * The caller's `GIT_*` could point Git at another repository, and PWD at another spelling of this one; `CLANKIE_*` is
 * none of its business.
 */
function gitEnvironment(from: GitOptions["env"]): Record<string, string> {
  const env: Record<string, string> = {};
  for (const [name, value] of Object.entries(from)) {
    if (value !== undefined && name !== "PWD" && !/^(GIT|CLANKIE)_/.test(name)) env[name] = value;
  }
  return {
    ...env,
    PATH: from["PATH"] ?? "/usr/local/bin:/usr/bin:/bin",
    LC_ALL: "C",
    GIT_OPTIONAL_LOCKS: "0",
    GIT_TERMINAL_PROMPT: "0",
    GIT_NO_LAZY_FETCH: "1",
    // repository.ts looks upwards across mounts too, and the two have to look at the same places.
    GIT_DISCOVERY_ACROSS_FILESYSTEM: "1",
  };
}

function killGroup(leader: number): void {
  try {
    process.kill(-leader, "SIGKILL");
  } catch {
    // It ended by itself in the same moment.
  }
}
