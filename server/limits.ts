import type { Method } from "../protocol/operations.js";
import type { Environment } from "./environment.js";
import type { Presented } from "./principals/registry.js";

/** How many requests a second on average, and how many at once after a pause. */
export interface Rate {
  readonly perSecond: number;
  readonly burst: number;
}

/**
 * What one principal may ask, over all of its connections. Generous: what stays below it was never a flood. Reading,
 * answering and cancelling a question is counted apart, so that nothing else an owner's client does keeps the owner's
 * answer out.
 */
export interface Rates {
  readonly operator: Rate;
  readonly others: Rate;
  /** `input_get`, `input_answer`, `input_cancel`. */
  readonly answering: Rate;
  /** Everybody at one address who is nobody yet. */
  readonly strangers: Rate;
}

const RATES: Rates = {
  operator: { perSecond: 5_000, burst: 10_000 },
  others: { perSecond: 500, burst: 2_000 },
  answering: { perSecond: 5_000, burst: 10_000 },
  strangers: { perSecond: 50, burst: 500 },
};

const ANSWERING: ReadonlySet<Method> = new Set<Method>(["input_get", "input_answer", "input_cancel"]);

/** Buckets above this number are looked through for full ones, which say nothing. */
const SWEEP_ABOVE = 1_024;

/** A bucket: so many tokens at a moment. */
interface Level {
  tokens: number;
  at: number;
  readonly rate: Rate;
}

/** Token buckets by principal, and by address for who is no principal. Contract section 5, `rate_limited`. */
export class RateLimits {
  readonly #environment: Pick<Environment, "now">;
  readonly #rates: Rates;
  readonly #levels = new Map<string, Level>();

  constructor(environment: Pick<Environment, "now">, rates: Rates = RATES) {
    this.#environment = environment;
    this.#rates = rates;
  }

  /**
   * Takes one request: 0, or the milliseconds to wait where it may not be now. `method` is null for a frame that is no
   * request.
   */
  take(presented: Presented | null, address: string, method: Method | null): number {
    if (presented === null) return this.#take(`address/${address}`, this.#rates.strangers);
    const principal = nameOf(presented);
    if (method !== null && ANSWERING.has(method)) return this.#take(`answering/${principal}`, this.#rates.answering);
    const isOperator = presented.kind === "stored" && presented.stamp.kind === "operator";
    return this.#take(principal, isOperator ? this.#rates.operator : this.#rates.others);
  }

  /** Buckets that are kept; full ones are forgotten. */
  get size(): number {
    return this.#levels.size;
  }

  #take(name: string, rate: Rate): number {
    const now = this.#environment.now();
    const level = this.#levels.get(name) ?? { tokens: rate.burst, at: now, rate };
    refill(level, now);
    if (level.tokens < 1) return Math.ceil(((1 - level.tokens) / rate.perSecond) * 1_000);
    level.tokens -= 1;
    if (!this.#levels.has(name)) {
      if (this.#levels.size >= SWEEP_ABOVE) this.#forgetFull(now);
      this.#levels.set(name, level);
    }
    return 0;
  }

  #forgetFull(now: number): void {
    for (const [name, level] of this.#levels) {
      refill(level, now);
      if (level.tokens >= level.rate.burst) this.#levels.delete(name);
    }
  }
}

/** A clock that was set back gives nothing and takes nothing. */
function refill(level: Level, now: number): void {
  const seconds = Math.max(0, now - level.at) / 1_000;
  level.tokens = Math.min(level.rate.burst, level.tokens + seconds * level.rate.perSecond);
  level.at = now;
}

/** One name a principal, whatever the generation of its token. */
export const nameOf = (presented: Presented): string =>
  presented.kind === "run" ? `run/${presented.runId}` : `${presented.stamp.kind}/${presented.stamp.id}`;
