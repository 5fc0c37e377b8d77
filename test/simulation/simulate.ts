import { check } from "../history/checker.js";
import { canonical } from "../history/operations.js";
import type { Members } from "./clients.js";
import { type Move, play } from "./schedule.js";
import { quiet } from "./tasks.js";
import type { World } from "./world.js";

/** What one schedule came to. */
export interface Outcome {
  /** Empty: nothing was wrong. */
  readonly faults: readonly string[];
  /** Every frame, crash and start in order: what two runs of the same schedule have to agree in. */
  readonly trace: readonly string[];
}

/** Plays a schedule to its end, lets everything come to rest, and judges what every client saw. */
export async function simulate(world: World, moves: readonly Move[]): Promise<Outcome> {
  const faults: string[] = [];
  const rejected = (error: unknown): void => {
    faults.push(`nobody took care of: ${error instanceof Error ? error.stack : String(error)}`);
  };
  process.on("unhandledRejection", rejected);
  try {
    await world.start();
    for (const move of moves) await play(world, move);
    await rest(world);
    faults.push(...(await stuck(world)));
    world.crash();
    await rest(world);
    faults.push(...(await pendingAfterStart(world)));
  } finally {
    await quiet();
    process.off("unhandledRejection", rejected);
  }
  faults.push(...world.faults, ...world.ledger.faults);
  for (const { kind, message, at } of check(world.recorder.records)) faults.push(`${kind} at ${at}: ${message}`);
  return { faults, trace: world.recorder.trace };
}

/** Mends everything, lets everybody read, and waits until nothing moves any more; then someone reads everything. */
async function rest(world: World): Promise<void> {
  world.disk.mend();
  world.slowLooks = false;
  for (const path of world.inodes.keys()) world.inodes.set(path, { "/work/a": "1", "/work/b": "2" }[path] ?? "3");
  for (let turn = 0; turn < 4; turn += 1) {
    await world.start();
    await world.tasks.drain();
    for (const { socket } of world.people) {
      if (socket === null) continue;
      socket.stalled = false;
      socket.read();
    }
    await world.tasks.drain();
    world.environment.advance(5_000);
    await world.tasks.drain();
  }
  const operator = world.person("operator-1");
  const known = await world.ask(operator, "service_status");
  if (known?.ok !== true) {
    // The owner has lost the operator's token to a rotation whose outcome was unknown: a start gives a new one.
    world.crash();
    await world.start();
    await world.tasks.drain();
  }
  for (const { conversationId } of world.seen) {
    await world.ask(operator, "conversation_subscribe", { conversationId, events: true });
    await world.ask(operator, "conversation_tail", { conversationId, limit: 500 });
    await world.ask(operator, "conversation_show", { conversationId });
  }
  await world.ask(operator, "inbox_subscribe");
  await world.ask(operator, "input_list");
  await world.ask(operator, "device_list");
  await world.ask(operator, "credential_list");
  world.recorder.add({ type: "settled" });
}

/** Once all agents have ended, no run may be left: whatever a fault of the store interrupted has come to its end. */
async function stuck(world: World): Promise<readonly string[]> {
  const faults: string[] = [];
  const operator = world.person("operator-1");
  for (let turn = 0; turn < 40; turn += 1) {
    const agents = world.agents.filter(({ isOver }) => !isOver);
    if (agents.length === 0) break;
    for (const agent of agents) agent.end(0);
    await world.tasks.drain();
    world.environment.advance(5_000);
    await world.tasks.drain();
  }
  for (const { conversationId } of world.seen) {
    const isCommand = conversationId === world.seen[0]?.conversationId;
    for (let turn = 0; turn < 20; turn += 1) {
      const reply = await world.ask(operator, "conversation_show", { conversationId });
      if (reply?.ok !== true) {
        faults.push(`${conversationId} is not to be had: ${canonical(reply)}`);
        break;
      }
      const { activeRun, queuedRuns, driver } = reply.result["conversation"] as Members;
      if (activeRun == null) {
        if (queuedRuns !== 0) faults.push(`${conversationId}: ${String(queuedRuns)} runs wait for nothing`);
        break;
      }
      const { runId, state } = activeRun as Members;
      if (isCommand) {
        faults.push(`run ${String(runId)} of ${conversationId} is ${String(state)} and nobody works on it`);
        break;
      }
      if ((driver as Members)["kind"] === "native") faults.push(`a run in ${conversationId}, which is driven natively`);
      if (state === "accepted") await world.ask(operator, "run_claim", { runId });
      await world.ask(operator, "run_settle", { runId, state: "completed" });
    }
  }
  return faults;
}

/** After the last start nothing is pending and nothing runs, whatever was going on (contract 8). */
async function pendingAfterStart(world: World): Promise<readonly string[]> {
  const reply = await world.ask(world.person("operator-1"), "conversation_list");
  if (reply?.ok !== true) return [`the conversations cannot be listed: ${canonical(reply)}`];
  const conversations = reply.result["conversations"] as readonly Members[];
  const faults = conversations
    .filter(({ question, activeRun, queuedRuns }) => question != null || activeRun != null || queuedRuns !== 0)
    .map((conversation) => `live after a start: ${canonical(conversation)}`);
  if (conversations.length !== world.seen.length) faults.push(`${conversations.length} conversations are listed`);
  return faults;
}
