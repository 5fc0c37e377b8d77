import { StoreError } from "./errors.js";
import { boundsOf, checkCommit, checkKey, checkPrefix, within } from "./keys.js";
import type {
  Backup,
  Change,
  Commit,
  CommitOutcome,
  Compare,
  Damage,
  Entry,
  RangeOptions,
  ReopenOutcome,
  Store,
  StoreReport,
  StoreStatus,
} from "./port.js";
import { changeOf, Watchers } from "./watchers.js";

/** What becomes of one commit. `before` and `after` hold it up: before it is durable, and before its caller hears. */
export type CommitFate = { readonly before?: Promise<void>; readonly after?: Promise<void> } & (
  | { readonly kind: "ok" }
  /** Not durable, and the store says so; the store has faulted. */
  | { readonly kind: "failed"; readonly error: Error }
  /** The store cannot say, and has faulted; `durable` is the truth, seen after `reopen()`. */
  | { readonly kind: "unknown"; readonly error: Error; readonly durable: boolean }
);

/** What becomes of reading one record. */
export type ReadFate =
  | { readonly kind: "ok" }
  | { readonly kind: "error"; readonly error: Error }
  /** The adapter notices: `STORE_DAMAGED`, or left out of a range that asks for it. */
  | { readonly kind: "damaged" }
  /** Nobody notices: these bytes are read instead. */
  | { readonly kind: "value"; readonly value: Uint8Array };

/** Faults to inject; what is not there is well. */
export interface StoreFaults {
  /** Asked once for each commit whose compares hold, in order; `attempt` counts them from 1. */
  commit?(commit: Commit, attempt: number): CommitFate;
  /** Asked for each record that a `get` or `range` comes to; not for compares. */
  read?(key: string): ReadFate;
  /** Asked at each reopen: an error keeps the store faulted. */
  reopen?(): Error | undefined;
}

/** A store in memory with the contract of the durable ones, for simulation. It has no clock and draws no lots. */
export interface MemoryStore extends Store {
  /**
   * Ends this life as a crash would: commits under way never settle, and whatever is called later is `STORE_CLOSED`.
   * Returns a store over what was durable at that moment.
   */
  crash(faults?: StoreFaults): MemoryStore;
}

/** Makes an empty store. `damage` is what its report says of the open. */
export function openMemoryStore(faults: StoreFaults = {}, damage: readonly Damage[] = []): MemoryStore {
  return new InMemory(new Map(), 0, faults, damage);
}

type State =
  | { readonly is: "open" }
  | { readonly is: "faulted" | "reopening"; readonly error: StoreError }
  | { readonly is: "closed" }
  | { readonly is: "crashed" };

interface Waiting {
  readonly commit: Commit;
  readonly settle: (outcome: CommitOutcome) => void;
}

class InMemory implements MemoryStore {
  /** What a crash leaves. Values are copies: what a caller does to its bytes later changes nothing here. */
  readonly #durable: Map<string, Uint8Array>;
  readonly #faults: StoreFaults;
  readonly #watchers: Watchers;
  readonly #damage: readonly Damage[];
  #commits: number;
  #acknowledged: number;
  #attempts = 0;
  #state: State = { is: "open" };
  #queue: Waiting[] = [];
  #committing: Promise<void> | undefined;
  #reopening: Promise<ReopenOutcome> | undefined;
  #current = 0;

  constructor(durable: Map<string, Uint8Array>, commits: number, faults: StoreFaults, damage: readonly Damage[]) {
    this.#durable = durable;
    this.#faults = faults;
    this.#damage = damage;
    this.#commits = commits;
    this.#acknowledged = commits;
    this.#watchers = new Watchers(commits);
  }

