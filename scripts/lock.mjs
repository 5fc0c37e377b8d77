// A lock between processes, as a directory: made whole beside its place and renamed into it, so that nobody ever sees
// it without its owner. A holder touches it while it works; one that died is taken over.
import { randomUUID } from "node:crypto";
import { mkdirSync, readFileSync, renameSync, rmSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { hostname } from "node:os";
import { dirname, join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";

const touchEveryMs = 2_000;
const silentAfterMs = 60_000;
const lookAgainMs = 200;

function readOwner(lock) {
  try {
    return JSON.parse(readFileSync(join(lock, "owner.json"), "utf8"));
  } catch {
    return undefined;
  }
}

function isAlive(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error.code === "EPERM";
  }
}

/** A lock is stale when its process on this machine is gone, or when nothing has touched it for a minute. */
function isStale(lock, owner) {
  const stat = statSync(lock, { throwIfNoEntry: false });
  if (stat === undefined) return false;
  if (Date.now() - stat.mtimeMs > silentAfterMs) return true;
  return owner !== undefined && owner.host === hostname() && !isAlive(owner.pid);
}

function tryAcquire(lock, token) {
  const own = `${lock}.${token}`;
  mkdirSync(own, { recursive: true });
  writeFileSync(join(own, "owner.json"), JSON.stringify({ pid: process.pid, host: hostname(), token }));
  try {
    renameSync(own, lock); // fails on a directory that is not empty, which a lock never is
    return true;
  } catch (error) {
    rmSync(own, { recursive: true, force: true });
    if (["ENOTEMPTY", "EEXIST", "EPERM", "ENOTDIR"].includes(error.code)) return false;
    throw error;
  }
}

/** Moves a stale lock away; puts it back when, in between, it has become somebody's living lock. */
function removeStale(lock, owner) {
  const aside = `${lock}.${randomUUID()}`;
  try {
    renameSync(lock, aside);
  } catch {
    return;
  }
  if (readOwner(aside)?.token !== owner?.token) {
    try {
      renameSync(aside, lock);
      return;
    } catch {
      // somebody holds it again already
    }
  }
  rmSync(aside, { recursive: true, force: true });
}

/**
 * Runs `work` while holding the lock directory `lock`; waits for as long as somebody else works.
 * `onWait(owner)` is called once when it has to.
 */
export async function withLock(lock, work, onWait = () => {}) {
  mkdirSync(dirname(lock), { recursive: true });
  const token = randomUUID();
  let waited = false;
  while (!tryAcquire(lock, token)) {
    const owner = readOwner(lock);
    if (isStale(lock, owner)) {
      removeStale(lock, owner);
      continue;
    }
    if (!waited) onWait(owner);
    waited = true;
    await wait(lookAgainMs);
  }
  const touch = setInterval(() => {
    try {
      const now = new Date();
      utimesSync(lock, now, now);
    } catch {
      // taken away by hand: the work goes on
    }
  }, touchEveryMs);
  const release = () => {
    if (readOwner(lock)?.token === token) rmSync(lock, { recursive: true, force: true });
  };
  process.once("exit", release);
  try {
    return await work();
  } finally {
    clearInterval(touch);
    process.off("exit", release);
    release();
  }
}
