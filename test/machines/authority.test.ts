import { suite } from "uvu";
import * as assert from "uvu/assert";
import { answerAuthority, mayCall, mayRead } from "../../machines/authority.js";
import type { Caller, Standing } from "../../machines/facts.js";
import type { Method } from "../../protocol/operations.js";
import { agentOf, attachedAgent, CONVERSATION, captain, device, operator, readOnlyDevice } from "./given.js";

const test = suite("who may call what");

/**
 * Sections 2 and 5, read again from the contract's tables and written without looking at the machine's. One letter a
 * principal: Operator, Active device, Read-only device, Captain, Agent (of this conversation). `input_answer` and
 * `input_cancel` are let through to refuse by themselves: 6.1.
 */
const TABLE: { readonly [M in Exclude<Method, "authenticate" | "device_pair_complete">]: string } = {
  conversation_create: "O  C ",
  conversation_list: "OARCG",
  conversation_show: "OARCG",
  conversation_send: "OA C ",
  conversation_reset: "O    ",
  conversation_tail: "OARCG",
  conversation_subscribe: "OARCG",
  inbox_subscribe: "OARC ",
  inbox_unsubscribe: "OARC ",
  conversation_unsubscribe: "OARCG",
  native_claim: "O  C ",
  native_release: "O  C ",
  request_user_input: "O   G",
  input_get: "OARCG",
  input_list: "OARC ",
  input_answer: "OARCG",
  input_cancel: "OARCG",
  run_claim: "O   G",
  run_event: "O   G",
  run_settle: "O   G",
  run_cancel: "OA   ",
  device_pair_begin: "O    ",
  device_list: "O    ",
  device_mode: "O    ",
  device_revoke: "O    ",
  credential_issue: "O    ",
  credential_list: "O    ",
  credential_rotate: "O    ",
  credential_revoke: "O    ",
  project_add: "O    ",
  project_remove: "O    ",
  project_list: "OARCG",
  project_membership: "OARCG",
  chart_subscribe: "O    ",
  chart_unsubscribe: "O    ",
  service_status: "OARCG",
};

const callers: ReadonlyArray<readonly [letter: string, name: string, caller: Caller]> = [
  ["O", "the operator", operator],
  ["A", "an active device", device],
  ["R", "a read-only device", readOnlyDevice],
  ["C", "a captain", captain],
  ["G", "an agent", attachedAgent],
];

const methods = Object.keys(TABLE) as ReadonlyArray<keyof typeof TABLE>;
const answering = new Set<string>(["input_answer", "input_cancel"]);

for (const method of methods) {
  test(`[2, 5] ${method} is for those the contract names, and for nobody else`, () => {
    for (const [letter, name, caller] of callers) {
      const expected = TABLE[method].includes(letter) ? { ok: true } : { ok: false, reason: "forbidden" };
      assert.equal(mayCall(caller, method), expected, `${method} by ${name}`);
      assert.equal(mayCall(caller, method, CONVERSATION), expected, `${method} by ${name} in its conversation`);
    }
  });

  if (answering.has(method)) continue;
  test(`[2, 6.1] ${method} with a token that is no longer good is unauthenticated, whoever calls`, () => {
    for (const standing of ["rotated", "expired", "revoked"] satisfies readonly Standing[]) {
      for (const [, , caller] of callers) {
        assert.equal(mayCall({ ...caller, standing }, method), { ok: false, reason: "unauthenticated" });
      }
    }
  });
}

test("[2] an agent is kept to its own conversation, in every method that names one", () => {
  for (const caller of [attachedAgent, agentOf("run-1")]) {
    for (const method of methods) {
      if (answering.has(method)) continue;
      assert.not(mayCall(caller, method, "conversation-2").ok, method);
    }
    assert.ok(mayRead(caller, CONVERSATION));
    assert.not(mayRead(caller, "conversation-2"));
  }
  for (const [, , caller] of callers.slice(0, 4)) assert.ok(mayRead(caller, "conversation-2"));
});

test("[6.1] only an operator and an active device may answer, in every standing", () => {
  const reasons = (caller: Caller): readonly string[] =>
    (["good", "read_only", "rotated", "expired", "revoked"] satisfies readonly Standing[]).map((standing) => {
      const verdict = answerAuthority({ ...caller, standing });
      return verdict.ok ? "ok" : verdict.reason;
    });
  assert.equal(reasons(operator), ["ok", "device_read_only", "not_permitted", "credential_expired", "not_permitted"]);
  assert.equal(reasons(device), ["ok", "device_read_only", "not_permitted", "credential_expired", "device_revoked"]);
  for (const caller of [captain, attachedAgent, agentOf("run-1")]) {
    assert.equal(
      reasons(caller),
      Array.from({ length: 5 }, () => "not_permitted"),
    );
  }
});

test.run();
