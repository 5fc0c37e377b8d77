import type { Checked } from "../../protocol/checked.js";
import { applyMergePatch } from "../../protocol/merge-patch.js";
import { pauseBefore } from "./backoff.js";
import type { Clock } from "./clock.js";
import { type CallError, FaultError } from "./errors.js";

/** A copy at one version, as a subscription gives it. */
export interface Copy<State> {
  readonly state: State;
  readonly version: number;
}

export interface Delta {
  readonly fromVersion: number;
  readonly toVersion: number;
  readonly patch: unknown;
}

export interface MirrorOptions<State> {
  readonly clock: Clock;
  readonly random: () => number;
  /** Subscribes on the connection there is; `settle` is called once, in the order of the service's frames. */
  readonly subscribe: (settle: (outcome: Copy<State> | CallError) => void) => void;
  readonly check: (state: unknown) => Checked<State>;
  readonly changed: (copy: Copy<State>) => void;
  /** There is no copy that may be shown as current, until `changed` is called again. */
  readonly stale: () => void;
  /** The service does not give this copy; nothing more comes until the link has been connected anew. */
  readonly failed: (error: CallError) => void;
}

/** Faults that pass: the subscription is tried again. */
const PASSING: readonly string[] = ["storage_unavailable", "rate_limited", "shutting_down", "internal_error"];

/**
 * The client's copy of something the service keeps, held current by deltas. A delta that does not start at the copy's
 * version, or cannot be applied, throws the copy away, and the mirror subscribes again; so does a new connection: nothing
 * from before it is kept.
 */
export class Mirror<State> {
  readonly #options: MirrorOptions<State>;
  #copy: Copy<State> | undefined;
  /** Deltas that came before the reply to the subscription that is under way; nothing while none is. */
  #early: Delta[] | undefined;
  /** Counts subscriptions, so that a late reply to an old one is nobody's. */
  #subscription = 0;
  #attempt = 0;
  #connected = false;
  #stopRetry: () => void = () => {};

  constructor(options: MirrorOptions<State>) {
    this.#options = options;
  }

  get copy(): Copy<State> | undefined {
    return this.#copy;
  }

  connected(): void {
    this.#connected = true;
    this.#attempt = 0;
    this.#subscribe();
  }

  disconnected(): void {
    this.#connected = false;
    this.#discard();
  }

  close(): void {
    this.#connected = false;
    this.#subscription += 1;
    this.#copy = undefined;
    this.#stopRetry();
  }

  delta(delta: Delta): void {
    if (this.#copy !== undefined) this.#apply(this.#copy, delta);
    else this.#early?.push(delta);
  }

  #apply(copy: Copy<State>, { fromVersion, toVersion, patch }: Delta): void {
    const state = fromVersion === copy.version ? this.#patched(copy.state, patch) : undefined;
    if (state === undefined) {
      this.#again();
      return;
    }
    this.#attempt = 0;
    this.#copy = { state, version: toVersion };
    this.#options.changed(this.#copy);
  }

  /** A delta may overtake the reply that it follows; those of an earlier subscription are in the snapshot already. */
  #began(copy: Copy<State>, early: readonly Delta[]): void {
    this.#copy = copy;
    this.#options.changed(copy);
    for (const delta of early)
      if (this.#copy !== undefined && delta.toVersion > copy.version) this.#apply(this.#copy, delta);
  }

  #patched(state: State, patch: unknown): State | undefined {
    try {
      const checked = this.#options.check(applyMergePatch(state, patch));
      return checked.ok ? checked.value : undefined;
    } catch (error) {
      if (error instanceof RangeError) return undefined; // nested so deep that it is nothing the contract describes
      throw error;
    }
  }

  #discard(): void {
    this.#subscription += 1;
    this.#early = undefined;
    this.#stopRetry();
    if (this.#copy === undefined) return;
    this.#copy = undefined;
    this.#options.stale();
  }

  /** The first time at once; a service whose deltas never fit is asked at growing intervals. */
  #again(): void {
    this.#discard();
    if (!this.#connected) return;
    this.#attempt += 1;
    if (this.#attempt === 1) this.#subscribe();
    else this.#subscribeIn(pauseBefore(this.#attempt, this.#options.random));
  }

  #subscribeIn(ms: number): void {
    this.#stopRetry = this.#options.clock.after(ms, () => this.#subscribe());
  }

  #subscribe(): void {
    this.#subscription += 1;
    this.#early = [];
    const subscription = this.#subscription;
    this.#options.subscribe((outcome) => {
      if (subscription !== this.#subscription) return;
      const early = this.#early ?? [];
      this.#early = undefined;
      if (!(outcome instanceof Error)) {
        this.#began(outcome, early);
      } else if (outcome instanceof FaultError && !PASSING.includes(outcome.code)) {
        this.#options.failed(outcome);
      } else if (this.#connected) {
        this.#attempt = Math.max(1, this.#attempt); // never at once after an error
        this.#again();
      }
    });
  }
}
