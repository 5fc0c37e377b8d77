import { execFileSync } from "node:child_process";
import { createReadStream } from "node:fs";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { QuestionResult, Target } from "../../../protocol/question.js";
import { check } from "../../history/checker.js";
import type { Violation } from "../../history/records.js";
import { Client, Lost, Recorder, Refused } from "./client.js";
import { DidNotStart, ServiceProcess, type StartOptions } from "./process.js";

export interface CrashLoop {
  /** A directory of its own; the data directory is made in it. */
  readonly directory: string;
  /** How many lives of the service are ended with SIGKILL; one more is looked at and stopped. */
  readonly kills: number;
  readonly seed: number;
  readonly conversations?: number;
  readonly start?: Partial<Omit<StartOptions, "data">>;
  /** Ends a life: by default SIGKILL at a random moment under load. */
  readonly endLife?: (service: ServiceProcess, random: () => number) => Promise<void>;
  /** What befalls the files between two lives: a power cut. */
  readonly between?: (data: string) => Promise<void>;
  readonly progress?: (lives: number, report: CrashReport) => void;
}

export interface CrashReport {
  kills: number;
  /** Answers of which the owner was told that they are stored. */
  acknowledged: number;
  /** Of those, how many a later life did not have, or had otherwise. */
  lost: number;
  runs: number;
  /** Runs whose agent was started more than once. */
  doubled: number;
  /** Requests whose outcome stayed unknown. */
  uncertain: number;
  damage: string[];
  violations: readonly Violation[];
}

interface Acknowledged {
  readonly conversationId: string;
  readonly requestId: string;
  readonly answer: string;
  readonly runId: string;
  /** In which life of the service. */
  readonly life: number;
}

/**
 * A conversation keeps 32 receipts, and each life cancels one question more: the newest answers of the newest lives are
 * certainly still there.
 */
const KEPT = 16;
const KEPT_LIVES = 5;

/** A small generator of numbers in [0, 1) that a seed repeats. */
function randomOf(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

/**
 * Kills the real service again and again while owners ask, answer, repeat and cancel; restarts it, reads back every answer
 * that was acknowledged, counts how often each run's agent was started, and lets the history checker judge all of it.
 */
export async function crashLoop(options: CrashLoop): Promise<CrashReport> {
  const { directory, kills, seed, conversations = 4, between } = options;
  const random = randomOf(seed);
  const recorder = new Recorder();
  const report: CrashReport = {
    kills: 0,
    acknowledged: 0,
    lost: 0,
    runs: 0,
    doubled: 0,
    uncertain: 0,
    damage: [],
    violations: [],
  };
  const workspace = join(directory, "workspace");
  await mkdir(workspace);
  const agents = watchAgents(directory, recorder, report);
  const known: Acknowledged[] = [];
  const ids: string[] = [];
  const endLife = options.endLife ?? killAtRandom;
  try {
    for (let life = 0; life <= kills; life += 1) {
      const service = await startOf(options, life === kills);
      report.damage.push(...service.damage);
      recorder.note({ type: "start" });
      const operator = await Client.open(service.url, service.operatorToken, `operator#${life}`, recorder);
      const second = await Client.open(service.url, service.operatorToken, `second#${life}`, recorder);
      try {
        await readBack(
          operator,
          known.filter((each) => each.life >= life - KEPT_LIVES),
          report,
        );
        for (const conversationId of ids)
          await operator.call("conversation_subscribe", { conversationId, events: true });
      } catch (error) {
        if (!(error instanceof Lost)) throw error;
      }
      if (life === kills) {
        await operator.close();
        await second.close();
        await service.stop();
        break;
      }
      const owners = Array.from({ length: conversations }, (_, index) =>
        own(index, { life, operator, second, ids, known, report, random, workspace, pipe: agents.pipe }),
      );
      await endLife(service, random);
      await service.kill();
      report.kills += 1;
      await Promise.all(owners);
      await Promise.all([operator.closed, second.closed]);
      await between?.(join(directory, "data"));
      options.progress?.(life + 1, report);
    }
  } finally {
    agents.close();
  }
  report.violations = check(recorder.records);
  return report;
}

/** A life that a fault ends before it is ready is a life too; the last one has no such fault. */
async function startOf({ directory, start = {} }: CrashLoop, last: boolean): Promise<ServiceProcess> {
  const { under: _, ...plain } = start;
  const given = { logLevel: "warn", ...(last ? plain : start), data: join(directory, "data") };
  try {
    return await ServiceProcess.start(given);
  } catch (error) {
    if (!(error instanceof DidNotStart) || start.under === undefined) throw error;
    return await ServiceProcess.start({ logLevel: "warn", ...plain, data: join(directory, "data") });
  }
}

async function killAtRandom(service: ServiceProcess, random: () => number): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, 30 + random() * 400));
  process.kill(service.pid, "SIGKILL");
}

