import { realpath } from "node:fs/promises";
import { BASE_KEY, encodeLink, encodeTip, type Link, linkKey, type Tip, tipAfter } from "./chain.js";
import {
  beginChain,
  commitsIn,
  type Database,
  del,
  entriesOf,
  isEmpty,
  open,
  openDatabase,
  put,
  readError,
  settleDamage,
  type Verified,
  verifyDatabase,
  WRITE_BUFFER_BYTES,
} from "./database.js";
import { fileError, prepareDirectory } from "./directory.js";
import { asError, StoreError } from "./errors.js";
import { type Group, planGroup, sizeOf, type Waiting } from "./group.js";
import { boundsOf, checkCommit, checkKey, checkPrefix } from "./keys.js";
import type {
  Backup,
  Change,
  Commit,
  CommitOutcome,
  Entry,
  RangeOptions,
  ReopenOutcome,
  Store,
  StoreReport,
  StoreStatus,
} from "./port.js";
import { changeOf, Watchers } from "./watchers.js";
import { readWitness, WitnessLog } from "./witness.js";

export interface LevelStoreOptions {
  /** Commits whose links are kept to verify the chain at the next open. */
  readonly window?: number;
  /**
   * Bytes of database writes after which the witness begins a new file, keeping the one before. More than LevelDB
   * has in its logs: what left those was synced into tables.
   */
  readonly witnessBytes?: number;
  /** Digests of heads and fences that are kept, so that a compare need not read. */
  readonly digests?: number;
}

const WINDOW = 32_768;
const WITNESS_BYTES = 4 * WRITE_BUFFER_BYTES;
const DIGESTS = 16_384;
/** Bounds of one group: what waits beyond them is the next group. */
const GROUP_COMMITS = 1024;
const GROUP_BYTES = 1024 * 1024;

type Settle = (outcome: CommitOutcome) => void;

/** An open and verified database with what the committer knows about it. */
interface Opened {
  readonly db: Database;
  readonly witness: WitnessLog;
  readonly report: StoreReport;
  /** The last durable commit. */
  tip: Tip;
  /** The places in the chain after each of the kept links, oldest first. */
  readonly links: Tip[];
  /** Remembered heads with the number of the commit that wrote them last, oldest first. */
  readonly heads: Map<string, number>;
  /** Digests of durable values, null where absent, least recently used first. */
  readonly digests: Map<string, string | null>;
}

type State =
  | { readonly is: "open"; readonly opened: Opened }
  /** `left`: the database that is still to be closed. */
  | { readonly is: "faulted"; readonly error: StoreError; readonly left?: Opened }
  | { readonly is: "reopening"; readonly error: StoreError }
  | { readonly is: "closed" };

/**
 * Opens the store of a directory, making it where there is none. What is damaged is in the report of `status()`; the
 * rest works. Rejects with `STORE_LOCKED`, `STORE_UNWRITABLE`, `STORE_DIRECTORY`, `STORE_DAMAGED` or `STORE_IO`.
 */
export async function openLevelStore(dir: string, options: LevelStoreOptions = {}): Promise<Store> {
  const settings = {
    window: options.window ?? WINDOW,
    witnessBytes: options.witnessBytes ?? WITNESS_BYTES,
    digests: options.digests ?? DIGESTS,
  };
  await prepareDirectory(dir);
  // LevelDB tells a second opener within one process by the path alone.
  const real = await realpath(dir).catch((thrown: unknown) => {
    throw fileError(dir, thrown);
  });
  return new LevelStore(real, settings, await openVerified(real, settings, 0));
}

async function openVerified(
  dir: string,
  { witnessBytes }: Required<LevelStoreOptions>,
  acknowledged: number,
): Promise<Opened> {
  await prepareDirectory(dir);
  const db = await openDatabase(dir);
  try {
    if ((await isEmpty(db)) && acknowledged === 0 && (readWitness(dir) ?? []).length === 0) await beginChain(db, 0);
    const verified: Verified = await verifyDatabase(db, dir, acknowledged);
    await settleDamage(db, dir, verified);
    return {
      db,
      witness: new WitnessLog(dir, witnessBytes),
      report: { commits: verified.tip.commit, damage: verified.report },
      tip: verified.tip,
      links: verified.anew ? [] : [...verified.links],
      heads: verified.anew ? new Map() : new Map(verified.heads),
      digests: new Map(),
    };
  } catch (thrown) {
    await db.close().catch(() => {});
    throw thrown instanceof StoreError ? thrown : fileError(dir, thrown);
  }
}

