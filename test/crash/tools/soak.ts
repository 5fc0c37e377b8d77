// A soak by hand: `node dist/test/crash/tools/soak.js [SECONDS] [CONVERSATIONS] [SUBSCRIBERS]`. Prints a line every ten
// seconds on stderr and the report as JSON on stdout.
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { check } from "../../history/checker.js";
import { Client, Lost, Recorder, Refused } from "./client.js";
import { ServiceProcess, withDirectory } from "./process.js";

const [seconds = 600, conversations = 200, subscribers = 1_000] = process.argv.slice(2).map(Number);

/** Owners that ask and answer at the same time. */
const OWNERS = 20;
/**
 * Conversations whose every request and notification the checker sees, at the pace at which people answer: the search of the
 * checker takes the longer the more there is.
 */
const RECORDED = 4;
const RECORDED_PAUSE_MS = 1_000;
/** One subscriber in so many does not read. */
const STALLED_ONE_IN = 20;
/** Shorter than what the service gives a peer that answers no ping. */
const STALL_MS = 20_000;

class Subscriber {
  version = 0;
  broken = 0;
  client: Client | undefined;

  constructor(
    readonly conversationId: string,
    readonly name: string,
    readonly recorder: Recorder | undefined,
  ) {}

  async connect(url: string, token: string): Promise<void> {
    const client = await Client.open(url, token, this.name, this.recorder);
    this.client = client;
    client.onNotice = ({ method, params }) => {
      if (method !== "conversation_delta") return;
      if (params["fromVersion"] !== this.version) this.broken += 1;
      this.version = Number(params["toVersion"]);
    };
    const { conversationId } = this;
    const { version } = await client.call("conversation_subscribe", { conversationId, events: true });
    this.version = version;
  }
}

function percentile(sorted: readonly number[], of: number): number {
  return Number((sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * of))] ?? 0).toFixed(1));
}

