import { suite } from "uvu";
import * as assert from "uvu/assert";
import { takenBy } from "../../machines/chart/taken.js";
import { mayAnswer, type Principal, principalsIn } from "../../machines/chart/verdict.js";
import { type ConversationState, decide } from "../../machines/decide.js";
import type { Caller, QuestionFacts, Standing } from "../../machines/facts.js";
import { snapshotOf } from "../../machines/views.js";
import type { ChartFacts } from "../../protocol/chart.js";
import {
  after,
  answer,
  answered,
  asked,
  cancelled,
  choice,
  conversation,
  held,
  reset,
  send,
  time,
  uuid,
} from "./given.js";

const test = suite("why a principal may or may not answer");

const factsOf = ({ workspaceIsSame, owner, asker }: QuestionFacts, at: string): ChartFacts => ({
  at,
  workspaceIsSame,
  owner: { kind: "operator", id: "operator", standing: owner },
  asker: { kind: "agent", id: "agent", standing: asker },
});

const KINDS = ["operator", "device", "captain", "agent"] as const;
const STANDINGS: readonly Standing[] = ["good", "read_only", "rotated", "expired", "revoked"];
const FACTS: readonly QuestionFacts[] = [
  held,
  { ...held, workspaceIsSame: false },
  { ...held, owner: "rotated" },
  { ...held, owner: "revoked" },
  { ...held, asker: "revoked" },
  { ...held, asker: "expired" },
];
const STATES: readonly ConversationState[] = [
  conversation(),
  asked(),
  asked(choice),
  asked({ ...choice, expiresInSeconds: 60 }),
  cancelled(),
  answered(),
  after(cancelled(), reset()),
  after(asked(), ...Array.from({ length: 16 }, () => send())),
];

test("[6] the verdict and its rule are what the machine decides for an answer that fits", () => {
  for (const state of STATES) {
    for (const facts of FACTS) {
      for (const at of [time(1), time(100_000)]) {
        for (const kind of KINDS) {
          for (const standing of STANDINGS) {
            const principal: Principal = { kind, id: kind, name: kind, standing };
            const caller: Caller = { stamp: { kind, id: kind, generation: 1 }, standing };
            const newest = state.context.open?.question ?? Object.values(snapshotOf(state).receipts).at(-1);
            const { requestId, incarnationId } = newest ?? { requestId: uuid(77) };
            const optionId = state.context.open?.question.options[0]?.optionId ?? uuid(78);
            // the newest receipt's answer was another one, where it has one
            const event = answer({
              caller,
              facts,
              at,
              requestId,
              ...(incarnationId && { incarnationId }),
              answer: { kind: "choice", optionId },
            })(state);
            const { steps, refused, reason } = takenBy(state, event, decide(state, event));
            const verdict = mayAnswer(principal, snapshotOf(state), factsOf(facts, at));
            const words = `${JSON.stringify(state.value)} ${kind} ${standing} ${JSON.stringify(facts)}`;
            assert.is(verdict.may, !refused, words);
            assert.is(verdict.rule, steps[0]?.rule, words);
            assert.is(verdict.reason, reason, words);
            assert.is(verdict.items.at(-1)?.rule, verdict.rule, words);
          }
        }
      }
    }
  }
});

test("[6.4] with nothing pending the verdict is about the newest receipt, and the same answer gets it", () => {
  const operator: Principal = { kind: "operator", id: "operator", name: "operator", standing: "good" };
  const verdictOn = (state: ConversationState) => mayAnswer(operator, snapshotOf(state), factsOf(held, time(1)));
  const submitted = verdictOn(answered());
  assert.is(submitted.about, "the newest receipt");
  assert.match(submitted.items.at(-1)?.says ?? "", /the same answer gets the stored receipt.*answer_conflict/);
  assert.is(submitted.items.at(-1)?.outcome, "depends on the answer");
  assert.match(verdictOn(cancelled()).items.at(-1)?.says ?? "", /cancelled_by_owner/);
  assert.is(verdictOn(conversation()).about, "nothing");
});

test("[2] everybody whom the service lists stands as they do at the moment of the facts", () => {
  const createdAt = time(0);
  const principals = principalsIn(
    [
      { credentialId: "operator", kind: "operator", createdAt },
      { credentialId: "captain", kind: "captain", createdAt, expiresAt: time(5) },
      { credentialId: "x", kind: "agent", createdAt, revokedAt: time(1) },
    ],
    [
      { deviceId: "1", name: "phone", mode: "active", createdAt },
      { deviceId: "2", name: "wall", mode: "read-only", createdAt },
      { deviceId: "3", name: "old", mode: "active", createdAt, revokedAt: time(2) },
    ],
    time(5),
  );
  assert.equal(
    principals.map(({ name, standing }) => [name, standing]),
    [
      ["operator", "good"],
      ["captain", "expired"],
      ["agent x", "revoked"],
      ["phone", "good"],
      ["wall", "read_only"],
      ["old", "revoked"],
    ],
  );
});

test("[6.8] what only the answer can tell is said to be open", () => {
  const { items, may } = mayAnswer(
    { kind: "device", id: "1", name: "phone", standing: "good" },
    snapshotOf(asked()),
    factsOf(held, time(1)),
  );
  assert.ok(may);
  assert.equal(
    items.filter(({ outcome }) => outcome !== "holds").map(({ rule }) => rule),
    ["6.8"],
  );
});

test.run();
