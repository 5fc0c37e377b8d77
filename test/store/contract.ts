import fc from "fast-check";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { StoreError, type StoreErrorCode } from "../../server/store/errors.js";
import type { Change, Commit, CommitOutcome, Entry, Store } from "../../server/store/port.js";

/** One place where a store lives, so that it can be closed and opened again. */
export interface Place {
  open(): Promise<Store>;
  /** Ends the life of a store without closing it, as far as the adapter can, and opens it again. */
  again(store: Store): Promise<Store>;
  remove(): Promise<void>;
}

export const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
export const text = (value: Uint8Array | null | undefined): string | null =>
  value === null || value === undefined ? null : new TextDecoder().decode(value);

/** A commit that writes a head, and what else is given: a string puts, null deletes. */
export function change(
  head: string,
  expected: string | null,
  value: string,
  more: Readonly<Record<string, string | null>> = {},
  fence: Readonly<Record<string, string | null>> = {},
): Commit {
  const others = Object.entries(more);
  return {
    head,
    expected: expected === null ? null : bytes(expected),
    puts: [
      { key: head, value: bytes(value) },
      ...others.flatMap(([key, put]): readonly Entry[] => (put === null ? [] : [{ key, value: bytes(put) }])),
    ],
    deletes: others.flatMap(([key, put]) => (put === null ? [key] : [])),
    fence: Object.entries(fence).map(([key, held]) => ({ key, value: held === null ? null : bytes(held) })),
  };
}

/** The number of a commit that has to have succeeded. */
export function ok(outcome: CommitOutcome): number {
  if (outcome.outcome !== "ok") assert.unreachable(`outcome is ${JSON.stringify(outcome)}`);
  return outcome.outcome === "ok" ? outcome.commit : 0;
}

/** Asserts that a promise rejects with the code. */
export async function rejects(code: StoreErrorCode, call: () => Promise<unknown>): Promise<void> {
  const thrown = await call().then(
    () => undefined,
    (error: unknown) => error,
  );
  assert.instance(thrown, StoreError, `rejects with ${code}`);
  if (thrown instanceof StoreError) assert.is(thrown.code, code);
}

/** The entries of a store, as texts. */
export async function contents(store: Store, prefix = ""): Promise<Readonly<Record<string, string | null>>> {
  const entries = await store.range(prefix, { limit: 100_000 });
  return Object.fromEntries(entries.map(({ key, value }) => [key, text(value)]));
}

async function take(changes: AsyncIterableIterator<Change>, count: number): Promise<readonly Change[]> {
  const taken: Change[] = [];
  while (taken.length < count) {
    const next = await changes.next();
    if (next.done === true) break;
    taken.push(next.value);
  }
  await changes.return?.();
  return taken;
}

