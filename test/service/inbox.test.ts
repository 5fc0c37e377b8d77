import { test } from "uvu";
import * as assert from "uvu/assert";
import { type InboxChange, InboxFollower, type Outlet } from "../../server/subscriptions.js";
import { applyMergePatch } from "../merge-patch.js";

const entry = (requestId: string) =>
  ({ conversationId: requestId }) as unknown as NonNullable<InboxChange["entries"][number][1]>;

test("[5] an inbox that is not read keeps one patch, and ends with what is pending", () => {
  const sent: string[] = [];
  const clear: (() => void)[] = [];
  let congested = true;
  const outlet: Outlet = {
    get congested() {
      return congested;
    },
    send: (frame) => void sent.push(frame),
    whenClear: (task) => void clear.push(task),
  };
  const follower = new InboxFollower(outlet, 7);
  follower.begin();
  let version = 7;
  const change = (entries: InboxChange["entries"]): void => {
    version += 1;
    follower.follow({ version, entries });
  };
  change([["seen", null]]);
  for (let count = 0; count < 1_000; count += 1) {
    change([[`passing-${count}`, entry(`passing-${count}`)]]);
    change([[`passing-${count}`, null]]);
  }
  change([["new", entry("new")]]);
  assert.is(sent.length, 0);
  assert.is(clear.length, 1);
  congested = false;
  clear[0]?.();
  assert.is(sent.length, 1);
  const { params } = JSON.parse(sent[0]!) as { params: { fromVersion: number; toVersion: number; patch: object } };
  assert.equal([params.fromVersion, params.toVersion], [7, version]);
  assert.equal(params.patch, { seen: null, new: entry("new") });
  assert.equal(applyMergePatch({ seen: entry("seen") }, params.patch), { new: entry("new") });
  change([["new", null]]);
  assert.is(sent.length, 2);
});

test("[5] what changes between a subscription and its reply is sent after the reply", () => {
  const sent: string[] = [];
  const follower = new InboxFollower(
    { congested: false, send: (frame) => void sent.push(frame), whenClear: () => undefined },
    0,
  );
  follower.follow({ version: 1, entries: [["a", entry("a")]] });
  assert.is(sent.length, 0);
  follower.begin();
  assert.is(sent.length, 1);
});

test.run();
