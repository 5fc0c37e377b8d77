import { suite } from "uvu";
import * as assert from "uvu/assert";
import type { ConversationState } from "../../machines/decide.js";
import { BOUNDS } from "../../protocol/bounds.js";
import type { ChoiceDraft } from "../../protocol/question.js";
import {
  after,
  answer,
  ask,
  attachedAgent,
  cancel,
  conversation,
  newestReceipt,
  pendingIn,
  read,
  resultIn,
  taking,
  text,
} from "./given.js";

const test = suite("kept receipts");

const asking = (draft = text) => ask(draft, { caller: attachedAgent });
const round = [asking(), cancel()];

const bytes = ({ context }: ConversationState): number =>
  new TextEncoder().encode(JSON.stringify([context.open, ...context.receipts])).length;

test("[3] thirty-two receipts are kept, and the thirty-third evicts the oldest", () => {
  const full = after(conversation(), ...Array.from({ length: 32 }, () => round).flat());
  assert.is(full.context.receipts.length, 32);
  const oldest = full.context.receipts[0]!;
  const second = full.context.receipts[1]!;
  assert.is(resultIn(taking(full, read({ requestId: oldest.requestId }))).status, "resolved");

  const pending = after(full, asking());
  assert.is(pending.context.receipts.length, 32, "a pending question is kept beside them");
  const more = after(pending, answer({ answer: { kind: "text", text: "x" } }));
  assert.is(more.context.receipts.length, 32);
  assert.is(more.context.receipts[0]?.requestId, second.requestId);
  assert.is(newestReceipt(more).status, "submitted");
});

test("[6.3] an evicted request is unknown to an answer, a cancellation and a read, and starts nothing", () => {
  const first = after(conversation(), asking(), answer({ answer: { kind: "text", text: "x" } }));
  const { requestId } = newestReceipt(first);
  const state = after(first, ...Array.from({ length: 32 }, () => round).flat());
  for (const move of [
    answer({ requestId, answer: { kind: "text", text: "x" } }),
    cancel({ requestId }),
    read({ requestId }),
  ]) {
    const decision = taking(state, move);
    assert.is(resultIn(decision).reason, "unknown_request");
    assert.is(resultIn(decision).question, undefined);
    assert.not(decision.changed);
  }
});

test("[3] the stored question state stays within its bytes: the oldest receipts go, the newest and the pending stay", () => {
  const wide = "字";
  const draft: ChoiceDraft = {
    kind: "choice",
    prompt: wide.repeat(2_000),
    allowFreeform: true,
    options: Array.from({ length: 8 }, (_, n) => ({
      label: `${n}${wide.repeat(199)}`,
      description: wide.repeat(500),
    })),
  };
  let state = conversation();
  for (let n = 0; n < 20; n += 1) {
    state = after(state, ask(draft, { caller: attachedAgent }));
    assert.ok(bytes(state) <= BOUNDS.stateBytes, `${bytes(state)} with one pending`);
    const { requestId } = pendingIn(state);
    state = after(state, answer({ answer: { kind: "text", text: wide.repeat(4_000) } }));
    // its continuation ends, or the queue would be full
    state = after(state, (s) => ({
      type: "run.cancel",
      at: "2026-01-01T00:00:00.000Z",
      runId: s.context.active!.runId,
    }));
    assert.ok(bytes(state) <= BOUNDS.stateBytes, `${bytes(state)} with none pending`);
    assert.is(newestReceipt(state).requestId, requestId);
  }
  assert.ok(state.context.receipts.length > 8 && state.context.receipts.length < 20);
});

test.run();
