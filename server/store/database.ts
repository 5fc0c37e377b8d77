import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { realpath } from "node:fs/promises";
import { join } from "node:path";
import { Level } from "level";
import {
  ABSENT,
  BASE_KEY,
  DAMAGE_KEY,
  decodeLink,
  decodeTip,
  encodeTip,
  LINK_END,
  LINK_PREFIX,
  lastOf,
  linkKey,
} from "./chain.js";
import { digestOf, seal, sealed, unseal } from "./digest.js";
import { databaseIn, findDatabase } from "./directory.js";
import { asError, codeOf, StoreError } from "./errors.js";
import { fromBytes, toBytes } from "./json.js";
import { ABOVE } from "./keys.js";
import type { Damage, DamageKind, Entry } from "./port.js";
import { type Verdict, verify } from "./verify.js";
import { putAside, readWitness } from "./witness.js";

export type Database = Level<string, Buffer>;
export type Snapshot = ReturnType<Database["snapshot"]>;

/** Bytes of LevelDB's write buffer; up to two are in its logs at a time. */
export const WRITE_BUFFER_BYTES = 4 * 1024 * 1024;

/**
 * Opens LevelDB. The binding offers neither `paranoid_checks` nor `verify_checksums`, and the first would not be
 * wanted: it fails the whole open at one bad byte of a log, where we open, find by chain and witness what is missing,
 * and refuse that alone. What the second would do for reads, the seal on every value does. Nothing ever calls
 * `repair()`: it drops what it cannot read.
 */
export async function openDatabase(dir: string): Promise<Database> {
  const path = databaseIn(await realpath(dir));
  if (openHere.has(path)) throw openError(path, new StoreError("STORE_LOCKED", "Open in this process."));
  openHere.add(path);
  try {
    const db = await openAt(path);
    db.once("closed", () => openHere.delete(path));
    return db;
  } catch (thrown) {
    openHere.delete(path);
    throw thrown;
  }
}

/**
 * Databases that this process has open. LevelDB must not be asked for one of them again: it opens and closes the LOCK
 * file before it refuses, and closing any descriptor of a file lets go of the locks that the process has on it.
 */
const openHere = new Set<string>();

async function openAt(path: string): Promise<Database> {
  const found = await findDatabase(path);
  if (found === "remains") {
    throw new StoreError(
      "STORE_DAMAGED",
      `The database in ${path} has lost its CURRENT file. Nothing was changed; restore a backup into a new directory.`,
    );
  }
  const db: Database = new Level<string, Buffer>(path, {
    keyEncoding: "utf8",
    valueEncoding: "buffer",
    createIfMissing: found === "nothing",
    writeBufferSize: WRITE_BUFFER_BYTES,
  });
  try {
    await db.open();
    return db;
  } catch (thrown) {
    const cause = thrown instanceof Error && thrown.cause !== undefined ? thrown.cause : thrown;
    throw openError(path, cause);
  }
}

/** Whether this process has the database of a directory open: its lock does not keep this process out. */
export async function isOpenHere(dir: string): Promise<boolean> {
  return openHere.has(databaseIn(await realpath(dir)));
}

function openError(path: string, cause: unknown): StoreError {
  switch (codeOf(cause)) {
    case "STORE_LOCKED":
    case "LEVEL_LOCKED":
      return new StoreError("STORE_LOCKED", `The data directory is in use by another service (${path}).`, { cause });
    case "LEVEL_CORRUPTION":
      return new StoreError(
        "STORE_DAMAGED",
        `The database in ${path} is damaged and does not open. Nothing was changed; restore a backup into a new directory.`,
        { cause },
      );
    default:
      return new StoreError("STORE_IO", `The database in ${path} does not open.`, { cause });
  }
}

/** The store's error for a failed read. */
export function readError(thrown: unknown, key?: string): StoreError {
  if (thrown instanceof StoreError) return thrown;
  const about = key === undefined ? { cause: thrown } : { cause: thrown, key };
  switch (codeOf(thrown)) {
    case "LEVEL_CORRUPTION":
      return new StoreError("STORE_DAMAGED", "The database found damaged data.", about);
    case "LEVEL_DATABASE_NOT_OPEN":
    case "LEVEL_ITERATOR_NOT_OPEN":
      return new StoreError("STORE_CLOSED", "The store was closed during the read.", about);
    default:
      return new StoreError("STORE_IO", "The database cannot be read.", about);
  }
}

