import { sha256 } from "./digest.js";

/**
 * The store's own account of its commits: LevelDB opens without a word after it has lost a part of its log, so every
 * group writes, in the batch of its commits, a link that counts them and hashes what came before.
 *
 * Everything here is under keys that begin with 0x01, which no key of a caller can.
 */
export const LINK_PREFIX = "\x01c";
/** Sorts after every link. */
export const LINK_END = "\x01d";
/** Where the kept part of the chain begins. */
export const BASE_KEY = "\x01b";
/** Damage that was found and that no operator has accepted yet. */
export const DAMAGE_KEY = "\x01e";

/** A place in the chain: the number of a commit and the hash over everything up to it. */
export interface Tip {
  readonly commit: number;
  readonly hash: string;
}

/** Stands for the seal of a key that is absent. */
export const ABSENT = "-".repeat(16);

/** What a commit left in a head, as a link and the witness remember it. */
export interface Mark {
  readonly commit: number;
  readonly key: string;
  /** What of the digest of the new value is stored with it, in hex; `ABSENT` where the commit deleted the key. */
  readonly seal: string;
}

/** The record of one group: commits `first` to `first + count - 1`. */
export interface Link {
  readonly first: number;
  readonly count: number;
  /** The heads of its commits, in order, and whatever else of the group wrote a key that is a head elsewhere. */
  readonly marks: readonly Mark[];
  /** Hash of the chain before the group. */
  readonly previous: string;
  /** Digest over every key and value digest that the group wrote. */
  readonly content: string;
}

/** Number of the last commit of a group. */
export function lastOf({ first, count }: Link): number {
  return first + count - 1;
}

/** The place in the chain after a group. */
export function tipAfter(link: Link): Tip {
  return { commit: lastOf(link), hash: sha256(textOf(link)) };
}

function textOf({ first, count, previous, content, marks }: Link): string {
  const lines = marks.map(({ commit, seal, key }) => `${commit - first} ${seal} ${key}\n`).join("");
  return `${first} ${count} ${previous} ${content}\n${lines}`;
}

/** The key of the link whose last commit is `commit`. */
export function linkKey(commit: number): string {
  return LINK_PREFIX + commit.toString(16).padStart(14, "0");
}

/** The bytes of a link. */
export function encodeLink(link: Link): Uint8Array {
  return Buffer.from(textOf(link), "latin1");
}

/** The link that the bytes hold, or null. */
export function decodeLink(bytes: Uint8Array): Link | null {
  const [top, ...lines] = Buffer.from(bytes).toString("latin1").split("\n");
  const match = /^(\d+) (\d+) ([0-9a-f]{64}) ([0-9a-f]{64})$/.exec(top ?? "");
  const [, first, count, previous, content] = match ?? [];
  if (first === undefined || count === undefined || previous === undefined || content === undefined) return null;
  if (lines.pop() !== "") return null;
  const marks: Mark[] = [];
  for (const line of lines) {
    const [, offset, seal, key] = /^(\d+) ([0-9a-f]{16}|-{16}) (.+)$/.exec(line) ?? [];
    if (offset === undefined || seal === undefined || key === undefined) return null;
    marks.push({ commit: Number(first) + Number(offset), seal, key });
  }
  return { first: Number(first), count: Number(count), marks, previous, content };
}

/** The bytes of a place in the chain. */
export function encodeTip({ commit, hash }: Tip): Uint8Array {
  return Buffer.from(`${commit} ${hash}`);
}

/** The place that the bytes hold, or null. */
export function decodeTip(bytes: Uint8Array): Tip | null {
  const match = /^(\d+) ([0-9a-f]{64})$/.exec(Buffer.from(bytes).toString("latin1"));
  return match?.[1] === undefined || match[2] === undefined ? null : { commit: Number(match[1]), hash: match[2] };
}
