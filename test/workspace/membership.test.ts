import { execFile } from "node:child_process";
import {
  chmod,
  cp,
  lstat,
  mkdir,
  mkdtemp,
  readFile,
  realpath,
  rename,
  rm,
  symlink,
  utimes,
  writeFile,
} from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { parseWorktrees } from "../../server/workspace/git.js";
import { resolveWorkspace, type WorkspaceIdentity } from "../../server/workspace/identity.js";
import { projectMembership, type RegisteredProject } from "../../server/workspace/membership.js";

const path = process.env["PATH"] ?? "/usr/bin:/bin";

/** A temporary directory, real Git in it, and a registry. */
class World {
  readonly projects: RegisteredProject[] = [];
  revision = 7;

  private constructor(readonly root: string) {}

  static async make(): Promise<World> {
    return new World(await realpath(await mkdtemp(join(tmpdir(), "clankie-membership-"))));
  }

  at(...parts: readonly string[]): string {
    return join(this.root, ...parts);
  }

  /** Whatever the machine's user configured stays out. */
  get env(): Record<string, string> {
    return { PATH: path, HOME: this.root, GIT_CONFIG_NOSYSTEM: "1" };
  }

  async git(directory: string, ...args: readonly string[]): Promise<void> {
    const settings = [
      "user.name=T",
      "user.email=t@example.org",
      "init.defaultBranch=main",
      "protocol.file.allow=always",
    ];
    await promisify(execFile)("git", ["-C", directory, ...settings.flatMap((setting) => ["-c", setting]), ...args], {
      env: this.env,
    });
  }

  /** A repository with one commit, `src/lib` in it. */
  async repository(name: string): Promise<string> {
    await mkdir(this.at(name, "src", "lib"), { recursive: true });
    await writeFile(this.at(name, "src", "lib", "file"), "text");
    await this.git(this.root, "init", "-q", name);
    await this.git(this.at(name), "add", ".");
    await this.git(this.at(name), "commit", "-q", "-m", "first");
    return this.at(name);
  }

  async worktree(repository: string, name: string): Promise<string> {
    await this.git(repository, "worktree", "add", "-q", "-b", name.replaceAll("/", "-"), this.at(name));
    return this.at(name);
  }

  async register(projectId: string, directory: string): Promise<void> {
    const identity = await identityOf(directory);
    this.projects.push({ projectId, name: projectId, path: identity.path, identity });
  }

  /** A `git` of our own, first on PATH. */
  async fakeGit(script: string): Promise<Record<string, string>> {
    await mkdir(this.at("bin"), { recursive: true });
    await writeFile(this.at("bin", "git"), `#!/bin/sh\n${script}\n`);
    await chmod(this.at("bin", "git"), 0o755);
    return { ...this.env, PATH: `${this.at("bin")}:${path}` };
  }

  current(): { readonly projects: readonly RegisteredProject[]; readonly revision: number } {
    return { projects: [...this.projects], revision: this.revision };
  }

  async project(
    directory: string | WorkspaceIdentity,
    env: Record<string, string> = this.env,
    limitMs = 30_000, // generous: only the tests of the limit are about it
  ): Promise<string> {
    const fact = await projectMembership(directory, this, { env, limitMs });
    assert.is(fact.projectsRevision, this.revision);
    return fact.project;
  }
}

async function identityOf(directory: string): Promise<WorkspaceIdentity> {
  const resolution = await resolveWorkspace(directory);
  if (!resolution.ok) throw new Error(`${directory}: ${resolution.reason}`);
  return resolution.identity;
}

async function isThere(file: string): Promise<boolean> {
  return lstat(file).then(
    () => true,
    () => false,
  );
}

