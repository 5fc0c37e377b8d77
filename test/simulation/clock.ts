import type { Environment } from "../../server/environment.js";

interface Timer {
  readonly at: number;
  readonly number: number;
  readonly task: () => void;
}

/** Time, ids and secrets of a simulated world: counted, never drawn and never measured. */
export class SimulatedEnvironment implements Environment {
  #now = Date.UTC(2026, 0, 1);
  #ids = 0;
  #timers: Timer[] = [];
  #numbers = 0;

  now(): number {
    // Every look at the clock is a moment of its own, so that order can be told by it.
    this.#now += 1;
    return this.#now;
  }

  uuid(): string {
    this.#ids += 1;
    return `00000000-0000-4000-8000-${this.#ids.toString(16).padStart(12, "0")}`;
  }

  secret(): string {
    this.#ids += 1;
    return Buffer.from(`secret ${this.#ids}`.padStart(32, "~")).toString("base64url");
  }

  after(ms: number, task: () => void): () => void {
    this.#numbers += 1;
    const timer = { at: this.#now + ms, number: this.#numbers, task };
    this.#timers.push(timer);
    return () => {
      this.#timers = this.#timers.filter((each) => each !== timer);
    };
  }

  /** Another world's, which begins where this one is. */
  fork(): SimulatedEnvironment {
    const forked = new SimulatedEnvironment();
    forked.#now = this.#now;
    forked.#ids = this.#ids;
    return forked;
  }

  get timers(): number {
    return this.#timers.length;
  }

  /** Lets time pass; what is due runs in its order. */
  advance(ms: number): void {
    const until = this.#now + ms;
    for (;;) {
      const due = this.#timers
        .filter(({ at }) => at <= until)
        .sort((one, other) => one.at - other.at || one.number - other.number)[0];
      if (due === undefined) break;
      this.#timers = this.#timers.filter((each) => each !== due);
      this.#now = Math.max(this.#now, due.at);
      due.task();
    }
    this.#now = Math.max(this.#now, until);
  }

  /** A crash: nothing that was to be done is done. */
  dropTimers(): void {
    this.#timers = [];
  }
}
