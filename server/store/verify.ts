import { ABSENT, decodeLink, decodeTip, type Link, lastOf, linkKey, type Tip, tipAfter } from "./chain.js";
import type { Damage } from "./port.js";
import { shortHash, type Testimony } from "./witness.js";

/** What verification reads; every read is of one state. */
export interface Evidence {
  /** Where the chain begins, or null where that record is absent or damaged. */
  readonly base: Uint8Array | null;
  /** The kept links in order; value null: the stored bytes are damaged. */
  readonly links: readonly { readonly key: string; readonly value: Uint8Array | null }[];
  /** What the witness says; null: there is none. */
  readonly witness: readonly Testimony[] | null;
  /** The number of a commit that was acknowledged by this process; 0 where there is none. */
  readonly acknowledged: number;
  /** Lines of the database's own log that say it dropped something. */
  readonly drops: readonly string[];
}

/** What verification found. */
export interface Verdict {
  /** Where the next commit goes on: beyond everything that was ever acknowledged. */
  readonly tip: Tip;
  readonly base: Tip;
  readonly damage: readonly Damage[];
  /** The places in the chain after each of the kept links. */
  readonly links: readonly Tip[];
  /** Every remembered head with the number of the commit that wrote it last, oldest first. */
  readonly heads: ReadonlyMap<string, number>;
}

const NOWHERE: Tip = { commit: 0, hash: "0".repeat(64) };

/**
 * Compares what a database holds with what its chain and its witness say it has to hold. `seals` reads what is stored
 * with the values of keys: its seal, `ABSENT`, or null where the stored bytes are damaged.
 */
export async function verify(
  { base: baseBytes, links: entries, witness, acknowledged, drops }: Evidence,
  seals: (keys: readonly string[]) => Promise<readonly (string | null)[]>,
): Promise<Verdict> {
  const damage: Damage[] = [];
  const base = baseBytes === null ? null : decodeTip(baseBytes);
  if (base === null) {
    damage.push({
      kind: "chain_broken",
      detail: "The record where the chain of commits begins is missing or damaged.",
    });
  }

  // The chain: links follow one another, and what does not is a gap.
  const gaps: { readonly from: number; readonly to: number }[] = [];
  const links: Link[] = [];
  let tip = base;
  for (const { key, value } of entries) {
    const link = value === null ? null : decodeLink(value);
    if (link === null || key !== linkKey(lastOf(link))) {
      damage.push({ kind: "chain_broken", detail: "A record of the chain of commits is damaged." });
      continue;
    }
    if (tip !== null && link.first > tip.commit + 1) {
      const gap = { from: tip.commit + 1, to: link.first - 1 };
      gaps.push(gap);
      damage.push({ kind: "chain_broken", detail: `Commits ${gap.from} to ${gap.to} are not in the chain.` });
    } else if (tip !== null && (link.first !== tip.commit + 1 || link.previous !== tip.hash)) {
      damage.push({ kind: "chain_broken", detail: `Commit ${link.first} does not follow from the one before it.` });
    }
    links.push(link);
    tip = tipAfter(link);
  }
  const end = tip ?? NOWHERE;
  const start = base ?? (links[0] === undefined ? NOWHERE : { commit: links[0].first - 1, hash: links[0].previous });

  // The witness: everything it saw acknowledged is there, and is what it saw.
  if (witness === null && end.commit > 0) {
    damage.push({
      kind: "witness_missing",
      detail: "The witness file is gone: it cannot be told whether the last commits are all there.",
    });
  }
  const said = witness ?? [];
  const reached = said.reduce((most, { commit }) => Math.max(most, commit), acknowledged);
  if (reached > end.commit) gaps.push({ from: end.commit + 1, to: reached });
  const broken = new Set<string>();
  const blame = (one: Damage & { readonly key: string }) => {
    if (!broken.has(one.key)) damage.push(one);
    broken.add(one.key);
  };
  if (reached > end.commit) {
    damage.push({
      kind: "commits_missing",
      detail: `Commits ${end.commit + 1} to ${reached} were acknowledged and are not there.`,
    });
  }
  const hashes = new Map<number, string>();
  for (const link of links) {
    const hash = shortHash(tipAfter(link).hash);
    for (let commit = link.first; commit <= lastOf(link); commit += 1) hashes.set(commit, hash);
  }
  for (const { commit, hash, key } of said) {
    if (gaps.some(({ from, to }) => from <= commit && commit <= to)) {
      blame({ kind: "commits_missing", detail: `Commit ${commit} was acknowledged and is not there.`, key });
    } else if ((hashes.get(commit) ?? hash) !== hash) {
      blame({ kind: "chain_broken", detail: `Commit ${commit} is not the one that was acknowledged.`, key });
    }
  }

  // The heads: each holds what was written to it last.
  const last = new Map<string, { readonly commit: number; readonly seal: string }>();
  for (const mark of [...links.flatMap((link) => link.marks), ...said].sort((a, b) => a.commit - b.commit)) {
    last.delete(mark.key);
    last.set(mark.key, mark);
  }
  const keys = [...last.keys()];
  const found = await seals(keys);
  for (const [index, key] of keys.entries()) {
    const stored = found[index];
    const wanted = last.get(key);
    if (wanted === undefined || stored === wanted.seal) continue;
    if (stored === null || stored === undefined) {
      blame({ kind: "value_damaged", detail: "The stored bytes do not match their digest.", key });
    } else {
      const is = stored === ABSENT ? "is absent" : "is another";
      blame({ kind: "head_behind", detail: `The value that commit ${wanted.commit} wrote ${is}.`, key });
    }
  }

  for (const line of drops) damage.push({ kind: "log_dropped", detail: `The database says: ${line}` });
  return {
    tip: { commit: Math.max(end.commit, reached), hash: end.hash },
    base: start,
    damage,
    links: links.map(tipAfter),
    heads: new Map([...last].map(([key, { commit }]) => [key, commit])),
  };
}