/** The value under a key with its digest; null: absent. Throws `STORE_DAMAGED` where the bytes are not to be trusted. */
export function open(
  key: string,
  stored: Buffer | undefined,
): { readonly value: Uint8Array; readonly digest: string } | null {
  if (stored === undefined) return null;
  const opened = unseal(key, stored);
  if (opened === null) throw new StoreError("STORE_DAMAGED", "The stored bytes do not match their digest.", { key });
  return opened;
}

/** A batch operation that stores a value. */
export function put(key: string, value: Uint8Array, digest = digestOf(key, value)) {
  return { type: "put", key, value: seal(digest, value) } as const;
}

/** A batch operation that deletes a key. */
export function del(key: string) {
  return { type: "del", key } as const;
}

/** What verification made of an open database. */
export interface Verified extends Verdict {
  /** What is to be reported: found now, or before and not yet accepted by an operator. */
  readonly report: readonly Damage[];
  /** The damage record to keep, or null where it stays as it is. */
  readonly record: DamageRecord | null;
  /** Whether chain and witness have to begin anew. */
  readonly anew: boolean;
}

/** Damage that was found, kept until an operator accepts it. */
export interface DamageRecord {
  readonly damage: readonly Damage[];
  /** Lines of the database's log that are known. */
  readonly drops: readonly string[];
}

/** Verifies an open database against its chain and witness; changes nothing. */
export async function verifyDatabase(db: Database, dir: string, acknowledged: number): Promise<Verified> {
  const base = await getOr(db, BASE_KEY);
  const links: { readonly key: string; readonly value: Uint8Array | null }[] = [];
  try {
    for await (const [key, stored] of db.iterator({ gte: LINK_PREFIX, lt: LINK_END })) {
      links.push({ key, value: unseal(key, stored)?.value ?? null });
    }
  } catch (thrown) {
    if (codeOf(thrown) !== "LEVEL_CORRUPTION") throw readError(thrown);
    links.push({ key: LINK_END, value: null });
  }
  const known = await readDamage(db);
  const drops = dropsOf(dir).filter((line) => !known.drops.includes(line));
  const evidence = {
    base: base instanceof Buffer ? (unseal(BASE_KEY, base)?.value ?? null) : null,
    links,
    witness: readWitness(dir),
    acknowledged,
    drops,
  };
  const verdict = await verify(evidence, async (keys) => {
    const stored = await manyOf(db, keys);
    return keys.map((key, index) => {
      const bytes = stored[index];
      if (bytes === undefined) return ABSENT;
      if (bytes === "damaged") return null;
      const opened = unseal(key, bytes);
      return opened === null ? null : sealed(opened.digest);
    });
  });
  const identity = ({ kind, key, detail }: Damage) => `${kind} ${key ?? detail}`;
  const had = new Set(known.damage.map(identity));
  const fresh = verdict.damage.filter((one) => !had.has(identity(one)));
  // Dropped bytes alone are no loss of a commit where chain and witness are whole: a torn end of an unfinished write.
  const anew = fresh.some(({ kind }) => kind !== "log_dropped");
  return {
    ...verdict,
    report: [...known.damage, ...fresh],
    record: anew ? { damage: [...known.damage, ...fresh], drops: dropsOf(dir) } : null,
    anew,
  };
}

/** What is stored, or `damaged` where the database cannot read that part of its tables. */
async function getOr(db: Database, key: string): Promise<Buffer | "damaged" | undefined> {
  try {
    return await db.get(key);
  } catch (thrown) {
    if (codeOf(thrown) === "LEVEL_CORRUPTION") return "damaged";
    throw readError(thrown, key);
  }
}

/** All at once, and one by one only where a part cannot be read: one bad block is not to spoil the others. */
async function manyOf(db: Database, keys: readonly string[]): Promise<readonly (Buffer | "damaged" | undefined)[]> {
  try {
    return await db.getMany([...keys]);
  } catch (thrown) {
    if (codeOf(thrown) !== "LEVEL_CORRUPTION") throw readError(thrown);
    return Promise.all(keys.map((key) => getOr(db, key)));
  }
}

