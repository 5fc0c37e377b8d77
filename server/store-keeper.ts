import type { Environment } from "./environment.js";
import { Fault } from "./fault.js";
import type { Log } from "./log.js";
import type { Store } from "./store/port.js";

/** How long after a vain attempt the next one is made, in milliseconds. */
const TRY_AGAIN_MS = 1_000;

/**
 * Brings the store back after a fault: nothing is read or written before it has been closed, reopened and verified.
 * Contract section 8.
 */
export class StoreKeeper {
  readonly #store: Store;
  readonly #environment: Environment;
  readonly #log: Log;
  readonly #failed: () => void;
  #attempt: Promise<boolean> | null = null;
  #scheduled = false;
  /** What is kept in memory was read before the fault. */
  #stale = false;
  /** Reads again what is kept in memory of the store, before anything is said from it. */
  readAgain: () => Promise<void> = async () => undefined;

  constructor(store: Store, environment: Environment, log: Log, failed: () => void) {
    this.#failed = failed;
    this.#store = store;
    this.#environment = environment;
    this.#log = log;
  }

  /** Whether the store can be used now; where it cannot, one attempt to bring it back is made, and later ones follow. */
  isBack(): Promise<boolean> {
    if (this.#attempt !== null) return this.#attempt;
    if (this.#store.status().state === "open" && !this.#stale) return Promise.resolve(true);
    this.#attempt = this.#reopen().finally(() => {
      this.#attempt = null;
    });
    return this.#attempt;
  }

  /** Reads the store. @throws {Fault} `storage_unavailable` where it cannot be read. */
  async reading<T>(read: () => Promise<T>): Promise<T> {
    try {
      if (!(await this.isBack())) throw new Error("the store is not open");
      return await read();
    } catch (error) {
      if (error instanceof Fault) throw error;
      throw new Fault("storage_unavailable", "the store cannot be read now; try again, or ask: clankie status");
    }
  }

  async #reopen(): Promise<boolean> {
    if (!this.#stale) this.#failed();
    this.#stale = true;
    const outcome = await this.#store.reopen();
    switch (outcome.outcome) {
      case "ok":
        try {
          await this.readAgain();
        } catch (error) {
          this.#log.error({ error: String(error) }, "the store was reopened and could not be read");
          this.#again();
          return false;
        }
        this.#stale = false;
        this.#log.warn({ commits: outcome.report.commits, damage: outcome.report.damage }, "the store is back");
        return true;
      case "failed":
        this.#log.error({ error: String(outcome.error) }, "the store could not be reopened");
        this.#again();
        return false;
      default:
        return outcome satisfies never;
    }
  }

  #again(): void {
    if (this.#scheduled || this.#store.status().state === "closed") return;
    this.#scheduled = true;
    this.#environment.after(TRY_AGAIN_MS, () => {
      this.#scheduled = false;
      void this.isBack();
    });
  }
}
