import { suite } from "uvu";
import * as assert from "uvu/assert";
import { type CommitFate, type MemoryStore, openMemoryStore, type ReadFate } from "../../server/store/memory.js";
import type { Store } from "../../server/store/port.js";
import { bytes, change, contents, contract, ok, rejects, text } from "./contract.js";

contract("memory", async () => {
  let last: MemoryStore = openMemoryStore();
  let opened = false;
  const again = async (): Promise<Store> => {
    last = last.crash();
    return last;
  };
  return {
    open: async () => {
      if (opened) return again();
      opened = true;
      return last;
    },
    again,
    remove: async () => {},
  };
});

const test = suite("memory store faults");

/** Fates by the number of the attempt. */
function fates(...list: readonly CommitFate[]) {
  return { commit: (_: unknown, attempt: number): CommitFate => list[attempt - 1] ?? { kind: "ok" } };
}

/** A promise that the test settles. */
function gate() {
  let open = (): void => {};
  const promise = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { promise, open: () => open() };
}

test("[8] after a failed commit nothing is acknowledged until the store was reopened", async () => {
  const error = new Error("disk full");
  const store = openMemoryStore(fates({ kind: "failed", error }));
  const [first, second] = await Promise.all([
    store.commit(change("a", null, "1")),
    store.commit(change("b", null, "1")),
  ]);
  assert.equal(first, { outcome: "failed", error });
  assert.is(second?.outcome, "failed");
  assert.is((await store.commit(change("b", null, "1"))).outcome, "failed");
  await rejects("STORE_FAULTED", () => store.get("a"));
  assert.is(store.status().state, "faulted");
  assert.is((await store.reopen()).outcome, "ok");
  assert.equal(await contents(store), {});
  assert.is(ok(await store.commit(change("b", null, "1"))), 1);
});

test("[8] an unknown outcome is told by reading after the reopen, whichever it was", async () => {
  for (const durable of [true, false]) {
    const store = openMemoryStore(fates({ kind: "unknown", durable, error: new Error("lost reply") }));
    assert.is((await store.commit(change("a", null, "1"))).outcome, "unknown");
    await rejects("STORE_FAULTED", () => store.range("", { limit: 1 }));
    assert.is((await store.reopen()).outcome, "ok");
    assert.is(text(await store.get("a")), durable ? "1" : null);
    assert.is(store.status().commits, durable ? 1 : 0);
  }
});

test("a crash keeps exactly what was durable, and the dead store never answers", async () => {
  const before = gate();
  const after = gate();
  const store = openMemoryStore(
    fates({ kind: "ok" }, { kind: "ok", after: after.promise }, { kind: "ok", before: before.promise }),
  );
  ok(await store.commit(change("a", null, "1")));
  let answered = 0;
  for (const key of ["b", "c", "d"]) void store.commit(change(key, null, "1")).then(() => (answered += 1));
  await store.get("a");
  await store.get("a");
  await store.get("a");
  const next = store.crash({});
  after.open();
  before.open();
  assert.equal(await contents(next), { a: "1", b: "1" });
  assert.is(next.status().commits, 2);
  assert.is(answered, 0);
  await rejects("STORE_CLOSED", () => store.get("a"));
  assert.is(ok(await next.commit(change("c", null, "1"))), 3);
});

test("a slow commit holds up those behind it, and no reads", async () => {
  const hold = gate();
  const store = openMemoryStore(fates({ kind: "ok", before: hold.promise }));
  const first = store.commit(change("a", null, "1"));
  const second = store.commit(change("a", "1", "2"));
  assert.is(await store.get("a"), null);
  assert.is(store.status().waiting, 2);
  hold.open();
  assert.equal([ok(await first), ok(await second)], [1, 2]);
});

test("a read can fail, be damaged, or be of other bytes", async () => {
  const error = new Error("read error");
  const reads = new Map<string, ReadFate>([
    ["b", { kind: "error", error }],
    ["c", { kind: "damaged" }],
    ["d", { kind: "value", value: bytes("{") }],
  ]);
  const store = openMemoryStore({
    read: (key) => reads.get(key) ?? { kind: "ok" },
  });
  for (const key of ["a", "b", "c", "d"]) ok(await store.commit(change(key, null, key)));
  assert.is(await store.get("b").catch((thrown: unknown) => thrown), error);
  await rejects("STORE_DAMAGED", () => store.get("c"));
  assert.is(text(await store.get("d")), "{");
  const damaged: string[] = [];
  const rest = await store.range("c", { limit: 9, onDamage: (key) => damaged.push(key) });
  assert.equal([rest.length, damaged], [0, ["c"]]);
});

test("a reopen can fail and be tried again", async () => {
  let left = 1;
  const store = openMemoryStore({
    ...fates({ kind: "failed", error: new Error("disk full") }),
    reopen: () => (left-- > 0 ? new Error("still full") : undefined),
  });
  await store.commit(change("a", null, "1"));
  assert.is((await store.reopen()).outcome, "failed");
  assert.is((await store.commit(change("a", null, "1"))).outcome, "failed");
  assert.is((await store.reopen()).outcome, "ok");
  ok(await store.commit(change("a", null, "1")));
});

test.run();