/**
 * Makes damage that was found lasting, so that the next open does not take what is left for the whole, and begins the
 * chain anew behind every commit that was ever acknowledged. One synced batch; then the witness is put aside.
 */
export async function settleDamage(db: Database, dir: string, verified: Verified): Promise<void> {
  if (verified.record === null) return;
  await db.batch(
    [
      put(DAMAGE_KEY, toBytes(verified.record)),
      put(BASE_KEY, encodeTip(verified.tip)),
      ...verified.links.map(({ commit }) => del(linkKey(commit))),
    ],
    { sync: true },
  );
  putAside(dir);
}

/** Begins the chain of a new database, at a commit number and with a hash that no other store has. */
export async function beginChain(db: Database, commit: number): Promise<void> {
  await db.batch([put(BASE_KEY, encodeTip({ commit, hash: randomBytes(32).toString("hex") }))], { sync: true });
}

/** Whether nothing at all is stored. */
export async function isEmpty(db: Database): Promise<boolean> {
  return (await db.keys({ limit: 1 }).all()).length === 0;
}

/** Number of the last commit in a state of the database. */
export async function commitsIn(db: Database, snapshot: Snapshot): Promise<number> {
  const [last] = await db.iterator({ gte: LINK_PREFIX, lt: LINK_END, reverse: true, limit: 1, snapshot }).all();
  const link = last === undefined ? null : decodeLink(open(last[0], last[1])?.value ?? new Uint8Array());
  if (link !== null) return lastOf(link);
  const base = open(BASE_KEY, await db.get(BASE_KEY, { snapshot }));
  return (base === null ? null : decodeTip(base.value))?.commit ?? 0;
}

/** Every entry of a caller, in order. Throws `STORE_DAMAGED` at a damaged one, or tells `onDamage` and goes on. */
export async function* entriesOf(
  db: Database,
  snapshot?: Snapshot,
  onDamage?: (key: string) => void,
): AsyncGenerator<Entry, void, undefined> {
  const iterator = db.iterator({ gte: " ", lt: ABOVE, ...(snapshot === undefined ? {} : { snapshot }) });
  try {
    for (;;) {
      const page = await iterator.nextv(256);
      if (page.length === 0) return;
      for (const [key, stored] of page) {
        const opened = unseal(key, stored);
        if (opened !== null) yield { key, value: opened.value };
        else if (onDamage !== undefined) onDamage(key);
        else open(key, stored);
      }
    }
  } catch (thrown) {
    throw readError(asError(thrown));
  } finally {
    await iterator.close();
  }
}

/** The lines of LevelDB's own logs of this open and the one before it that say that something was dropped. */
function dropsOf(dir: string): readonly string[] {
  return ["LOG.old", "LOG"].flatMap((name) => {
    try {
      const lines = readFileSync(join(databaseIn(dir), name), "latin1").split("\n");
      return lines.filter((line) => line.includes("dropping")).map((line) => line.replaceAll(dir, "").slice(0, 300));
    } catch (thrown) {
      if (codeOf(thrown) === "ENOENT") return [];
      throw thrown;
    }
  });
}

const KINDS: ReadonlySet<string> = new Set<DamageKind>([
  "commits_missing",
  "chain_broken",
  "head_behind",
  "log_dropped",
  "value_damaged",
  "witness_missing",
]);

async function readDamage(db: Database): Promise<DamageRecord> {
  const stored = await getOr(db, DAMAGE_KEY);
  if (stored === undefined) return { damage: [], drops: [] };
  const value = stored === "damaged" ? undefined : unseal(DAMAGE_KEY, stored)?.value;
  if (value === undefined) {
    const detail = "The record of damage that was found before is damaged itself.";
    return { damage: [{ kind: "value_damaged", detail }], drops: [] };
  }
  return damageRecordOf(fromBytes(value));
}

function damageRecordOf(json: unknown): DamageRecord {
  const record = json as { readonly damage: readonly Damage[]; readonly drops: readonly string[] };
  // Sealed bytes are what this file wrote; a kind of a later version is kept as it is written.
  return { damage: record.damage.filter(({ kind }) => KINDS.has(kind)), drops: record.drops };
}
