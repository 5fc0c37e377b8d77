import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { createInterface } from "node:readline";
import typia, { type tags } from "typia";
import type { Backup, Entry } from "./store/port.js";

/**
 * A backup file: JSON lines. First what it is, then every key of the store with its value, last the number of entries
 * and the SHA-256 of every byte before that line. Without a last line that checks it is no backup.
 */
interface First {
  readonly format: "clankie-backup";
  readonly version: 1;
  /** Number of the last commit in it. */
  readonly commits: number & tags.Type<"uint64">;
  readonly createdAt: string;
}

interface Line {
  readonly key: string & tags.MinLength<1> & tags.MaxLength<1024>;
  /** Base64. */
  readonly value: string;
}

type Last =
  | { readonly entries: number & tags.Type<"uint64">; readonly sha256: string }
  /** Why it is not complete. */
  | { readonly failed: string };

const isFirst = typia.createEquals<First>();
const isLine = typia.createEquals<Line>();
const isLast = typia.createEquals<Last>();

/** What a backup file says of itself once all of it was checked. */
export interface BackupSummary {
  readonly commits: number;
  readonly entries: number;
  readonly createdAt: string;
}

/** The file is not a whole backup; the message says why. */
export class BadBackup extends Error {
  override readonly name = "BadBackup";
}

/** Text of about this length is made before it is passed on. */
const CHUNK = 65_536;

/** The text of a backup in pieces. A damaged store ends it with a line that says so; the backup is then refused. */
export async function* backupText(backup: Backup, createdAt: string): AsyncGenerator<string, void, undefined> {
  const hash = createHash("sha256");
  let text = `${JSON.stringify({ format: "clankie-backup", version: 1, commits: backup.commits, createdAt } satisfies First)}\n`;
  let entries = 0;
  try {
    for await (const { key, value } of backup.entries) {
      text += `${JSON.stringify({ key, value: Buffer.from(value).toString("base64") } satisfies Line)}\n`;
      entries += 1;
      if (text.length < CHUNK) continue;
      hash.update(text);
      yield text;
      text = "";
    }
  } catch (error) {
    const failed = error instanceof Error ? error.message : String(error);
    yield `${text}${JSON.stringify({ failed } satisfies Last)}\n`;
    return;
  }
  hash.update(text);
  yield `${text}${JSON.stringify({ entries, sha256: hash.digest("hex") } satisfies Last)}\n`;
}

/**
 * Reads a whole backup file and checks it.
 *
 * @throws {BadBackup}
 */
export async function checkBackup(file: string): Promise<BackupSummary> {
  let summary: BackupSummary | undefined;
  for await (const part of read(file)) if ("summary" in part) summary = part.summary;
  if (summary === undefined) throw new BadBackup("the file ends too early: it is not a whole backup");
  return summary;
}

/**
 * The entries of a backup file, in order. Check it before: what is wrong is noticed at the end only.
 *
 * @throws {BadBackup}
 */
export async function* entriesOfBackup(file: string): AsyncGenerator<Entry, void, undefined> {
  for await (const part of read(file)) if ("entry" in part) yield part.entry;
}

async function* read(
  file: string,
): AsyncGenerator<{ readonly entry: Entry } | { readonly summary: BackupSummary }, void, undefined> {
  const hash = createHash("sha256");
  let first: First | undefined;
  let ended = false;
  let entries = 0;
  let previous = "";
  const lines = createInterface({ input: createReadStream(file, "utf8"), crlfDelay: Number.POSITIVE_INFINITY });
  for await (const text of lines) {
    if (ended) throw new BadBackup("there is something behind the end of the backup");
    const line = parsedLine(text);
    if (first === undefined) {
      if (!isFirst(line)) throw new BadBackup("this is not a backup that this version of clankie can read");
      first = line;
    } else if (isLine(line)) {
      if (line.key <= previous) throw new BadBackup("the entries of the backup are not in order");
      previous = line.key;
      entries += 1;
      yield { entry: { key: line.key, value: Buffer.from(line.value, "base64") } };
    } else if (isLast(line)) {
      if ("failed" in line) throw new BadBackup(`the service could not finish this backup: ${line.failed}`);
      if (line.entries !== entries || line.sha256 !== hash.digest("hex")) {
        throw new BadBackup("the backup is damaged: its content does not match its checksum");
      }
      ended = true;
      yield { summary: { commits: first.commits, entries, createdAt: first.createdAt } };
      continue;
    } else throw new BadBackup("the backup is damaged: a line is not one of a backup");
    hash.update(`${text}\n`);
  }
  if (!ended) throw new BadBackup("the file ends too early: it is not a whole backup");
}

function parsedLine(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new BadBackup("the backup is damaged: a line is not JSON");
  }
}