interface Owner {
  readonly life: number;
  readonly operator: Client;
  readonly second: Client;
  readonly ids: string[];
  readonly known: Acknowledged[];
  readonly report: CrashReport;
  readonly random: () => number;
  readonly workspace: string;
  readonly pipe: string;
}

/** Asks and answers in one conversation until the service is gone. */
async function own(index: number, owner: Owner): Promise<void> {
  const { operator, ids, random, workspace, pipe } = owner;
  try {
    let conversationId = ids[index];
    if (conversationId === undefined) {
      // One write to the pipe, and a moment for whoever reads it, before the run can end.
      const script = `printf '%s %s %s\\n' "$CLANKIE_CONVERSATION" "$CLANKIE_RUN" "$(tail -n 1)" >> '${pipe}'; sleep 0.05`;
      const { conversation } = await operator.call("conversation_create", {
        scope: { kind: "workspace", workspaceId: workspace },
        runner: { kind: "command", command: ["sh", "-c", script] },
      });
      conversationId = conversation.conversationId;
      ids[index] = conversationId;
      await operator.call("conversation_subscribe", { conversationId, events: true });
    }
    for (;;) {
      const asked = await operator.call("request_user_input", { conversationId, kind: "text", prompt: "Which one?" });
      const target = targetOf(asked);
      if (target === undefined) continue;
      if (random() < 0.1) await operator.call("input_cancel", target);
      else await answer(target, `answer ${Math.floor(random() * 1e9)}`, owner);
      if (random() < 0.1) await operator.call("conversation_send", { conversationId, message: "go on" });
    }
  } catch (error) {
    if (error instanceof Lost) return;
    if (error instanceof Refused && ["shutting_down", "storage_unavailable", "queue_full"].includes(error.code)) {
      if (operator.socket.readyState !== operator.socket.OPEN) return;
      await new Promise((resolve) => setTimeout(resolve, 50));
      return own(index, owner);
    }
    throw error;
  }
}

/** Answers, at times twice at once from two clients, or with something else at the same moment. */
async function answer(
  target: Target,
  text: string,
  { life, operator, second, known, report, random }: Owner,
): Promise<void> {
  const other = random() < 0.2 ? `${text} or not` : text;
  const sent = [
    operator.call("input_answer", { ...target, answer: { kind: "text", text } }),
    ...(random() < 0.5 ? [second.call("input_answer", { ...target, answer: { kind: "text", text: other } })] : []),
  ];
  const outcomes = await Promise.allSettled(sent);
  for (const outcome of outcomes) {
    if (outcome.status === "rejected") {
      report.uncertain += 1;
      continue;
    }
    const { status, question } = outcome.value;
    if (status !== "resolved" || question?.answer?.kind !== "text" || question.continuation === undefined) continue;
    const { conversationId, requestId } = target;
    if (known.some((each) => each.requestId === requestId)) continue;
    report.acknowledged += 1;
    known.push({ conversationId, requestId, answer: question.answer.text, runId: question.continuation.runId, life });
  }
  const failed = outcomes.find((outcome) => outcome.status === "rejected");
  if (failed?.status === "rejected") throw failed.reason;
}

/** Reads the receipts of the newest acknowledged answers of each conversation. */
async function readBack(operator: Client, known: readonly Acknowledged[], report: CrashReport): Promise<void> {
  for (const conversationId of new Set(known.map((each) => each.conversationId))) {
    const newest = known.filter((each) => each.conversationId === conversationId).slice(-KEPT);
    for (const { requestId, answer: text, runId } of newest) {
      const { question } = await operator.call("input_get", { conversationId, requestId });
      const stored = question?.answer?.kind === "text" ? question.answer.text : undefined;
      if (stored !== text || question?.continuation?.runId !== runId) report.lost += 1;
    }
  }
}

/** Every agent says through one pipe that it was started, for which run, and with what as the last line of its message. */
function watchAgents(directory: string, recorder: Recorder, report: CrashReport) {
  const pipe = join(directory, "agents");
  execFileSync("mkfifo", [pipe]);
  const started = new Set<string>();
  const input = createReadStream(pipe, { flags: "r+" });
  createInterface({ input }).on("line", (line) => {
    const [conversationId = "", runId = "", ...rest] = line.split(" ");
    report.runs += 1;
    if (started.has(runId)) report.doubled += 1;
    started.add(runId);
    const requestId = /"requestId":"([0-9a-f-]{36})"/.exec(rest.join(" "))?.[1];
    recorder.note({ type: "run", conversationId, runId, ...(requestId !== undefined && { requestId }) });
  });
  return {
    pipe,
    close: () => {
      // A read of a pipe that nobody writes to would keep the process; this ends it.
      execFileSync("sh", ["-c", `echo end end > '${pipe}' &`]);
      input.destroy();
    },
  };
}

function targetOf({ conversationId, incarnationId, revision, question }: QuestionResult): Target | undefined {
  if (incarnationId === undefined || revision === undefined || question?.status !== "pending") return undefined;
  return { conversationId, incarnationId, requestId: question.requestId, expectedRevision: revision };
}
