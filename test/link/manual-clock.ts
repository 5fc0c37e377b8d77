import type { Clock } from "../../clients/link/clock.js";

/** A clock that moves only when it is told to. */
export class ManualClock implements Clock {
  #now = 1_000_000;
  #tasks: { readonly at: number; readonly task: () => void }[] = [];

  now(): number {
    return this.#now;
  }

  after(ms: number, task: () => void): () => void {
    const entry = { at: this.#now + ms, task };
    this.#tasks.push(entry);
    return () => {
      this.#tasks = this.#tasks.filter((other) => other !== entry);
    };
  }

  /** Lets `ms` pass and runs what falls due, in order. */
  advance(ms: number): void {
    const end = this.#now + ms;
    for (;;) {
      const due = this.#tasks.filter(({ at }) => at <= end).sort((a, b) => a.at - b.at)[0];
      if (due === undefined) break;
      this.#tasks = this.#tasks.filter((other) => other !== due);
      this.#now = due.at;
      due.task();
    }
    this.#now = end;
  }
}
