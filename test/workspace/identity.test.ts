import { mkdir, mkdtemp, realpath, rename, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { resolveWorkspace, sameWorkspace, type WorkspaceIdentity } from "../../server/workspace/identity.js";

const test = suite<{ root: string }>("workspace identity", { root: "" });

test.before.each(async (context) => {
  context.root = await realpath(await mkdtemp(join(tmpdir(), "clankie-identity-")));
});
test.after.each(async (context) => {
  await rm(context.root, { recursive: true, force: true });
});

async function identityOf(path: string): Promise<WorkspaceIdentity> {
  const resolution = await resolveWorkspace(path);
  if (!resolution.ok) throw new Error(`${path}: ${resolution.reason}`);
  return resolution.identity;
}

test("[4] a directory is known by its given path, canonical path, device and inode", async ({ root }) => {
  await mkdir(join(root, "d"));
  await symlink(join(root, "d"), join(root, "link"));
  const direct = await identityOf(join(root, "d"));
  const linked = await identityOf(join(root, "link"));
  assert.is(linked.given, join(root, "link"));
  assert.is(linked.path, join(root, "d"));
  assert.match(direct.inode, /^\d+$/);
  assert.equal({ ...linked, given: direct.given }, direct);
  assert.ok(await sameWorkspace(direct));
  assert.ok(await sameWorkspace(linked));
});

test("[4] what is no directory is refused with its reason", async ({ root }) => {
  await writeFile(join(root, "file"), "");
  await symlink(join(root, "nowhere"), join(root, "dangling"));
  await symlink(join(root, "loop"), join(root, "loop"));
  const reasons = {
    relative: await resolveWorkspace("some/where"),
    empty: await resolveWorkspace(""),
    missing: await resolveWorkspace(join(root, "missing")),
    dangling: await resolveWorkspace(join(root, "dangling")),
    below: await resolveWorkspace(join(root, "file", "x")),
    nul: await resolveWorkspace(join(root, "a\0b")),
    long: await resolveWorkspace(join(root, "x".repeat(300))),
    file: await resolveWorkspace(join(root, "file")),
    loop: await resolveWorkspace(join(root, "loop")),
  };
  assert.equal(reasons, {
    relative: { ok: false, reason: "not_absolute" },
    empty: { ok: false, reason: "not_absolute" },
    missing: { ok: false, reason: "missing" },
    dangling: { ok: false, reason: "missing" },
    below: { ok: false, reason: "missing" },
    nul: { ok: false, reason: "missing" },
    long: { ok: false, reason: "missing" },
    file: { ok: false, reason: "not_directory" },
    loop: { ok: false, reason: "unreadable" },
  });
});

test("[7 workspace_replaced] a directory that is gone is not the same", async ({ root }) => {
  await mkdir(join(root, "d"));
  const identity = await identityOf(join(root, "d"));
  await rm(join(root, "d"), { recursive: true });
  assert.not(await sameWorkspace(identity));
  await writeFile(join(root, "d"), "");
  assert.not(await sameWorkspace(identity));
});

test("[7 workspace_replaced] another directory at the same path is not the same", async ({ root }) => {
  await mkdir(join(root, "d"));
  const identity = await identityOf(join(root, "d"));
  await rename(join(root, "d"), join(root, "old")); // kept, so that its inode is not used again
  await mkdir(join(root, "d"));
  assert.not(await sameWorkspace(identity));
  await rm(join(root, "d"), { recursive: true });
  await rename(join(root, "old"), join(root, "d"));
  assert.ok(await sameWorkspace(identity), "and the same one again once it is back");
});

test("[7 workspace_replaced] a directory that moved is not the same, also where a symlink leads to it", async ({
  root,
}) => {
  await mkdir(join(root, "d"));
  const identity = await identityOf(join(root, "d"));
  await rename(join(root, "d"), join(root, "moved"));
  await symlink(join(root, "moved"), join(root, "d"));
  assert.not(await sameWorkspace(identity));
});

test("[7 workspace_replaced] a symlink as given that leads elsewhere later is not the same", async ({ root }) => {
  await mkdir(join(root, "one"));
  await mkdir(join(root, "two"));
  await symlink(join(root, "one"), join(root, "link"));
  const identity = await identityOf(join(root, "link"));
  await rm(join(root, "link"));
  await symlink(join(root, "two"), join(root, "link"));
  assert.not(await sameWorkspace(identity));
});

test.run();