/** The contract of the port, run on every adapter. */
export function contract(name: string, place: () => Promise<Place>): void {
  const test = suite(`store contract: ${name}`);

  const on = (title: string, run: (store: Store, where: Place) => Promise<void>) => {
    test(title, async () => {
      const where = await place();
      const store = await where.open();
      try {
        await run(store, where);
      } finally {
        await store.close();
        await where.remove();
      }
    });
  };

  on("a new store is empty, counts no commit and reports no damage", async (store) => {
    assert.equal(await contents(store), {});
    assert.equal(store.status(), { state: "open", commits: 0, waiting: 0, report: { commits: 0, damage: [] } });
  });

  on("a commit writes everything or nothing, and is there when it is answered", async (store) => {
    assert.is(ok(await store.commit(change("c/1", null, "a", { "e/1": "x", "e/2": "y" }))), 1);
    assert.equal(await contents(store), { "c/1": "a", "e/1": "x", "e/2": "y" });
    const stale = await store.commit(change("c/1", "other", "b", { "e/1": null }));
    assert.equal(stale, { outcome: "conflict", key: "c/1" });
    assert.equal(await contents(store), { "c/1": "a", "e/1": "x", "e/2": "y" });
    assert.is(ok(await store.commit(change("c/1", "a", "b", { "e/1": null }))), 2);
    assert.equal(await contents(store), { "c/1": "b", "e/2": "y" });
  });

  on("an empty value is a value, and not the absence of one", async (store) => {
    ok(await store.commit(change("k", null, "")));
    assert.is(text(await store.get("k")), "");
    assert.equal(await store.commit(change("k", null, "x")), { outcome: "conflict", key: "k" });
    ok(await store.commit(change("k", "", "x")));
    assert.is(await store.get("none"), null);
  });

  on("values are bytes, whatever they are", async (store) => {
    const value = Uint8Array.from({ length: 256 }, (_, index) => index);
    ok(await store.commit({ head: "k", expected: null, puts: [{ key: "k", value }], deletes: [] }));
    assert.equal(Buffer.from((await store.get("k")) ?? []), Buffer.from(value));
  });

  on("[6.9] an answer does not commit after a revocation committed", async (store) => {
    ok(await store.commit(change("p/device", null, "good")));
    ok(await store.commit(change("c/1", null, "a", {}, { "p/device": "good" })));
    const [revoked, answered] = await Promise.all([
      store.commit(change("p/device", "good", "revoked")),
      store.commit(change("c/1", "a", "answered", {}, { "p/device": "good" })),
    ]);
    ok(revoked);
    assert.equal(answered, { outcome: "conflict", key: "p/device" });
    assert.equal(await store.commit(change("c/1", "a", "answered", {}, { "p/none": "x" })), {
      outcome: "conflict",
      key: "p/none",
    });
    ok(await store.commit(change("c/1", "a", "asked", {}, { "p/none": null })));
    assert.is(text(await store.get("c/1")), "asked");
  });

  on("[6.9] of many commits on one head at one moment exactly one succeeds", async (store) => {
    ok(await store.commit(change("c/1", null, "start")));
    const outcomes = await Promise.all(
      Array.from({ length: 64 }, (_, index) =>
        store.commit(change("c/1", "start", `answer ${index}`, { [`r/${index}`]: "r" })),
      ),
    );
    assert.is(outcomes.filter(({ outcome }) => outcome === "ok").length, 1);
    assert.is(outcomes.filter(({ outcome }) => outcome === "conflict").length, 63);
    const winner = outcomes.findIndex(({ outcome }) => outcome === "ok");
    assert.equal(await contents(store), { "c/1": `answer ${winner}`, [`r/${winner}`]: "r" });
    assert.is(store.status().commits, 2);
  });

  on("commits on one head that build on each other succeed in one moment", async (store) => {
    const outcomes = await Promise.all(
      Array.from({ length: 50 }, (_, index) =>
        store.commit(change("c/1", index === 0 ? null : String(index - 1), String(index))),
      ),
    );
    assert.equal(
      outcomes.map(ok),
      Array.from({ length: 50 }, (_, index) => index + 1),
    );
    assert.is(text(await store.get("c/1")), "49");
  });

  on("many heads commit side by side and each gets its own number", async (store) => {
    const outcomes = await Promise.all(
      Array.from({ length: 300 }, (_, index) => store.commit(change(`c/${index}`, null, "v"))),
    );
    assert.equal(
      outcomes.map(ok).sort((a, b) => a - b),
      Array.from({ length: 300 }, (_, index) => index + 1),
    );
    assert.is((await store.range("c/", { limit: 1000 })).length, 300);
  });

  on("a conflict can be read back at once", async (store) => {
    ok(await store.commit(change("c", null, "a")));
    const seen = await Promise.all(
      ["b", "c"].map(async (value) => {
        const outcome = await store.commit(change("c", "a", value));
        return [outcome.outcome, text(await store.get("c"))];
      }),
    );
    assert.equal(seen, [
      ["ok", "b"],
      ["conflict", "b"],
    ]);
  });

  on("a prefix ends where its last character does", async (store) => {
    const keys = ["c", "c ", "c!", "c/", "c/1", "c/~", "c/~~", "c0", "c~", "d"];
    for (const key of keys) ok(await store.commit(change(key, null, key)));
    const under = async (prefix: string) => (await store.range(prefix, { limit: 100 })).map(({ key }) => key);
    assert.equal(await under(""), keys);
    assert.equal(await under("c/"), ["c/", "c/1", "c/~", "c/~~"]);
    assert.equal(await under("c/~"), ["c/~", "c/~~"]);
    assert.equal(await under("c~"), ["c~"]);
    assert.equal(await under("b"), []);
    assert.equal(await under("~"), []);
  });

  on("a malformed key, range or commit is refused before anything is done", async (store) => {
    for (const key of ["", "\n", "\x7f", "é", "\x01c", "x".repeat(1025)]) {
      await rejects("STORE_INVALID", () => store.get(key));
      await rejects("STORE_INVALID", () => store.commit(change(key, null, "v")));
      await rejects("STORE_INVALID", () => store.commit(change("h", null, "v", {}, { [key]: null })));
    }
    await rejects("STORE_INVALID", () => store.range("é", { limit: 1 }));
    await rejects("STORE_INVALID", () => store.range("a", { limit: -1 }));
    await rejects("STORE_INVALID", () => store.range("a", { limit: 1, from: "a", after: "a" }));
    await rejects("STORE_INVALID", () => store.commit({ ...change("h", null, "v"), deletes: ["h"] }));
    await rejects("STORE_INVALID", () => store.commit({ ...change("h", null, "v"), head: "other" }));
    assert.is(store.status().commits, 0);
    ok(await store.commit(change("x".repeat(1024), null, "v")));
  });

  on("a watcher is told every change under its prefix in order, from where it says", async (store) => {
    ok(await store.commit(change("c/1", null, "a", { "e/1": "x" })));
    const all = store.watch("", 0);
    const late = store.watch("e/", 1);
    ok(await store.commit(change("c/1", "a", "b", { "d/1": "z" })));
    ok(await store.commit(change("c/1", "b", "c", { "e/1": null, "e/2": "y" })));
    const told = (await take(all, 3)).map(({ commit, entries }) => [
      commit,
      entries.map(({ key, value }) => `${key}=${text(value)}`),
    ]);
    assert.equal(told, [
      [1, ["c/1=a", "e/1=x"]],
      [2, ["c/1=b", "d/1=z"]],
      [3, ["c/1=c", "e/2=y", "e/1=null"]],
    ]);
    assert.equal(
      (await take(late, 1)).map(({ commit, entries }) => [commit, entries.map(({ key }) => key)]),
      [[3, ["e/2", "e/1"]]],
    );
  });

  on("a watcher that waits can be ended, and ends with the store", async (store) => {
    const ended = store.watch("c/", 0);
    const pending = ended.next();
    await ended.return?.();
    assert.is((await pending).done, true);
    const left = store.watch("c/", 0).next();
    const rejected = rejects("STORE_CLOSED", () => left);
    await store.close();
    await rejected;
  });

  on("a watcher that asks for changes no longer kept is told so", async (store) => {
    for (let round = 0; round < 5; round += 1) {
      const value = bytes("x".repeat(1024 * 1024));
      ok(await store.commit({ head: `c/${round}`, expected: null, puts: [{ key: `c/${round}`, value }], deletes: [] }));
    }
    await rejects("STORE_BEHIND", () => store.watch("c/", 0).next());
    assert.is((await take(store.watch("c/", 4), 1))[0]?.commit, 5);
  });

  on("everything acknowledged is there after closing and opening, and the count goes on", async (store, where) => {
    for (let index = 0; index < 20; index += 1) ok(await store.commit(change(`c/${index}`, null, String(index))));
    const before = await contents(store);
    await store.close();
    const next = await where.open();
    assert.equal(await contents(next), before);
    assert.equal(next.status().report, { commits: 20, damage: [] });
    assert.is(ok(await next.commit(change("c/0", "0", "z"))), 21);
    await next.close();
  });

  on("a closed store refuses everything, and closing twice is nothing", async (store) => {
    const pending = store.commit(change("c", null, "v"));
    await store.close();
    assert.ok(["ok", "failed"].includes((await pending).outcome));
    await store.close();
    await rejects("STORE_CLOSED", () => store.get("c"));
    await rejects("STORE_CLOSED", () => store.range("c", { limit: 1 }));
    await rejects("STORE_CLOSED", () => store.commit(change("d", null, "v")));
    await rejects("STORE_CLOSED", () => store.backup());
    await rejects("STORE_CLOSED", () => store.reopen());
    assert.is(store.status().state, "closed");
  });

  on("reopening a store that has not failed reports and changes nothing", async (store) => {
    ok(await store.commit(change("c", null, "v")));
    const outcome = await store.reopen();
    assert.is(outcome.outcome, "ok");
    assert.is(text(await store.get("c")), "v");
  });

  on("a backup is one moment of the store, whatever commits meanwhile", async (store) => {
    for (let index = 0; index < 600; index += 1) void store.commit(change(`c/${index}`, null, "old"));
    ok(await store.commit(change("z", null, "old")));
    const backup = await store.backup();
    ok(await store.commit(change("c/0", "old", "new", { "c/1": null, y: "new" })));
    const saved = new Map<string, string | null>();
    for await (const { key, value } of backup.entries) saved.set(key, text(value));
    await backup.close();
    assert.is(backup.commits, 601);
    assert.is(saved.size, 601);
    assert.ok([...saved.values()].every((value) => value === "old"));
  });

  // The property: a store is a map with conditional commits.
  const key = fc.constantFrom("a", "a/", "a/1", "a/2", "a0", "b", "b/~", "~");
  const value = fc.constantFrom("", "1", "2");
  const held = fc.option(value, { nil: null });
  const command = fc.oneof(
    {
      weight: 8,
      arbitrary: fc.record({
        kind: fc.constant("commit" as const),
        head: key,
        expected: fc.oneof(fc.constant("right" as const), held),
        put: value,
        more: fc.dictionary(key, held, { maxKeys: 3 }),
        fence: fc.dictionary(key, held, { maxKeys: 1 }),
        wait: fc.boolean(),
      }),
    },
    {
      weight: 3,
      arbitrary: fc.record({
        kind: fc.constant("range" as const),
        prefix: fc.oneof(fc.constant(""), key),
        start: fc.option(key, { nil: undefined }),
        inclusive: fc.boolean(),
        limit: fc.nat(5),
        reverse: fc.boolean(),
      }),
    },
    { weight: 1, arbitrary: fc.record({ kind: fc.constantFrom("close" as const, "again" as const) }) },
  );

  test("random commits, ranges, closes and crashes leave what a map would hold", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(command, { maxLength: 30 }), async (commands) => {
        const where = await place();
        let store = await where.open();
        const model = new Map<string, string>();
        let commits = 0;
        let unanswered: Promise<void>[] = [];
        try {
          for (const step of commands) {
            if (step.kind === "commit") {
              const { head, put, fence } = step;
              const more = Object.fromEntries(Object.entries(step.more).filter(([other]) => other !== head));
              const present = model.get(head) ?? null;
              const expected = step.expected === "right" ? present : step.expected;
              const holds = [[head, expected] as const, ...Object.entries(fence)];
              const broken = holds.find(([other, wanted]) => (model.get(other) ?? null) !== wanted);
              if (broken === undefined) {
                commits += 1;
                model.set(head, put);
                for (const [other, written] of Object.entries(more)) {
                  if (written === null) model.delete(other);
                  else model.set(other, written);
                }
              }
              const wanted =
                broken === undefined ? { outcome: "ok", commit: commits } : { outcome: "conflict", key: broken[0] };
              const answer = store.commit(change(head, expected, put, more, fence));
              unanswered.push(answer.then((outcome) => assert.equal(outcome, wanted)));
              if (!step.wait) continue;
            }
            await Promise.all(unanswered);
            unanswered = [];
            if (step.kind === "range") {
              const { prefix, start, inclusive, limit, reverse } = step;
              const from = start === undefined ? {} : inclusive ? { from: start } : { after: start };
              const got = await store.range(prefix, { ...from, limit, reverse });
              const sorted = [...model.keys()].sort((a, b) => (a < b ? -1 : 1));
              if (reverse) sorted.reverse();
              const wanted = sorted
                .filter((other) => other.startsWith(prefix))
                .filter(
                  (other) =>
                    start === undefined || (inclusive && other === start) || (reverse ? other < start : other > start),
                )
                .slice(0, limit);
              assert.equal(
                got.map((entry) => [entry.key, text(entry.value)]),
                wanted.map((other) => [other, model.get(other)]),
              );
            } else if (step.kind === "close") {
              await store.close();
              store = await where.open();
            } else if (step.kind === "again") {
              store = await where.again(store);
            }
            assert.equal(store.status().report.damage, []);
          }
          await Promise.all(unanswered);
          assert.equal(await contents(store), Object.fromEntries([...model].sort(([a], [b]) => (a < b ? -1 : 1))));
          assert.is(store.status().commits, commits);
        } finally {
          await store.close();
          await where.remove();
        }
      }),
      { numRuns: 100 },
    );
  });

  test.run();
}
