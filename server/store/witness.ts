import {
  closeSync,
  constants,
  fstatSync,
  fsyncSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import { crc32 } from "node:zlib";
import type { Mark, Tip } from "./chain.js";
import { codeOf } from "./errors.js";

/**
 * A log beside the database of what it acknowledged. The end of LevelDB's log can be lost without a gap that its own
 * records would show; this one shows it. It is written after the sync of the database returned and is not synced
 * itself, so it may be behind the database after a power cut and is never rightly ahead of it.
 *
 * One line a commit and head: number, hash of its group, seal of the head, checksum of the line, key of the head. A line
 * that does not check is no line: the last one may be torn.
 */
const CURRENT = "witness.log";
const PREVIOUS = "witness.old.log";
/** What is kept of a witness that contradicted its database, for whoever looks into it. */
const ASIDE = "witness.damaged.log";

/** What a commit left in a head, as it was acknowledged. */
export interface Testimony extends Mark {
  /** Head of the hash of the chain after its group, 32 hex digits. */
  readonly hash: string;
}

/** What of a chain hash the witness keeps. */
export function shortHash(hash: string): string {
  return hash.slice(0, 32);
}

function line({ commit, hash, seal, key }: Testimony): string {
  const told = `${commit} ${hash} ${seal}`;
  return `${told} ${check(told, key)} ${key}\n`;
}

function check(told: string, key: string): string {
  return crc32(`${told} ${key}`).toString(16).padStart(8, "0");
}

/** Everything the witness of a store directory says, in the order it was written; null where there is none. */
export function readWitness(dir: string): readonly Testimony[] | null {
  const texts = [PREVIOUS, CURRENT].map((name) => readOrNull(join(dir, name)));
  if (texts.every((text) => text === null)) return null;
  const said: Testimony[] = [];
  for (const text of texts.join("\n").split("\n")) {
    const match = /^(\d{1,15}) ([0-9a-f]{32}) ([0-9a-f]{16}|-{16}) ([0-9a-f]{8}) ([\x20-\x7e]+)$/.exec(text);
    const [, commit, hash, seal, sum, key] = match ?? [];
    if (commit === undefined || hash === undefined || seal === undefined || key === undefined) continue;
    if (check(`${commit} ${hash} ${seal}`, key) === sum) said.push({ commit: Number(commit), hash, seal, key });
  }
  return said;
}

function readOrNull(path: string): string | null {
  try {
    const fd = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW);
    try {
      return readFileSync(fd, "latin1");
    } finally {
      closeSync(fd);
    }
  } catch (thrown) {
    if (codeOf(thrown) === "ENOENT") return null;
    throw thrown;
  }
}

/** Replaces the witness of a store directory by an empty one. */
export function beginWitness(dir: string): void {
  for (const name of [PREVIOUS, CURRENT, ASIDE]) rmSync(join(dir, name), { force: true });
  closeSync(open(join(dir, CURRENT), constants.O_EXCL));
  syncDirectory(dir);
}

/** Puts the witness aside, so that a new one begins. */
export function putAside(dir: string): void {
  const texts = [PREVIOUS, CURRENT].map((name) => readOrNull(join(dir, name)) ?? "");
  rmSync(join(dir, ASIDE), { force: true });
  const fd = open(join(dir, ASIDE), constants.O_EXCL);
  try {
    writeAll(fd, Buffer.from(texts.join("\n"), "latin1"));
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
  rmSync(join(dir, PREVIOUS), { force: true });
  rmSync(join(dir, CURRENT), { force: true });
}

function open(path: string, flags = 0): number {
  return openSync(
    path,
    constants.O_WRONLY | constants.O_CREAT | constants.O_APPEND | constants.O_NOFOLLOW | flags,
    0o600,
  );
}

function writeAll(fd: number, bytes: Uint8Array): void {
  for (let written = 0; written < bytes.length; ) written += writeSync(fd, bytes, written);
}

/** Makes what was created or renamed in a directory durable. */
export function syncDirectory(dir: string): void {
  const fd = openSync(dir, constants.O_RDONLY | constants.O_DIRECTORY);
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}

/** The witness while the store is open. Its writes go to the page cache and are synchronous: a thread would cost more. */
export class WitnessLog {
  readonly #dir: string;
  readonly #rotateBytes: number;
  #fd: number;
  /** Bytes that the database was given since the last rotation. */
  #databaseBytes: number;
  /** Commit before the first that the previous and the current file hold. */
  #coveredFrom: number;
  #currentFrom: number;

  /** `rotateBytes`: of database writes; current and previous file together always cover at least as much. */
  constructor(dir: string, rotateBytes: number) {
    this.#dir = dir;
    // What the current file holds already began after this; nothing is known of the exact commit.
    this.#coveredFrom = 0;
    this.#currentFrom = 0;
    this.#rotateBytes = rotateBytes;
    this.#fd = open(join(dir, CURRENT));
    // Whatever was torn before stays a line of its own.
    writeAll(this.#fd, Buffer.from("\n"));
    syncDirectory(dir);
    // A commit costs the database more than a line here, so that many short lives rotate too.
    this.#databaseBytes = fstatSync(this.#fd).size;
  }

  /** Notes what a durable group left in its heads; the database was given `bytes` for it. */
  note({ commit: last, hash }: Tip, marks: readonly Mark[], bytes: number): void {
    const short = shortHash(hash);
    const lines = marks.map((mark) => line({ ...mark, hash: short }));
    writeAll(this.#fd, Buffer.from(lines.join(""), "latin1"));
    this.#databaseBytes += bytes;
    if (this.#databaseBytes < this.#rotateBytes) return;
    this.#rotate();
    this.#coveredFrom = this.#currentFrom;
    this.#currentFrom = last;
  }

  /** Both files say nothing about commits up to this number. */
  get coveredFrom(): number {
    return this.#coveredFrom;
  }

  close(): void {
    closeSync(this.#fd);
  }

  #rotate(): void {
    fsyncSync(this.#fd);
    closeSync(this.#fd);
    renameSync(join(this.#dir, CURRENT), join(this.#dir, PREVIOUS));
    this.#fd = open(join(this.#dir, CURRENT));
    syncDirectory(this.#dir);
    this.#databaseBytes = 0;
  }
}