await withDirectory(async (directory) => {
  const service = await ServiceProcess.start({ data: join(directory, "data"), logLevel: "warn" });
  const token = service.operatorToken;
  const recorder = new Recorder();
  recorder.note({ type: "start" });
  const operators = await Promise.all(
    Array.from({ length: OWNERS }, (_, index) =>
      Client.open(service.url, token, `owner-${index}`, index < RECORDED ? recorder : undefined),
    ),
  );
  const [first] = operators;
  if (first === undefined) throw new Error("no owner");
  const ids: string[] = [];
  for (let index = 0; index < conversations; index += 1) {
    const creator = index < RECORDED ? first : (operators.at(-1) ?? first);
    const { conversation } = await creator.call("conversation_create", {
      scope: { kind: "workspace", workspaceId: directory },
    });
    ids.push(conversation.conversationId);
  }
  const followers = Array.from({ length: subscribers }, (_, index) => {
    const place = index % ids.length;
    return new Subscriber(ids[place] ?? "", `subscriber-${index}`, place < RECORDED ? recorder : undefined);
  });
  for (const follower of followers) await follower.connect(service.url, token);
  const stalled = followers.filter((_, index) => index % STALLED_ONE_IN === STALLED_ONE_IN - 1);

  const latencies: number[] = [];
  let answers = 0;
  const faults = new Map<string, number>();
  const until = performance.now() + seconds * 1_000;
  const over = () => performance.now() > until;

  /** Every conversation belongs to one owner, so that its requests come from one recorded connection. */
  async function own(owner: number): Promise<void> {
    const client = operators[owner];
    const mine = ids.filter((_, index) =>
      owner < RECORDED
        ? index === owner
        : index >= RECORDED && (index - RECORDED) % (OWNERS - RECORDED) === owner - RECORDED,
    );
    if (client === undefined || mine.length === 0) return;
    for (let turn = 0; !over(); turn += 1) {
      const conversationId = mine[turn % mine.length] ?? "";
      try {
        const asked = await client.call("request_user_input", {
          conversationId,
          kind: "text",
          prompt: `Question ${turn}?`,
        });
        const began = performance.now();
        const result = await client.call("input_answer", {
          conversationId,
          incarnationId: asked.incarnationId ?? "",
          requestId: asked.question?.requestId ?? "",
          expectedRevision: asked.revision ?? 0,
          answer: { kind: "text", text: `Answer ${turn}` },
        });
        latencies.push(performance.now() - began);
        if (result.status === "resolved") answers += 1;
        const runId = result.question?.continuation?.runId ?? "";
        await client.call("run_claim", { runId });
        await client.call("run_event", { runId, event: { type: "message", text: "thank you", streaming: false } });
        await client.call("run_settle", { runId, state: "completed" });
        if (owner < RECORDED) await new Promise((resolve) => setTimeout(resolve, RECORDED_PAUSE_MS));
      } catch (error) {
        if (error instanceof Lost) return;
        const code = error instanceof Refused ? error.code : String(error);
        faults.set(code, (faults.get(code) ?? 0) + 1);
      }
    }
  }

  async function stall(): Promise<void> {
    while (!over()) {
      for (const { client } of stalled) client?.socket.pause();
      await new Promise((resolve) => setTimeout(resolve, Math.min(STALL_MS, Math.max(0, until - performance.now()))));
      for (const { client } of stalled) client?.socket.resume();
      await new Promise((resolve) => setTimeout(resolve, 2_000));
    }
  }

  const samples: {
    readonly second: number;
    readonly mebibytes: number;
    readonly handles: number;
    readonly answers: number;
  }[] = [];
  const sample = (): void => {
    const handles = readdirSync(`/proc/${service.pid}/fd`).length;
    const second = Math.round(seconds - (until - performance.now()) / 1_000);
    samples.push({ second, mebibytes: Math.round(service.residentBytes / 1_048_576), handles, answers });
    process.stderr.write(`${JSON.stringify(samples.at(-1))}\n`);
  };
  sample();
  const sampling = setInterval(sample, 10_000);
  await Promise.all([...operators.map((_, owner) => own(owner)), stall()]);
  clearInterval(sampling);
  sample();

  // Everything is read now: each subscriber has to have the last state.
  const newest = new Map<string, number>();
  for (const [index, conversationId] of ids.entries()) {
    const reader = operators[index < RECORDED ? index : OWNERS - 1] ?? first;
    const { version } = await reader.call("conversation_subscribe", { conversationId });
    newest.set(conversationId, version);
  }
  const behind = () => followers.filter(({ conversationId, version }) => version !== newest.get(conversationId)).length;
  for (let waits = 0; behind() > 0 && waits < 200; waits += 1) await new Promise((resolve) => setTimeout(resolve, 50));
  recorder.note({ type: "settled" });
  const closed = followers.filter(({ client }) => client?.socket.readyState !== 1).length;
  process.stderr.write(`behind ${behind()}, closed ${closed}; checking ${recorder.records.length} records\n`);
  const violations = check(recorder.records);
  latencies.sort((one, other) => one - other);
  const report = {
    seconds,
    conversations,
    subscribers,
    stalled: stalled.length,
    answers,
    answersPerSecond: Number((answers / seconds).toFixed(1)),
    answerMilliseconds: {
      p50: percentile(latencies, 0.5),
      p95: percentile(latencies, 0.95),
      p99: percentile(latencies, 0.99),
      most: percentile(latencies, 1),
    },
    mebibytes: {
      start: samples[0]?.mebibytes,
      end: samples.at(-1)?.mebibytes,
      most: Math.max(...samples.map((s) => s.mebibytes)),
    },
    handles: { start: samples[0]?.handles, end: samples.at(-1)?.handles },
    brokenChains: followers.reduce((sum, { broken }) => sum + broken, 0),
    withoutLastState: behind(),
    subscribersClosed: closed,
    faults: Object.fromEntries(faults),
    recorded: recorder.records.length,
    violations: violations.slice(0, 20),
    samples,
  };
  process.stdout.write(`${JSON.stringify(report, null, 2)}\n`);
  const bad = report.brokenChains + report.withoutLastState + violations.length + closed;
  process.exitCode = bad === 0 ? 0 : 1;
  await service.stop();
});
process.exit();
