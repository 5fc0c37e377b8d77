import {
  type CommitFate,
  type MemoryStore,
  openMemoryStore,
  type ReadFate,
  type StoreFaults,
} from "../../server/store/memory.js";
import type {
  Commit,
  CommitOutcome,
  Entry,
  RangeOptions,
  ReopenOutcome,
  Store,
  StoreStatus,
} from "../../server/store/port.js";
import type { Ledger } from "./ledger.js";
import type { Tasks } from "./tasks.js";

/** What a commit may meet. */
export type CommitFault =
  /** Fails before it is durable, and the store says so. */
  | "failed"
  /** Is durable, and the store cannot say so. */
  | "lost"
  /** Is torn: not durable, and the store cannot say so. */
  | "torn";

export type ReadFault =
  /** The disk gives an error. */
  | "error"
  /** The bytes do not match their digest. */
  | "damaged"
  /** The bytes are others, and match. */
  | "corrupt";

/** The faults of a simulated disk, and how slow it is; they outlive the service. */
export class Disk implements StoreFaults {
  slowCommits = false;
  slowReads = false;
  /** While it refuses, a store that has faulted cannot be opened again. */
  refuses = false;
  #armed: (CommitFault | undefined)[] = [];
  #reading: { readonly fault: ReadFault; readonly key: string } | null = null;
  #errors = 0;
  readonly #tasks: Tasks;
  readonly #ledger: Ledger;

  constructor(tasks: Tasks, ledger: Ledger) {
    this.#tasks = tasks;
    this.#ledger = ledger;
  }

  /** What the commit after the next `later` ones meets. */
  arm(fault: CommitFault, later = 0): void {
    while (this.#armed.length < later) this.#armed.push(undefined);
    this.#armed[later] = fault;
  }

  /** Errors: the next `count` reads fail. Others: what is under the prefix is read so until it is mended. */
  armRead(fault: ReadFault, key: string, count: number): void {
    if (fault === "error") this.#errors = count;
    else this.#reading = { fault, key };
  }

  mend(): void {
    this.slowCommits = false;
    this.slowReads = false;
    this.refuses = false;
    this.#armed = [];
    this.#reading = null;
    this.#errors = 0;
  }

  commit(commit: Commit): CommitFate {
    const fault = this.#armed.shift();
    const before = this.slowCommits ? this.#tasks.pause(`commit ${commit.head}`) : undefined;
    const isDurable = fault === undefined || fault === "lost";
    const written = (): void => {
      if (isDurable) this.#ledger.written(commit);
    };
    let after: Promise<void> | undefined;
    let isWritten = false;
    // The store asks for `after` once the commit is applied: that is the moment it is durable.
    const held = {
      ...(before !== undefined && { before }),
      get after(): Promise<void> {
        if (!isWritten) written();
        isWritten = true;
        after ??= pause();
        return after;
      },
    };
    const pause = (): Promise<void> =>
      this.slowCommits ? this.#tasks.pause(`committed ${commit.head}`) : Promise.resolve();
    const error = new Error("the disk failed");
    switch (fault) {
      case undefined:
        return Object.defineProperties({ kind: "ok" as const }, Object.getOwnPropertyDescriptors(held));
      case "failed":
        return Object.defineProperties({ kind: "failed" as const, error }, Object.getOwnPropertyDescriptors(held));
      case "lost":
      case "torn":
        return Object.defineProperties(
          { kind: "unknown" as const, error, durable: isDurable },
          Object.getOwnPropertyDescriptors(held),
        );
      default:
        return fault satisfies never;
    }
  }

  read(key: string): ReadFate {
    if (this.#errors > 0) {
      this.#errors -= 1;
      return { kind: "error", error: new Error("the disk cannot be read") };
    }
    if (this.#reading !== null && key.startsWith(this.#reading.key)) {
      return this.#reading.fault === "damaged"
        ? { kind: "damaged" }
        : { kind: "value", value: new TextEncoder().encode('{"format":1,"version":"corrupt"}') };
    }
    return { kind: "ok" };
  }

  reopen(): Error | undefined {
    return this.refuses ? new Error("the disk is still away") : undefined;
  }
}

/** A store whose reads take as long as the schedule wants, before and after the disk was looked at. */
export class SlowStore implements Store {
  readonly #inner: MemoryStore;
  readonly #disk: Disk;
  readonly #tasks: Tasks;

  constructor(inner: MemoryStore, disk: Disk, tasks: Tasks) {
    this.#inner = inner;
    this.#disk = disk;
    this.#tasks = tasks;
  }

  /** What a crash leaves. */
  crash(): MemoryStore {
    return this.#inner.crash(this.#disk);
  }

  commit(commit: Commit): Promise<CommitOutcome> {
    return this.#inner.commit(commit);
  }

  get(key: string): Promise<Uint8Array | null> {
    return this.#slowly(key, () => this.#inner.get(key));
  }

  range(prefix: string, options: RangeOptions): Promise<readonly Entry[]> {
    return this.#slowly(prefix, () => this.#inner.range(prefix, options));
  }

  watch(prefix: string, from: number): ReturnType<Store["watch"]> {
    return this.#inner.watch(prefix, from);
  }

  status(): StoreStatus {
    return this.#inner.status();
  }

  async reopen(): Promise<ReopenOutcome> {
    if (this.#disk.slowReads) await this.#tasks.pause("reopen");
    return this.#inner.reopen();
  }

  backup(): ReturnType<Store["backup"]> {
    return this.#inner.backup();
  }

  close(): Promise<void> {
    return this.#inner.close();
  }

  async #slowly<T>(what: string, read: () => Promise<T>): Promise<T> {
    if (this.#disk.slowReads) await this.#tasks.pause(`read ${what}`);
    const result = await read();
    if (this.#disk.slowReads) await this.#tasks.pause(`have read ${what}`);
    return result;
  }
}

export const emptyStore = (disk: Disk): MemoryStore => openMemoryStore(disk);