async function becomesTrue(what: string, condition: () => boolean | Promise<boolean>): Promise<void> {
  const deadline = Date.now() + 10_000;
  while (!(await condition())) {
    if (Date.now() > deadline) throw new Error(`never became true: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

const test = suite<{ world: World }>("project membership");

test.before.each(async (context) => {
  context.world = await World.make();
});
test.after.each(async (context) => {
  await rm(context.world.root, { recursive: true, force: true });
});

test("[10] the registered directory and what is inside it belong to the project", async ({ world }) => {
  const main = await world.repository("r");
  await world.register("p", main);
  assert.is(await world.project(main), "p");
  assert.is(await world.project(join(main, "src", "lib")), "p");
  assert.is(await world.project(join(main, ".git", "refs")), "p");
  assert.is(await world.project(world.root), "unassigned");
});

test("[10] the fact names the canonical directory and the registry revision", async ({ world }) => {
  const main = await world.repository("r");
  await world.register("p", main);
  await symlink(main, world.at("link"));
  const expected = { workspace: main, project: "p", projectsRevision: 7 };
  assert.equal(await projectMembership(world.at("link"), world, { env: world.env }), expected);
  assert.equal(await projectMembership(await identityOf(world.at("link")), world, { env: world.env }), expected);
});

test("[10] a linked worktree belongs to the project of its repository, and so does a directory inside it", async ({
  world,
}) => {
  const main = await world.repository("r");
  const linked = await world.worktree(main, "w");
  await world.register("p", main);
  assert.is(await world.project(linked), "p");
  assert.is(await world.project(join(linked, "src")), "p");
});

test("[10] the main checkout belongs to a project registered at a linked worktree", async ({ world }) => {
  const main = await world.repository("r");
  const linked = await world.worktree(main, "w");
  const other = await world.worktree(main, "x");
  await world.register("p", linked);
  assert.is(await world.project(main), "p");
  assert.is(await world.project(other), "p");
});

test("[10] a worktree whose path holds spaces and a line break is found", async ({ world }) => {
  const main = await world.repository("r");
  await world.git(main, "worktree", "add", "-q", "-b", "odd", world.at("a b\nworktree c"));
  await world.register("p", main);
  assert.is(await world.project(world.at("a b\nworktree c")), "p");
});

test("[10] directories of no project are unassigned: another repository, no repository, an empty registry", async ({
  world,
}) => {
  const main = await world.repository("r");
  const other = await world.repository("o");
  const linked = await world.worktree(other, "w");
  await mkdir(world.at("plain"));
  assert.is(await world.project(main), "unassigned");
  await world.register("p", main);
  assert.is(await world.project(other), "unassigned");
  assert.is(await world.project(linked), "unassigned");
  assert.is(await world.project(world.at("plain")), "unassigned");
});

test("[10] a plain directory can be a project", async ({ world }) => {
  await mkdir(world.at("plain", "sub"), { recursive: true });
  await mkdir(world.at("plainer"));
  await world.register("p", world.at("plain"));
  assert.is(await world.project(world.at("plain", "sub")), "p");
  assert.is(await world.project(world.at("plainer")), "unassigned");
});

test("[10] more than one match is unknown: nested projects, two worktrees of one repository", async ({ world }) => {
  const main = await world.repository("r");
  const linked = await world.worktree(main, "w");
  const third = await world.worktree(main, "x");
  await world.register("p", main);
  await world.register("nested", join(main, "src"));
  assert.is(await world.project(join(main, "src", "lib")), "unknown");
  assert.is(await world.project(main), "p");
  await world.register("q", linked);
  assert.is(await world.project(main), "unknown");
  assert.is(await world.project(linked), "unknown");
  assert.is(await world.project(third), "unknown");
});

test("[10] a project registered for a part of a repository does not stand for the repository", async ({ world }) => {
  const main = await world.repository("r");
  const linked = await world.worktree(main, "w");
  await world.register("p", join(main, "src"));
  assert.is(await world.project(join(main, "src", "lib")), "p");
  assert.is(await world.project(main), "unassigned");
  assert.is(await world.project(linked), "unassigned");
  assert.is(await world.project(join(linked, "src")), "unknown", "the counterpart of the part");
});

test("[10] a registered path that no longer leads to the registered directory is unknown there", async ({ world }) => {
  const main = await world.repository("r");
  const linked = await world.worktree(main, "w");
  await world.register("p", main);
  await world.repository("elsewhere");
  await rename(main, world.at("moved"));
  assert.is(await world.project(world.at("moved")), "unknown", "moved away");
  assert.is(await world.project(world.at("moved", "src")), "unknown");
  assert.is(await world.project(linked), "unknown", "its worktree");
  assert.is(await world.project(world.at("elsewhere")), "unassigned", "and nothing is said of other directories");
  await symlink(world.at("moved"), main);
  assert.is(await world.project(main), "unknown", "a symlink in its place");
  assert.is(await world.project(linked), "unknown");
  await rm(main);
  await world.repository("r");
  assert.is(await world.project(main), "unknown", "another directory in its place");
  assert.is(await world.project(join(main, "src")), "unknown");
});

test("[10] a registered plain directory that was moved is unknown at its new place, and beside it nothing is", async ({
  world,
}) => {
  await mkdir(world.at("plain", "sub"), { recursive: true });
  await mkdir(world.at("beside"));
  await world.register("p", world.at("plain"));
  await rename(world.at("plain"), world.at("moved"));
  assert.is(await world.project(world.at("moved")), "unknown");
  assert.is(await world.project(world.at("moved", "sub")), "unknown");
  assert.is(await world.project(world.at("beside")), "unassigned");
});

test("[10] a worktree that Git lists as one to be pruned is unknown", async ({ world }) => {
  const main = await world.repository("r");
  const linked = await world.worktree(main, "w");
  await world.register("p", main);
  const list = (end: string) => world.fakeGit(`printf 'worktree ${main}\\0\\0worktree ${linked}\\0${end}\\0'`);
  assert.is(await world.project(linked, await list("detached\\0")), "p");
  assert.is(await world.project(linked, await list("prunable why\\0")), "unknown");
});

test("[10] a registered worktree that is gone makes the rest of its repository unknown", async ({ world }) => {
  const main = await world.repository("r");
  const linked = await world.worktree(main, "w");
  await world.register("p", linked);
  await rm(linked, { recursive: true });
  assert.is(await world.project(main), "unknown");
  await world.git(main, "worktree", "prune");
  assert.is(await world.project(main), "unassigned", "until Git lists it no more");
});

test("[10] a worktree moved by hand is unknown, and is found again once Git was told", async ({ world }) => {
  const main = await world.repository("r");
  const linked = await world.worktree(main, "w");
  await world.register("p", main);
  await rename(linked, world.at("moved"));
  const record = join(main, ".git", "worktrees", "w", "gitdir");
  await utimes(record, 1, 1);
  const before = await readFile(record, "utf8");
  assert.is(await world.project(world.at("moved")), "unknown");
  assert.is(await world.project(world.at("moved", "src")), "unknown");
  assert.is(await readFile(record, "utf8"), before, "and asking has repaired nothing");
  assert.is(await world.project(world.at("moved"), await world.fakeGit(`touch ${world.at("asked")}`)), "unknown");
  assert.not(await isThere(world.at("asked")), "since Git was not even asked");
  assert.is(await world.project(main), "p", "it spoils nothing for the others");
  await world.git(main, "worktree", "repair", world.at("moved"));
  assert.is(await world.project(world.at("moved")), "p");
});

test("[10] a copied worktree is unknown, the copied one is not", async ({ world }) => {
  const main = await world.repository("r");
  const linked = await world.worktree(main, "w");
  await world.register("p", main);
  await cp(linked, world.at("copy"), { recursive: true });
  await mkdir(join(main, "src", "copy"));
  await cp(join(linked, ".git"), join(main, "src", "copy", ".git"));
  assert.is(await world.project(world.at("copy")), "unknown");
  assert.is(await world.project(join(main, "src", "copy")), "unknown", "also inside the project");
  assert.is(await world.project(linked), "p");
});

test("[10] a pruned worktree and one whose repository is gone are unknown", async ({ world }) => {
  const main = await world.repository("r");
  const other = await world.repository("o");
  const pruned = await world.worktree(main, "w");
  const orphan = await world.worktree(other, "x");
  await world.register("p", main);
  await rm(join(main, ".git", "worktrees", "w"), { recursive: true });
  await rm(other, { recursive: true });
  assert.is(await world.project(pruned), "unknown");
  assert.is(await world.project(orphan), "unknown");
  assert.is(await world.project(main), "p");
});

test("[10] a .git that is no repository is unknown", async ({ world }) => {
  await mkdir(world.at("p"));
  await world.register("p", world.at("p"));
  for (const [name, make] of Object.entries({
    empty: (at: string) => mkdir(at),
    text: (at: string) => writeFile(at, "not a path"),
    large: (at: string) => writeFile(at, `gitdir: ${"x".repeat(20_000)}`),
    dangling: (at: string) => symlink("nowhere", at),
    pipe: (at: string) => promisify(execFile)("mkfifo", [at]),
  })) {
    await mkdir(world.at(name, "sub"), { recursive: true });
    await make(world.at(name, ".git"));
    assert.is(await world.project(world.at(name)), "unknown", name);
    assert.is(await world.project(world.at(name, "sub")), "unknown", name);
  }
  const main = await world.repository("r");
  await mkdir(join(main, "src", ".git"));
  assert.is(await world.project(join(main, "src")), "unknown", "Git looks past it, we do not");
});

test("[10] a registered worktree whose .git was lost or points elsewhere makes its repository unknown", async ({
  world,
}) => {
  const main = await world.repository("r");
  const linked = await world.worktree(main, "w");
  await world.register("p", linked);
  await rename(join(linked, ".git"), join(linked, "kept"));
  assert.is(await world.project(main), "unknown", "lost");
  await writeFile(join(linked, ".git"), "gitdir: nowhere");
  assert.is(await world.project(main), "unknown", "broken");
  await rm(join(linked, ".git"));
  await world.git(linked, "init", "-q");
  assert.is(await world.project(main), "unassigned", "a repository of its own now");
  assert.is(await world.project(linked), "p");
});

test("[10] a broken or stale worktree elsewhere in the repository spoils nothing", async ({ world }) => {
  const main = await world.repository("r");
  const linked = await world.worktree(main, "w");
  const stale = await world.worktree(main, "stale");
  const broken = await world.worktree(main, "broken");
  const damaged = await world.worktree(main, "damaged");
  await world.register("p", main);
  await rm(stale, { recursive: true });
  await writeFile(join(broken, ".git"), "gitdir: nowhere");
  await writeFile(join(main, ".git", "worktrees", "damaged", "HEAD"), "nonsense");
  assert.is(await world.project(main), "p");
  assert.is(await world.project(linked), "p");
  assert.is(await world.project(broken), "unknown");
  assert.is(await world.project(damaged), "unknown");
});

test("[10] worktrees of a bare repository belong to it, wherever the project is registered", async ({ world }) => {
  const main = await world.repository("r");
  await world.git(world.root, "clone", "-q", "--bare", main, world.at("bare.git"));
  const linked = await world.worktree(world.at("bare.git"), "w");
  const other = await world.worktree(world.at("bare.git"), "x");
  await world.register("p", world.at("bare.git"));
  assert.is(await world.project(world.at("bare.git")), "p");
  assert.is(await world.project(world.at("bare.git", "refs")), "p");
  assert.is(await world.project(linked), "p");
  world.projects.length = 0;
  await world.register("q", linked);
  assert.is(await world.project(other), "q");
  assert.is(await world.project(world.at("bare.git")), "unknown", "the repository itself is no worktree");
});

test("[10] a submodule belongs to the project it is inside, and to no other", async ({ world }) => {
  const library = await world.repository("library");
  const main = await world.repository("r");
  await world.git(main, "submodule", "--quiet", "add", library, "sub");
  await world.git(main, "commit", "-q", "-m", "submodule");
  await world.register("library", library);
  assert.is(await world.project(join(main, "sub")), "unassigned");
  await world.register("p", main);
  assert.is(await world.project(join(main, "sub", "src")), "p");
  await world.register("sub", join(main, "sub"));
  assert.is(await world.project(join(main, "sub")), "unknown", "nested");
});

test("[10] a repository kept apart from its files can be a project; of its worktrees nothing is sure", async ({
  world,
}) => {
  await mkdir(world.at("apart"));
  await world.git(world.root, "init", "-q", `--separate-git-dir=${world.at("store")}`, "apart");
  await world.git(world.at("apart"), "commit", "-q", "--allow-empty", "-m", "first");
  const linked = await world.worktree(world.at("apart"), "w");
  await world.register("p", world.at("apart"));
  assert.is(await world.project(world.at("apart")), "p");
  assert.is(await world.project(linked), "unknown");
});

test("[10] a repository that Git refuses for its owner is unknown", async ({ world }) => {
  const main = await world.repository("r");
  await world.register("p", main);
  // Only root can give a directory away; Git has a switch of its own for testing the same refusal.
  const env = await world.fakeGit(`GIT_TEST_ASSUME_DIFFERENT_OWNER=1 PATH=${path} exec git "$@"`);
  assert.is(await world.project(main, env), "unknown");
});

test("[10] a Git that fails, talks nonsense or never stops talking is unknown", async ({ world }) => {
  const main = await world.repository("r");
  await mkdir(world.at("plain"));
  await world.register("p", main);
  for (const script of [
    "exit 1",
    "exit 0",
    'echo "fatal: something else" >&2; exit 128',
    'echo "fatal: not a git repository (or any of the parent directories): .git" >&2; exit 128',
    'printf "worktree /somewhere/else\\0\\0"',
    'printf "worktree"',
    "kill -SEGV $$",
    "exec yes",
  ]) {
    assert.is(await world.project(main, await world.fakeGit(script)), "unknown", script);
  }
  assert.is(await world.project(world.at("plain"), await world.fakeGit("exit 1")), "unknown", "also without a .git");
});

test("[10] a slow Git is unknown after 3 s and is killed with all it started", async ({ world }) => {
  const main = await world.repository("r");
  await world.register("p", main);
  const pids = world.at("pids");
  const env = await world.fakeGit(`sleep 1000 &\necho $! $$ > ${pids}.tmp; mv ${pids}.tmp ${pids}; wait`);
  const fact = await projectMembership(main, world, { env }); // the limit of the contract, in real time
  assert.is(fact.project, "unknown");
  for (const pid of (await readFile(pids, "utf8")).trim().split(" ").map(Number)) {
    await becomesTrue(`process ${pid} has ended`, () => !isAlive(pid) || isZombie(pid));
  }
});

async function isZombie(pid: number): Promise<boolean> {
  return readFile(`/proc/${pid}/stat`, "utf8").then(
    (text) => /\) Z /.test(text),
    () => true,
  );
}

test("[10] without Git a repository is unknown and a plain directory is not", async ({ world }) => {
  const main = await world.repository("r");
  await mkdir(world.at("plain"));
  await mkdir(world.at("none"));
  await world.register("p", main);
  await world.register("q", world.at("plain"));
  const env = { ...world.env, PATH: world.at("none") };
  assert.is(await world.project(main, env), "unknown");
  assert.is(await world.project(world.at("plain"), env), "q");
  assert.is(await world.project(world.root, env), "unassigned");
});

test("[10] the caller's GIT_* variables are not seen by Git, nor its token", async ({ world }) => {
  const main = await world.repository("r");
  const other = await world.repository("o");
  await world.register("p", main);
  await world.register("q", other);
  const hostile = {
    ...world.env,
    GIT_DIR: join(other, ".git"),
    GIT_WORK_TREE: other,
    GIT_CEILING_DIRECTORIES: main,
    GIT_CONFIG_COUNT: "1",
    GIT_CONFIG_KEY_0: "core.worktree",
    GIT_CONFIG_VALUE_0: other,
  };
  assert.is(await world.project(join(main, "src"), hostile), "p");
  const seen = world.at("seen");
  const fake = await world.fakeGit(`env > ${seen}; printf '%s\\n' "$@" >> ${seen}; exec git-not-there`);
  await world.project(main, { ...hostile, PATH: fake["PATH"] ?? "", CLANKIE_TOKEN: "secret", KEPT: "kept" });
  const lines = (await readFile(seen, "utf8")).split("\n");
  assert.equal(lines.filter((line) => line.startsWith("GIT_")).sort(), [
    "GIT_DISCOVERY_ACROSS_FILESYSTEM=1",
    "GIT_NO_LAZY_FETCH=1",
    "GIT_OPTIONAL_LOCKS=0",
    "GIT_TERMINAL_PROMPT=0",
  ]);
  assert.not(lines.some((line) => line.includes("secret")));
  for (const line of ["LC_ALL=C", "KEPT=kept", "--no-pager", "core.hooksPath=/dev/null", "core.fsmonitor=false"]) {
    assert.ok(lines.includes(line), line);
  }
});

test("[10] neither hooks nor a monitor of the repository run, and nothing in it is written", async ({ world }) => {
  const main = await world.repository("r");
  const linked = await world.worktree(main, "w");
  const trace = world.at("trace");
  await writeFile(world.at("tracer"), `#!/bin/sh\necho "$0" >> ${trace}\n`);
  await chmod(world.at("tracer"), 0o755);
  for (const hook of ["post-index-change", "post-checkout", "reference-transaction", "pre-auto-gc"]) {
    await symlink(world.at("tracer"), join(main, ".git", "hooks", hook));
  }
  await world.git(main, "config", "core.fsmonitor", world.at("tracer"));
  await world.git(main, "config", "core.pager", world.at("tracer"));
  await world.register("p", main);
  const before = await snapshot(main, world);
  assert.is(await world.project(main), "p");
  assert.is(await world.project(linked), "p");
  assert.not(await isThere(trace));
  assert.is(await snapshot(main, world), before);
});

/** Every file below with its size and modification time. */
async function snapshot(directory: string, world: World): Promise<string> {
  const found = await promisify(execFile)("find", [directory, "-printf", "%p %s %T@\n"], { env: world.env });
  return found.stdout;
}

test("[10] a git in the workspace is not run through a relative PATH", async ({ world }) => {
  const main = await world.repository("r");
  await world.register("p", main);
  await writeFile(join(main, "git"), `#!/bin/sh\ntouch ${world.at("ran")}\n`);
  await chmod(join(main, "git"), 0o755);
  assert.is(await world.project(main, { ...world.env, PATH: `.::${path}` }), "p");
  assert.not(await isThere(world.at("ran")));
});

test("[10] a registry that changed while the fact was made is unknown, at the revision read last", async ({
  world,
}) => {
  const main = await world.repository("r");
  await world.register("p", main);
  let revision = 1;
  const registry = { current: () => ({ projects: world.projects, revision: revision++ }) };
  assert.equal(await projectMembership(main, registry, { env: world.env }), {
    workspace: main,
    project: "unknown",
    projectsRevision: 2,
  });
});

test("[10] a directory or a registered path that changed while Git was asked is unknown", async ({ world }) => {
  const main = await world.repository("r");
  const linked = await world.worktree(main, "w");
  await mkdir(world.at("plain"));
  await world.register("p", main);
  await world.register("q", world.at("plain"));
  const replaced = async (directory: string): Promise<string> => {
    const swap = `[ -e ${world.root}/kept ] || { cp -a ${directory} ${world.root}/new; mv ${directory} ${world.root}/kept; mv ${world.root}/new ${directory}; }`;
    const answer = await world.project(linked, await world.fakeGit(`PATH=${path}\n${swap}\nexec git "$@"`));
    await rm(directory, { recursive: true });
    await rename(world.at("kept"), directory);
    return answer;
  };
  assert.is(await world.project(linked), "p");
  assert.is(await replaced(linked), "unknown", "the directory");
  assert.is(await replaced(world.at("plain")), "unknown", "a registered directory");
  assert.is(await world.project(linked), "p");
});

test("[10] a directory that is no longer the one of its identity, or is none, is unknown", async ({ world }) => {
  const main = await world.repository("r");
  await world.register("p", main);
  await mkdir(world.at("d"));
  const identity = await identityOf(world.at("d"));
  await rename(world.at("d"), world.at("e"));
  assert.is(await world.project(identity), "unknown");
  assert.equal(await projectMembership(world.at("missing"), world, { env: world.env }), {
    workspace: world.at("missing"),
    project: "unknown",
    projectsRevision: 7,
  });
});

test("[10] a list that is not of the agreed form is not read", () => {
  assert.is(parseWorktrees(""), undefined);
  assert.is(parseWorktrees("worktree /a\0"), undefined);
  assert.is(parseWorktrees("HEAD x\0worktree /a\0\0"), undefined);
  assert.equal(parseWorktrees("worktree /a\0bare\0\0worktree /b\0HEAD 1\0prunable why\0\0worktree /c\0prunable\0\0"), [
    { path: "/a", bare: true, prunable: false },
    { path: "/b", bare: false, prunable: true },
    { path: "/c", bare: false, prunable: true },
  ]);
});

test.run();