  commit(commit: Commit): Promise<CommitOutcome> {
    return new Promise((resolve, reject) => {
      checkCommit(commit);
      switch (this.#state.is) {
        case "open":
          this.#queue.push({ commit, settle: resolve });
          this.#committing ??= this.#commitAll();
          return;
        case "faulted":
        case "reopening":
          return resolve({ outcome: "failed", error: faulted(this.#state.error) });
        case "closed":
        case "crashed":
          return reject(closed());
        default:
          this.#state satisfies never;
      }
    });
  }

  async get(key: string): Promise<Uint8Array | null> {
    checkKey(key);
    this.#check();
    return this.#read(key);
  }

  async range(prefix: string, options: RangeOptions): Promise<readonly Entry[]> {
    const bounds = boundsOf(prefix, options);
    this.#check();
    const { limit, reverse = false, onDamage } = options;
    const keys = this.#keys().filter((key) => within(key, bounds));
    if (reverse) keys.reverse();
    const entries: Entry[] = [];
    for (const key of keys) {
      if (entries.length >= limit) break;
      try {
        const value = this.#read(key);
        if (value !== null) entries.push({ key, value });
      } catch (thrown) {
        if (onDamage === undefined || !(thrown instanceof StoreError) || thrown.code !== "STORE_DAMAGED") throw thrown;
        onDamage(key);
      }
    }
    return entries;
  }

  watch(prefix: string, from: number): AsyncIterableIterator<Change> {
    checkPrefix(prefix);
    this.#check();
    return this.#watchers.watch(prefix, from);
  }

  status(): StoreStatus {
    const status = {
      commits: this.#acknowledged,
      waiting: this.#queue.length + this.#current,
      report: this.#report(),
    };
    switch (this.#state.is) {
      case "open":
      case "closed":
        return { state: this.#state.is, ...status };
      case "crashed":
        return { state: "closed", ...status };
      case "faulted":
      case "reopening":
        return { state: this.#state.is, ...status, error: this.#state.error };
      default:
        return this.#state satisfies never;
    }
  }

  async reopen(): Promise<ReopenOutcome> {
    switch (this.#state.is) {
      case "open":
        return { outcome: "ok", report: this.#report() };
      case "closed":
      case "crashed":
        throw closed();
      case "faulted":
      case "reopening":
        this.#reopening ??= this.#reopen(this.#state.error);
        return this.#reopening;
      default:
        return this.#state satisfies never;
    }
  }

  async backup(): Promise<Backup> {
    this.#check();
    const entries = this.#keys().map((key): Entry => ({ key, value: this.#read(key) ?? new Uint8Array() }));
    return {
      commits: this.#commits,
      entries: (async function* () {
        yield* entries;
      })(),
      close: async () => {},
    };
  }

  async close(): Promise<void> {
    if (this.#state.is === "closed" || this.#state.is === "crashed") return;
    this.#state = { is: "closed" };
    this.#failWaiting(closed());
    this.#watchers.end(closed(), this.#acknowledged);
    await this.#committing;
  }

  crash(faults: StoreFaults = this.#faults): MemoryStore {
    this.#state = { is: "crashed" };
    this.#queue = [];
    this.#watchers.end(closed(), this.#acknowledged);
    return new InMemory(new Map(this.#durable), this.#commits, faults, this.#damage);
  }

  #report(): StoreReport {
    return { commits: this.#acknowledged, damage: this.#damage };
  }

  #keys(): string[] {
    return [...this.#durable.keys()].sort((a, b) => (a < b ? -1 : 1));
  }

  #check(): void {
    switch (this.#state.is) {
      case "open":
        return;
      case "faulted":
      case "reopening":
        throw faulted(this.#state.error);
      case "closed":
      case "crashed":
        throw closed();
      default:
        this.#state satisfies never;
    }
  }

  #read(key: string): Uint8Array | null {
    const fate = this.#faults.read?.(key) ?? { kind: "ok" };
    switch (fate.kind) {
      case "ok":
        return this.#durable.get(key)?.slice() ?? null;
      case "error":
        throw fate.error;
      case "damaged":
        throw new StoreError("STORE_DAMAGED", "The stored bytes do not match their digest.", { key });
      case "value":
        return fate.value;
      default:
        return fate satisfies never;
    }
  }

  async #reopen(error: StoreError): Promise<ReopenOutcome> {
    this.#state = { is: "reopening", error };
    await this.#committing;
    const refused = this.#faults.reopen?.();
    this.#reopening = undefined;
    if (this.#isOver()) return { outcome: "failed", error: closed() };
    if (refused !== undefined) {
      this.#state = { is: "faulted", error };
      return { outcome: "failed", error: refused };
    }
    this.#state = { is: "open" };
    this.#acknowledged = this.#commits;
    this.#watchers.end(error, this.#commits);
    return { outcome: "ok", report: this.#report() };
  }

  #isOver(): boolean {
    return this.#state.is === "closed" || this.#state.is === "crashed";
  }

  async #commitAll(): Promise<void> {
    // Not within the call, as no durable store answers there.
    await Promise.resolve();
    for (let next = this.#queue.shift(); next !== undefined; next = this.#queue.shift()) {
      this.#current = 1;
      await this.#commitOne(next);
      this.#current = 0;
      if (this.#state.is === "crashed") return;
    }
    this.#committing = undefined;
  }

  async #commitOne({ commit, settle }: Waiting): Promise<void> {
    const broken = [{ key: commit.head, value: commit.expected }, ...(commit.fence ?? [])].find(
      (one) => !this.#holds(one),
    );
    if (broken !== undefined) return settle({ outcome: "conflict", key: broken.key });
    this.#attempts += 1;
    const fate = this.#faults.commit?.(commit, this.#attempts) ?? { kind: "ok" };
    if (fate.before !== undefined) await fate.before;
    if (this.#state.is === "crashed") return;
    switch (fate.kind) {
      case "ok": {
        const number = this.#apply(commit);
        if (fate.after !== undefined) await fate.after;
        if (this.#crashed()) return;
        this.#acknowledged = number;
        settle({ outcome: "ok", commit: number });
        this.#watchers.publish(changeOf(number, commit));
        return;
      }
      case "failed":
        if (fate.after !== undefined) await fate.after;
        if (this.#crashed()) return;
        this.#fault(fate.error);
        return settle({ outcome: "failed", error: fate.error });
      case "unknown":
        if (fate.durable) this.#apply(commit);
        if (fate.after !== undefined) await fate.after;
        if (this.#crashed()) return;
        this.#fault(fate.error);
        return settle({ outcome: "unknown", error: fate.error });
      default:
        fate satisfies never;
    }
  }

  #crashed(): boolean {
    return this.#state.is === "crashed";
  }

  #holds({ key, value }: Compare): boolean {
    const present = this.#durable.get(key);
    if (present === undefined || value === null) return present === undefined && value === null;
    return Buffer.compare(present, value) === 0;
  }

  #apply({ puts, deletes }: Commit): number {
    for (const { key, value } of puts) this.#durable.set(key, value.slice());
    for (const key of deletes) this.#durable.delete(key);
    this.#commits += 1;
    return this.#commits;
  }

  #fault(cause: Error): void {
    const error = new StoreError("STORE_FAULTED", "A write to the store failed.", { cause });
    if (this.#state.is === "open") {
      this.#state = { is: "faulted", error };
      this.#watchers.end(error, this.#acknowledged);
    }
    this.#failWaiting(error);
  }

  #failWaiting(error: StoreError): void {
    const waiting = this.#queue;
    this.#queue = [];
    for (const { settle } of waiting) settle({ outcome: "failed", error });
  }
}

function faulted(error: StoreError): StoreError {
  return new StoreError("STORE_FAULTED", "The store has failed and was not reopened yet.", { cause: error });
}

function closed(): StoreError {
  return new StoreError("STORE_CLOSED", "The store is closed.");
}
