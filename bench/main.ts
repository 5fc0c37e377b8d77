import { once } from "node:events";
import { mkdir, mkdtemp, realpath, rm } from "node:fs/promises";
import type { AddressInfo } from "node:net";
import { cpus, tmpdir } from "node:os";
import { join } from "node:path";
import { Level } from "level";
import { WebSocketServer } from "ws";
import { answerCommit } from "./answer-commit.js";
import { Client } from "./client.js";
import { type Ready, ServiceUnderTest } from "./service.js";

/**
 * `npm run bench`: accepted answers a second through the socket, and their latency, as ratios to what the same disk and
 * the same kind of socket do without us, from one run on one machine. It prints; it never passes or fails.
 */

/** How many clients at once, and how many answers are measured with them. */
const ROUNDS = [
  { clients: 1, answers: 256 },
  { clients: 32, answers: 1_024 },
  { clients: 256, answers: 2_048 },
] as const;
const WARM_UP = 256;

type Database = Level<string, Uint8Array>;

/** Calls `task` `count` times, `width` at once; how many a second, and how long each took, in milliseconds. */
async function measured(width: number, count: number, task: (index: number, lane: number) => Promise<unknown>) {
  const took: number[] = [];
  let next = 0;
  const started = performance.now();
  await Promise.all(
    Array.from({ length: width }, async (_, lane) => {
      for (let index = next++; index < count; index = next++) {
        const before = performance.now();
        await task(index, lane);
        took.push(performance.now() - before);
      }
    }),
  );
  const seconds = (performance.now() - started) / 1_000;
  took.sort((one, other) => one - other);
  const at = (part: number): number => took[Math.min(took.length - 1, Math.floor(took.length * part))] ?? Number.NaN;
  return { perSecond: count / seconds, median: at(0.5), p95: at(0.95) };
}

/** One synced batch with the bytes of an answer's commit, under keys of its own. */
function rawBatch(database: Database) {
  const { puts } = answerCommit();
  let count = 0;
  return (): Promise<void> => {
    count += 1;
    const prefix = String(count).padStart(8, "0");
    return database.batch(
      // As long as the key that it stands for.
      puts.map(({ key, value }) => ({ type: "put" as const, key: prefix + key.slice(prefix.length), value })),
      { sync: true },
    );
  };
}

/** A `ws` server that answers each request after one synced batch, with a reply as long as an answer's. */
async function echoServer(batch: () => Promise<void>, reply: string) {
  const server = new WebSocketServer({ host: "127.0.0.1", port: 0, perMessageDeflate: false });
  await once(server, "listening");
  server.on("connection", (socket) => {
    socket.on("message", (data) => {
      const { id } = JSON.parse(String(data)) as { readonly id: number };
      void batch().then(() => socket.send(reply.replace(/"id":\d+/, `"id":${id}`)));
    });
  });
  const { port } = server.address() as AddressInfo;
  return { url: `ws://127.0.0.1:${port}`, close: () => server.close() };
}

const say = (text: string): void => void process.stdout.write(`${text}\n`);
const round = (value: number, digits = 2): string => value.toFixed(digits);

async function main(root: string): Promise<void> {
  const directory = join(root, "workspace");
  await mkdir(directory);
  const database: Database = new Level(join(root, "raw"), { valueEncoding: "view" });
  await database.open();
  const batch = rawBatch(database);
  const service = await ServiceUnderTest.start(join(root, "data"));
  const first = await service.connect();
  const answer = (client: Client, ready: Ready | undefined) => client.request("input_answer", ready ?? {});
  const prepare = async (count: number): Promise<Ready[]> => {
    const ready: Ready[] = [];
    while (ready.length < count) {
      ready.push(...(await service.prepare(first, directory, Math.min(128, count - ready.length))));
    }
    return ready;
  };

  const bytes = answerCommit().puts.reduce((sum, { key, value }) => sum + key.length + value.length, 0);
  say(`${cpus().length} processors, Node ${process.version}; an answer's commit has ${bytes} bytes`);
  let sample = "";
  for (const ready of await prepare(WARM_UP)) sample = await answer(first, ready);
  if (!sample.includes('"status":"resolved"')) throw new Error(`an answer was not accepted: ${sample}`);
  await measured(32, WARM_UP, batch);

  say("clients   answers/s   raw synced batches/s   ratio   median ms   p95 ms");
  for (const { clients, answers } of ROUNDS) {
    const ready = await prepare(answers);
    const lanes = await Promise.all(Array.from({ length: clients }, () => service.connect()));
    const before = await measured(clients, answers, batch);
    const ours = await measured(clients, answers, async (index, lane) => {
      const reply = await answer(lanes[lane] ?? first, ready[index]);
      if (!reply.includes('"status":"resolved"')) throw new Error(`an answer was not accepted: ${reply}`);
    });
    const after = await measured(clients, answers, batch);
    const raw = (before.perSecond + after.perSecond) / 2;
    say(
      [
        String(clients).padStart(7),
        round(ours.perSecond, 0).padStart(11),
        round(raw, 0).padStart(22),
        round(ours.perSecond / raw).padStart(7),
        round(ours.median).padStart(11),
        round(ours.p95).padStart(8),
      ].join(" "),
    );
    for (const lane of lanes) lane.close();
  }

  const ready = await prepare(256);
  const echo = await echoServer(batch, sample);
  const client = await Client.connect(echo.url);
  const before = await measured(1, 256, () => client.request("input_answer", ready[0] ?? {}));
  const ours = await measured(1, ready.length, (index) => answer(first, ready[index]));
  const after = await measured(1, 256, () => client.request("input_answer", ready[0] ?? {}));
  const raw = { median: (before.median + after.median) / 2, p95: (before.p95 + after.p95) / 2 };
  say("latency of one answer against a ws echo with one synced batch:");
  say(`  median ${round(ours.median)} ms to ${round(raw.median)} ms, ratio ${round(ours.median / raw.median)}`);
  say(`  p95    ${round(ours.p95)} ms to ${round(raw.p95)} ms, ratio ${round(ours.p95 / raw.p95)}`);

  client.close();
  echo.close();
  first.close();
  await service.stop();
  await database.close();
}

const root = await realpath(await mkdtemp(join(tmpdir(), "clankie-bench-")));
try {
  await main(root);
} finally {
  await rm(root, { recursive: true, force: true });
}
