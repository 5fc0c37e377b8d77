import { readdir, readFile } from "node:fs/promises";

/** Milliseconds that a group is given to vanish once it was killed; a process in a kernel call may take longer. */
const killedWaitMs = 1_000;

/**
 * Ends every process of a group: SIGTERM, SIGKILL after `graceMs` milliseconds, and resolves when all have ended. What
 * has ended already costs nothing. Processes that left the group (`setsid`) are not reached. Never throws.
 */
export async function endProcessGroup(group: number, graceMs: number): Promise<void> {
  if (!signalGroup(group, "SIGTERM")) return;
  if (await endsWithin(group, graceMs)) return;
  if (!signalGroup(group, "SIGKILL")) return;
  await endsWithin(group, killedWaitMs);
}

/** False where the group has no process any more. */
function signalGroup(group: number, signal: NodeJS.Signals | 0): boolean {
  try {
    process.kill(-group, signal);
    return true;
  } catch (error) {
    // EPERM: there are some, of another user, and we may not signal them.
    return !(error instanceof Error && "code" in error && error.code === "ESRCH");
  }
}

async function endsWithin(group: number, limitMs: number): Promise<boolean> {
  const deadline = performance.now() + limitMs;
  for (let pause = 2; ; pause = Math.min(pause * 2, 100)) {
    if (!signalGroup(group, 0) || (await onlyZombies(group))) return true;
    const left = deadline - performance.now();
    if (left <= 0) return false;
    await new Promise((resolve) => setTimeout(resolve, Math.min(pause, left)));
  }
}

/**
 * Whether all that is left of a group has ended and is only waiting for its parent to notice. In a container the first
 * process often never does, and a signal then reaches such a group for ever. False where there is no /proc.
 */
async function onlyZombies(group: number): Promise<boolean> {
  const pids = await readdir("/proc").catch(() => []);
  let zombies = 0;
  for (const pid of pids) {
    if (!/^\d+$/.test(pid)) continue;
    const stat = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => "");
    // The fields after the command, which may hold anything: state, parent, group.
    const [state, , itsGroup] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    if (itsGroup !== String(group)) continue;
    if (state !== "Z" && state !== "X") return false;
    zombies += 1;
  }
  return zombies > 0;
}
