/**
 * The store port: an ordered map of keys to bytes with one conditional, atomic, durable commit.
 *
 * The measure is etcd's `Txn`: compares, then puts and deletes, all or nothing. Nothing here assumes that one process
 * owns the data; that a key belongs to this service is said by the record, not by being found here.
 *
 * Keys are printable ASCII (0x20 to 0x7e), 1 to 1024 characters, ordered bytewise. Values are bytes.
 */

/** One key with its value. */
export interface Entry {
  readonly key: string;
  readonly value: Uint8Array;
}

/** A key that has to hold exactly this value; null: has to be absent. */
export interface Compare {
  readonly key: string;
  readonly value: Uint8Array | null;
}

/** One atomic change. Every key may appear at most once in `puts` and `deletes` together. */
export interface Commit {
  /** Key of the small record that orders all changes of one thing (a conversation); has to be among `puts`. */
  readonly head: string;
  /** What the head has to hold now; null: has to be absent. */
  readonly expected: Uint8Array | null;
  readonly puts: readonly Entry[];
  readonly deletes: readonly string[];
  /** Further records that have to be unchanged, as the responder's credential: no answer commits after its revocation. */
  readonly fence?: readonly Compare[];
}

/** What became of a commit. */
export type CommitOutcome =
  /** Durable. `commit` counts every commit of this store, without a gap. */
  | { readonly outcome: "ok"; readonly commit: number }
  /** A compare did not hold; nothing was written. `key` is the first that did not. */
  | { readonly outcome: "conflict"; readonly key: string }
  /** Certainly not durable: nothing was written. */
  | { readonly outcome: "failed"; readonly error: Error }
  /** The store cannot say. Reopen, then read what is there. */
  | { readonly outcome: "unknown"; readonly error: Error };

/** Bounds of one read; `from` includes its key, `after` does not. With `reverse` both count downwards. */
export interface RangeOptions {
  readonly from?: string;
  readonly after?: string;
  readonly limit: number;
  readonly reverse?: boolean;
  /**
   * Called for each entry whose stored bytes are damaged; the entry is then left out and the others are returned.
   * Without it a damaged entry fails the whole read with `STORE_DAMAGED`.
   */
  readonly onDamage?: (key: string) => void;
}

/** A committed change, seen by a watcher: what one commit did to the keys under the watched prefix. */
export interface Change {
  readonly commit: number;
  /** In the order of the commit: puts, then deletes (value null). Never empty. */
  readonly entries: readonly Compare[];
}

/** A damage found in the store, for the operator and to refuse exactly what it touches. */
export interface Damage {
  readonly kind: DamageKind;
  /** A sentence for the operator; never a value. */
  readonly detail: string;
  /** The head whose record cannot be trusted; absent where the damage cannot be laid to one record. */
  readonly key?: string;
}

export type DamageKind =
  /** Commits that were acknowledged are not there. */
  | "commits_missing"
  /** The records of the commits do not follow from one another. */
  | "chain_broken"
  /** A head does not hold the value that was committed last. */
  | "head_behind"
  /** The database dropped a part of its log when it opened. */
  | "log_dropped"
  /** The stored bytes of a key do not match their digest. */
  | "value_damaged"
  /** The witness file is gone: losses at the end of the log cannot be told. */
  | "witness_missing";

/** What opening found. */
export interface StoreReport {
  /** Commits in the store. */
  readonly commits: number;
  readonly damage: readonly Damage[];
}

export interface StoreStatus {
  /** `faulted`: a write failed; nothing is read or written until `reopen()` has succeeded. */
  readonly state: "open" | "faulted" | "reopening" | "closed";
  /** Number of the last commit known to be durable. */
  readonly commits: number;
  /** Commits that wait for their outcome. */
  readonly waiting: number;
  /** Why it is `faulted`. */
  readonly error?: Error;
  /** What the last successful open or reopen found. */
  readonly report: StoreReport;
}

export type ReopenOutcome =
  | { readonly outcome: "ok"; readonly report: StoreReport }
  | { readonly outcome: "failed"; readonly error: Error };

/** One consistent state of the store, for a backup. */
export interface Backup {
  /** Number of the last commit in it. */
  readonly commits: number;
  /** Every key in order, once. Fails with `STORE_DAMAGED` at a damaged entry: a backup never hides one. */
  readonly entries: AsyncIterable<Entry>;
  /** Releases the state. Iterating to the end does not. */
  close(): Promise<void>;
}

/** Every method but `status` rejects with a `StoreError` where the store is not open. */
export interface Store {
  /** Commits in the order of the calls. Rejects (`STORE_INVALID`) only where the commit itself is malformed. */
  commit(commit: Commit): Promise<CommitOutcome>;
  /** The durable value, or null where the key is absent. */
  get(key: string): Promise<Uint8Array | null>;
  /** Durable entries under `prefix` in key order. */
  range(prefix: string, options: RangeOptions): Promise<readonly Entry[]>;
  /**
   * Changes under `prefix` of every commit after number `from`, in order, each after it is durable. Ends with
   * `STORE_BEHIND` where the reader is too far behind to get every change, and with `STORE_FAULTED` or
   * `STORE_CLOSED` as the store does: read again and watch from there.
   */
  watch(prefix: string, from: number): AsyncIterableIterator<Change>;
  status(): StoreStatus;
  /** After a fault: close, open, verify. Without a fault only reports. Calls at the same time share one attempt. */
  reopen(): Promise<ReopenOutcome>;
  backup(): Promise<Backup>;
  /** Waits for the commits under way, fails those that wait, and lets go of everything. */
  close(): Promise<void>;
}
