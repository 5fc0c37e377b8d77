import { ABSENT, type Mark } from "./chain.js";
import { digestOf, sealed, sha256 } from "./digest.js";
import { asError } from "./errors.js";
import type { Commit, Compare } from "./port.js";

/** A commit and what is done once its group is through. */
export interface Waiting<T> {
  readonly commit: Commit;
  readonly bytes: number;
  readonly token: T;
}

/** One write of a group; `digest` null: a delete. */
export type Write =
  | { readonly key: string; readonly value: Uint8Array; readonly digest: string }
  | { readonly key: string; readonly value: null; readonly digest: null };

/** What a group of waiting commits comes to. */
export interface Group<T> {
  readonly accepted: readonly Waiting<T>[];
  readonly marks: readonly Mark[];
  readonly refused: readonly { readonly waiting: Waiting<T>; readonly key: string }[];
  /** Their compares could not be read. */
  readonly failed: readonly { readonly waiting: Waiting<T>; readonly error: Error }[];
  readonly writes: readonly Write[];
  /** Digest over all writes. */
  readonly content: string;
  /** The digest that every written key has after the group; null: absent. */
  readonly after: ReadonlyMap<string, string | null>;
  /** Digests that were compared, which are worth keeping. */
  readonly compared: ReadonlySet<string>;
}

/** Size of a commit for the bound on a group, in bytes. */
export function sizeOf({ puts, deletes }: Commit): number {
  let bytes = 0;
  for (const { key, value } of puts) bytes += key.length + value.length;
  for (const key of deletes) bytes += key.length;
  return bytes;
}

/**
 * Evaluates waiting commits in order, each against the durable state and what the earlier ones of the group write.
 * `digestAt` reads the digest of a durable value, null where the key is absent, and may throw; `isHead` says whether
 * a key is remembered as a head, so that another commit's write of it is remembered too; commits count from `first`.
 */
export function planGroup<T>(
  waiting: readonly Waiting<T>[],
  first: number,
  digestAt: (key: string) => string | null,
  isHead: (key: string) => boolean,
): Group<T> {
  const accepted: Waiting<T>[] = [];
  const marks: Mark[] = [];
  const headsHere = new Set<string>();
  const refused: { waiting: Waiting<T>; key: string }[] = [];
  const failed: { waiting: Waiting<T>; error: Error }[] = [];
  const writes: Write[] = [];
  const after = new Map<string, string | null>();
  const compared = new Set<string>();

  const holds = ({ key, value }: Compare): boolean => {
    compared.add(key);
    const pending = after.get(key);
    const present = pending === undefined ? digestAt(key) : pending;
    return present === (value === null ? null : digestOf(key, value));
  };

  for (const one of waiting) {
    const { head, expected, puts, deletes, fence = [] } = one.commit;
    let broken: Compare | undefined;
    try {
      broken = [{ key: head, value: expected }, ...fence].find((compare) => !holds(compare));
    } catch (thrown) {
      failed.push({ waiting: one, error: asError(thrown) });
      continue;
    }
    if (broken !== undefined) {
      refused.push({ waiting: one, key: broken.key });
      continue;
    }
    const commit = first + accepted.length;
    headsHere.add(head);
    const marked = (key: string) => headsHere.has(key) || isHead(key);
    for (const { key, value } of puts) {
      const digest = digestOf(key, value);
      writes.push({ key, value, digest });
      after.set(key, digest);
      if (marked(key)) marks.push({ commit, key, seal: sealed(digest) });
    }
    for (const key of deletes) {
      writes.push({ key, value: null, digest: null });
      after.set(key, null);
      if (marked(key)) marks.push({ commit, key, seal: ABSENT });
    }
    accepted.push(one);
  }
  const content = sha256(writes.map(({ key, digest }) => `${digest ?? "delete"} ${key}\n`).join(""));
  return { accepted, marks, refused, failed, writes, content, after, compared };
}
