import { randomBytes, randomUUID } from "node:crypto";
import type { Environment } from "../server/environment.js";

/** A service's environment whose time moves only when a test moves it. */
export class TestEnvironment implements Environment {
  #now = Date.parse("2026-10-04T12:00:00.000Z");
  #timers: { readonly at: number; readonly task: () => void }[] = [];

  now(): number {
    return this.#now;
  }

  uuid(): string {
    return randomUUID();
  }

  secret(): string {
    return randomBytes(32).toString("base64url");
  }

  after(ms: number, task: () => void): () => void {
    const timer = { at: this.#now + ms, task };
    this.#timers.push(timer);
    return () => {
      this.#timers = this.#timers.filter((each) => each !== timer);
    };
  }

  /** Lets `ms` milliseconds pass: what is due by then runs, in order, each at its own moment. */
  pass(ms: number): void {
    const until = this.#now + ms;
    for (;;) {
      const next = this.#timers.filter(({ at }) => at <= until).sort((one, other) => one.at - other.at)[0];
      if (next === undefined) break;
      this.#timers = this.#timers.filter((each) => each !== next);
      this.#now = Math.max(this.#now, next.at);
      next.task();
    }
    this.#now = until;
  }
}
