import { Counter, Gauge, Histogram, Registry } from "prom-client";

/** What an operator watches and alerts on. Names and meanings: docs/operations.md. */
export class Metrics {
  readonly registry = new Registry();
  readonly requests = new Counter({
    name: "clankie_requests_total",
    help: "Requests over the socket by method and outcome (ok or the fault's code).",
    labelNames: ["method", "outcome"] as const,
    registers: [this.registry],
  });
  readonly requestSeconds = new Histogram({
    name: "clankie_request_seconds",
    help: "Time from a request's frame to its reply, by method.",
    labelNames: ["method"] as const,
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10],
    registers: [this.registry],
  });
  readonly answers = new Counter({
    name: "clankie_answers_total",
    help: "Answers by outcome: stored, repeated, or the reason they were refused for.",
    labelNames: ["outcome"] as const,
    registers: [this.registry],
  });
  readonly questions = new Counter({
    name: "clankie_questions_total",
    help: "Questions by what became of them: asked, submitted, or the reason they were cancelled for.",
    labelNames: ["outcome"] as const,
    registers: [this.registry],
  });
  readonly runs = new Counter({
    name: "clankie_runs_total",
    help: "Runs by phase: accepted, completed, failed, cancelled.",
    labelNames: ["phase"] as const,
    registers: [this.registry],
  });
  readonly unauthenticated = new Counter({
    name: "clankie_unauthenticated_total",
    help: "Connections and requests refused for their credential, and wrong pairing codes.",
    registers: [this.registry],
  });
  readonly rateLimited = new Counter({
    name: "clankie_rate_limited_total",
    help: "Frames refused because their sender had sent too many.",
    registers: [this.registry],
  });
  readonly turnedAway = new Counter({
    name: "clankie_strangers_turned_away_total",
    help: "Connections ended unauthenticated because newer ones came: somebody floods.",
    registers: [this.registry],
  });
  readonly storeFaults = new Counter({
    name: "clankie_store_faults_total",
    help: "Times the store failed and had to be reopened.",
    registers: [this.registry],
  });
  readonly lastBackup = new Gauge({
    name: "clankie_last_backup_timestamp_seconds",
    help: "When the last whole backup was read, in seconds since the epoch; 0 where there was none since the start.",
    registers: [this.registry],
  });

  constructor(read: {
    readonly connections: () => number;
    readonly pending: () => number;
    readonly runs: () => number;
    readonly commits: () => number;
    readonly waiting: () => number;
    readonly storeReady: () => boolean;
    readonly damage: () => number;
  }) {
    this.#gauge("clankie_connections", "Open sockets.", read.connections);
    this.#gauge("clankie_pending_questions", "Questions that wait for an answer.", read.pending);
    this.#gauge("clankie_command_runs", "Agent commands that are running.", read.runs);
    this.#gauge("clankie_store_commits", "Commits in the store, by its own unbroken count.", read.commits);
    this.#gauge("clankie_store_waiting", "Commits that wait for the disk.", read.waiting);
    this.#gauge("clankie_store_ready", "1 while the store takes commits.", () => (read.storeReady() ? 1 : 0));
    this.#gauge("clankie_store_damage", "Damages found when the store was opened.", read.damage);
  }

  #gauge(name: string, help: string, value: () => number): void {
    new Gauge({
      name,
      help,
      registers: [this.registry],
      collect() {
        this.set(value());
      },
    });
  }
}