/**
 * LevelDB behind the port. One committer takes everything that waits, writes it as one synced batch and only then
 * answers: parallel synced batches would each hold a thread of libuv and wait for one another all the same.
 *
 * Readers see durable commits only: LevelDB shows a batch after its sync returned, and nothing is read in a store
 * that has faulted, where the log may hold a batch whose outcome is unknown.
 */
class LevelStore implements Store {
  readonly #dir: string;
  readonly #settings: Required<LevelStoreOptions>;
  readonly #watchers: Watchers;
  #state: State;
  #report: StoreReport;
  /** Number of the last commit that was answered with `ok`. */
  #acknowledged: number;
  #queue: Waiting<Settle>[] = [];
  /** Commits in the group under way. */
  #inGroup = 0;
  /** The committer while it works; at most one. */
  #committing: Promise<void> | undefined;
  #reopening: Promise<ReopenOutcome> | undefined;

  constructor(dir: string, settings: Required<LevelStoreOptions>, opened: Opened) {
    this.#dir = dir;
    this.#settings = settings;
    this.#state = { is: "open", opened };
    this.#report = opened.report;
    this.#acknowledged = opened.tip.commit;
    this.#watchers = new Watchers(opened.tip.commit);
  }

  commit(commit: Commit): Promise<CommitOutcome> {
    return new Promise((resolve, reject) => {
      checkCommit(commit);
      switch (this.#state.is) {
        case "open":
          this.#queue.push({ commit, bytes: sizeOf(commit), token: resolve });
          this.#committing ??= this.#commitAll();
          return;
        case "faulted":
        case "reopening":
          return resolve({ outcome: "failed", error: faulted(this.#state.error) });
        case "closed":
          return reject(closed());
        default:
          this.#state satisfies never;
      }
    });
  }

  async get(key: string): Promise<Uint8Array | null> {
    checkKey(key);
    const { db } = this.#opened();
    try {
      return open(key, await db.get(key))?.value ?? null;
    } catch (thrown) {
      throw this.#readError(thrown, key);
    }
  }

  async range(prefix: string, options: RangeOptions): Promise<readonly Entry[]> {
    const { low, lowIncluded, high, highIncluded } = boundsOf(prefix, options);
    const { limit, reverse = false, onDamage } = options;
    const { db } = this.#opened();
    const entries: Entry[] = [];
    const iterator = db.iterator({
      ...(lowIncluded ? { gte: low } : { gt: low }),
      ...(highIncluded ? { lte: high } : { lt: high }),
      reverse,
    });
    try {
      while (entries.length < limit) {
        const page = await iterator.nextv(Math.min(limit - entries.length, 1000));
        if (page.length === 0) break;
        for (const [key, stored] of page) {
          try {
            entries.push({ key, value: open(key, stored)?.value ?? new Uint8Array() });
          } catch (thrown) {
            if (onDamage === undefined) throw thrown;
            onDamage(key);
          }
        }
      }
      return entries;
    } catch (thrown) {
      throw this.#readError(thrown);
    } finally {
      await iterator.close();
    }
  }

  watch(prefix: string, from: number): AsyncIterableIterator<Change> {
    checkPrefix(prefix);
    this.#opened();
    return this.#watchers.watch(prefix, from);
  }

  status(): StoreStatus {
    const status = { commits: this.#acknowledged, waiting: this.#queue.length + this.#inGroup, report: this.#report };
    switch (this.#state.is) {
      case "open":
      case "closed":
        return { state: this.#state.is, ...status };
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
        return { outcome: "ok", report: this.#report };
      case "closed":
        throw closed();
      case "faulted":
      case "reopening":
        this.#reopening ??= this.#reopen().finally(() => {
          this.#reopening = undefined;
        });
        return this.#reopening;
      default:
        return this.#state satisfies never;
    }
  }

  async backup(): Promise<Backup> {
    const { db } = this.#opened();
    const snapshot = db.snapshot();
    try {
      const commits = await commitsIn(db, snapshot);
      return { commits, entries: entriesOf(db, snapshot), close: () => snapshot.close() };
    } catch (thrown) {
      await snapshot.close();
      throw this.#readError(thrown);
    }
  }

  async close(): Promise<void> {
    if (this.#state.is === "closed") return;
    const before = this.#state;
    this.#state = { is: "closed" };
    this.#failWaiting(closed());
    this.#watchers.end(closed(), this.#acknowledged);
    await this.#committing;
    await this.#reopening;
    const opened = before.is === "open" ? before.opened : before.is === "faulted" ? before.left : undefined;
    if (opened !== undefined) await letGo(opened);
  }

  async #reopen(): Promise<ReopenOutcome> {
    if (this.#state.is !== "faulted") throw new StoreError("STORE_INVALID", "Only a faulted store is reopened.");
    const { error, left } = this.#state;
    this.#state = { is: "reopening", error };
    // What closing says is of no use: the database has failed already, and opening it verifies what is there.
    if (left !== undefined) await letGo(left).catch(() => {});
    const opened = await openVerified(this.#dir, this.#settings, this.#acknowledged).catch(asError);
    const ended = this.status().state === "closed";
    if (opened instanceof Error) {
      if (!ended) this.#state = { is: "faulted", error };
      return { outcome: "failed", error: opened };
    }
    if (ended) {
      await letGo(opened);
      return { outcome: "failed", error: closed() };
    }
    this.#state = { is: "open", opened };
    this.#report = opened.report;
    this.#acknowledged = opened.tip.commit;
    this.#watchers.end(error, opened.tip.commit);
    return { outcome: "ok", report: opened.report };
  }

  #opened(): Opened {
    switch (this.#state.is) {
      case "open":
        return this.#state.opened;
      case "faulted":
      case "reopening":
        throw faulted(this.#state.error);
      case "closed":
        throw closed();
      default:
        return this.#state satisfies never;
    }
  }

  /** A read that the end of the store cut short is told of that end. */
  #readError(thrown: unknown, key?: string): StoreError {
    if (this.#state.is === "faulted" || this.#state.is === "reopening") return faulted(this.#state.error);
    return readError(thrown, key);
  }

  async #commitAll(): Promise<void> {
    // One turn of the loop, so that what arrives in the same moment shares the sync.
    await nextTurn();
    while (this.#queue.length > 0 && this.#state.is === "open") {
      await this.#commitGroup(this.#state.opened, this.#takeGroup());
      // Those just answered may have their next commit ready.
      await nextTurn();
    }
    this.#committing = undefined;
  }

  #takeGroup(): readonly Waiting<Settle>[] {
    let count = 0;
    let bytes = 0;
    for (const waiting of this.#queue) {
      if (count > 0 && (count >= GROUP_COMMITS || bytes + waiting.bytes > GROUP_BYTES)) break;
      count += 1;
      bytes += waiting.bytes;
    }
    return this.#queue.splice(0, count);
  }

  async #commitGroup(opened: Opened, taken: readonly Waiting<Settle>[]): Promise<void> {
    this.#inGroup = taken.length;
    const first = opened.tip.commit + 1;
    const group = planGroup(
      taken,
      first,
      (key) => digestAt(opened, key),
      (key) => opened.heads.has(key),
    );
    const { accepted, refused, failed, marks, writes, content, after, compared } = group;
    for (const { waiting, error } of failed) waiting.token({ outcome: "failed", error });

    if (accepted.length > 0) {
      const link: Link = { first, count: accepted.length, previous: opened.tip.hash, content, marks };
      const tip = tipAfter(link);
      const bytes = encodeLink(link);
      const trim = this.#trim(opened, tip);
      const operations = [
        ...writes.map((write) => (write.value === null ? del(write.key) : put(write.key, write.value, write.digest))),
        put(linkKey(tip.commit), bytes),
        ...trim.operations,
      ];
      try {
        await opened.db.batch(operations, { sync: true });
        const written = accepted.reduce((sum, waiting) => sum + waiting.bytes, bytes.length);
        opened.witness.note(tip, marks, written);
      } catch (thrown) {
        return this.#fault(opened, group, asError(thrown));
      }
      opened.tip = tip;
      opened.links.splice(0, trim.links);
      opened.links.push(tip);
      this.#remember(opened, marks, trim.base, after, compared);
      this.#acknowledged = tip.commit;
      for (const [index, waiting] of accepted.entries()) {
        waiting.token({ outcome: "ok", commit: first + index });
        this.#watchers.publish(changeOf(first + index, waiting.commit));
      }
    }
    // A refusal may rest on a commit of the same group; only now is that one there to be read.
    for (const { waiting, key } of refused) waiting.token({ outcome: "conflict", key });
    this.#inGroup = 0;
  }

  /** Takes away links that left the window, some at a time, and moves the base of the chain behind them. */
  #trim({ links }: Opened, tip: Tip) {
    const { window } = this.#settings;
    const oldest = links[0];
    const kept = { operations: [], links: 0, base: 0 };
    if (oldest === undefined || oldest.commit > tip.commit - window - Math.ceil(window / 8)) return kept;
    const gone = links.filter(({ commit }) => commit <= tip.commit - window);
    const base = gone.at(-1);
    if (base === undefined) return kept;
    const operations = [...gone.map(({ commit }) => del(linkKey(commit))), put(BASE_KEY, encodeTip(base))];
    return { operations, links: gone.length, base: base.commit };
  }

  #remember(
    opened: Opened,
    marks: Link["marks"],
    base: number,
    after: ReadonlyMap<string, string | null>,
    compared: ReadonlySet<string>,
  ): void {
    const { heads, digests, witness } = opened;
    for (const { key, commit } of marks) {
      heads.delete(key);
      heads.set(key, commit);
    }
    // A head is forgotten once neither the links nor the witness name it.
    if (base > 0) {
      const forgotten = Math.min(base, witness.coveredFrom);
      for (const [key, commit] of heads) {
        if (commit > forgotten) break;
        heads.delete(key);
      }
    }
    for (const [key, digest] of after) {
      if (!compared.has(key) && !digests.has(key)) continue;
      digests.delete(key);
      digests.set(key, digest);
    }
    for (const key of digests.keys()) {
      if (digests.size <= this.#settings.digests) break;
      digests.delete(key);
    }
  }

  /** A write failed: what was in it is unknown, what waits was not written, and nothing goes on until reopened. */
  #fault(opened: Opened, { accepted, refused }: Group<Settle>, cause: Error): void {
    const error = new StoreError("STORE_FAULTED", "A write to the store failed.", { cause });
    // A closing store stays closed, and its `close` lets go of the database.
    if (this.#state.is === "open") {
      this.#state = { is: "faulted", error, left: opened };
      this.#watchers.end(error, this.#acknowledged);
    }
    for (const waiting of accepted) waiting.token({ outcome: "unknown", error });
    for (const { waiting } of refused) waiting.token({ outcome: "failed", error });
    this.#inGroup = 0;
    this.#failWaiting(error);
  }

  #failWaiting(error: Error): void {
    const waiting = this.#queue;
    this.#queue = [];
    for (const { token } of waiting) token({ outcome: "failed", error });
  }
}

/** The digest of a durable value; null: absent. */
function digestAt({ db, digests }: Opened, key: string): string | null {
  const known = digests.get(key);
  if (known !== undefined) {
    digests.delete(key);
    digests.set(key, known);
    return known;
  }
  let digest: string | null;
  try {
    digest = open(key, db.getSync(key))?.digest ?? null;
  } catch (thrown) {
    throw readError(thrown, key);
  }
  digests.set(key, digest);
  return digest;
}

async function letGo({ db, witness }: Opened): Promise<void> {
  try {
    witness.close();
  } finally {
    await db.close();
  }
}

function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

function faulted(error: Error): StoreError {
  return new StoreError("STORE_FAULTED", "The store has failed and was not reopened yet.", { cause: error });
}

function closed(): StoreError {
  return new StoreError("STORE_CLOSED", "The store is closed.");
}
