import type { Method } from "../protocol/operations.js";
import type { AskReason, CancelReason, IneligibleReason, RunReason } from "../protocol/refusals.js";
import type { ConversationContext, CredentialStamp, OpenQuestion, Run } from "./context.js";
import type { AskFacts, Caller, QuestionFacts, RunFacts, Standing } from "./facts.js";

/** Rules over facts. Each says yes, or no with its reason; the guard and the refusal both ask here. */
export type Verdict<R extends string> = { readonly ok: true } | { readonly ok: false; readonly reason: R };

const OK = { ok: true } as const;
const no = <R extends string>(reason: R): Verdict<R> => ({ ok: false, reason });

type Kind = CredentialStamp["kind"];

/** Who may call a method at all. `active` is a device that is not read-only. Contract sections 2 and 5. */
const CALLERS: {
  readonly [M in Exclude<Method, "authenticate" | "device_pair_complete">]: ReadonlySet<Kind | "active">;
} = (() => {
  const readers = new Set<Kind>(["operator", "device", "captain", "agent"]);
  const readersButAgents = new Set<Kind>(["operator", "device", "captain"]);
  const operator = new Set<Kind>(["operator"]);
  const managers = new Set<Kind>(["operator", "captain"]);
  const owners = new Set<Kind | "active">(["operator", "active"]);
  const agents = new Set<Kind>(["operator", "agent"]);
  return {
    conversation_create: managers,
    conversation_list: readers,
    conversation_show: readers,
    conversation_send: new Set<Kind | "active">(["operator", "active", "captain"]),
    conversation_reset: operator,
    conversation_tail: readers,
    conversation_subscribe: readers,
    conversation_unsubscribe: readers,
    inbox_subscribe: readersButAgents,
    inbox_unsubscribe: readersButAgents,
    native_claim: managers,
    native_release: managers,
    request_user_input: agents,
    input_get: readers,
    input_list: readersButAgents,
    /** Refusals of these two are the machine's, as results and not as errors: contract 6.1. */
    input_answer: readers,
    input_cancel: readers,
    run_claim: agents,
    run_event: agents,
    run_settle: agents,
    run_cancel: owners,
    device_pair_begin: operator,
    device_list: operator,
    device_mode: operator,
    device_revoke: operator,
    credential_issue: operator,
    credential_list: operator,
    credential_rotate: operator,
    credential_revoke: operator,
    project_add: operator,
    project_remove: operator,
    project_list: readers,
    project_membership: readers,
    chart_subscribe: operator,
    chart_unsubscribe: operator,
    service_status: readers,
  };
})();

/** Methods whose refusal of a credential is a result of theirs, not an error. Contract 6.1. */
const isAnswering = (method: Method): boolean => method === "input_answer" || method === "input_cancel";

/**
 * May this principal call this method, here? A token that is no longer good is `unauthenticated` everywhere but in
 * `input_answer` and `input_cancel`, whose own first check refuses it. Contract sections 2, 5 and 6.1.
 */
export function mayCall(
  caller: Caller,
  method: Exclude<Method, "authenticate" | "device_pair_complete">,
  conversationId?: string,
): Verdict<"unauthenticated" | "forbidden"> {
  if (isAnswering(method)) return OK;
  switch (caller.standing) {
    case "rotated":
    case "expired":
    case "revoked":
      return no("unauthenticated");
    case "good":
    case "read_only":
      break;
    default:
      caller.standing satisfies never;
  }
  const allowed = CALLERS[method];
  const active = caller.stamp.kind === "device" && caller.standing === "good";
  if (!allowed.has(caller.stamp.kind) && !(active && allowed.has("active"))) return no("forbidden");
  if (conversationId !== undefined && !mayRead(caller, conversationId)) return no("forbidden");
  return OK;
}

/** An agent reads its own conversation only; every other principal reads all. Contract section 2. */
export const mayRead = (caller: Caller, conversationId: string): boolean =>
  caller.stamp.kind !== "agent" || caller.conversationId === conversationId;

/** May this principal answer or cancel now? Contract 6.1. */
export function answerAuthority(
  caller: Caller,
): Verdict<"not_permitted" | "device_read_only" | "device_revoked" | "credential_expired"> {
  const { kind } = caller.stamp;
  if (kind !== "operator" && kind !== "device") return no("not_permitted");
  switch (caller.standing) {
    case "good":
      return OK;
    case "read_only":
      return no("device_read_only");
    case "expired":
      return no("credential_expired");
    case "revoked":
      return no(kind === "device" ? "device_revoked" : "not_permitted");
    case "rotated":
      return no("not_permitted");
    default:
      return caller.standing satisfies never;
  }
}

/** Can a question live in this conversation at all? Contract sections 4 and 6.6. */
export function eligibility(context: ConversationContext): Verdict<IneligibleReason> {
  if (context.scope.kind !== "workspace") return no("not_workspace");
  return context.harness === null ? OK : no("native_driver");
}

/** Is the turn that asks an owner's, and does what it was started under still hold? Contract section 5. */
export function askAuthority(context: ConversationContext, caller: Caller, facts: AskFacts): Verdict<AskReason> {
  const eligible = eligibility(context);
  if (!eligible.ok) return eligible;
  const owner = askingOwner(context, caller);
  if (owner === null) return no("no_owner_turn");
  if (!isLive(facts.turn)) return no("owner_context_lost");
  return facts.workspaceIsSame ? OK : no("workspace_replaced");
}

/**
 * The credential under which the asking turn was started: the starter of the run a run's token names, the issuer of an
 * attached agent's credential, the operator who asks in person. `null` where that is no owner. Contract section 5.
 */
export function askingOwner(context: ConversationContext, caller: Caller): CredentialStamp | null {
  if (caller.stamp.kind === "operator") return caller.stamp;
  const starter =
    caller.runId === undefined
      ? caller.issuedBy
      : context.active?.runId === caller.runId
        ? context.active.starter
        : undefined;
  return starter !== undefined && (starter.kind === "operator" || starter.kind === "device") ? starter : null;
}

/** Does everything the pending question was bound to still hold? The reason is why it is cancelled. Contract 6.6, 7. */
export function questionContext(
  open: { readonly question: Pick<OpenQuestion["question"], "expiresAt"> },
  facts: QuestionFacts,
  at: string,
): Verdict<Extract<CancelReason, "workspace_replaced" | "owner_revoked" | "owner_context_lost" | "expired">> {
  if (!facts.workspaceIsSame) return no("workspace_replaced");
  if (facts.owner === "revoked" || facts.asker === "revoked") return no("owner_revoked");
  if (!isLive(facts.owner)) return no("owner_context_lost");
  const { expiresAt } = open.question;
  return expiresAt !== undefined && Date.parse(at) >= Date.parse(expiresAt) ? no("expired") : OK;
}

/** May this run start now? Contract section 6, the paragraph on continuations. */
export function runAuthority(run: Run, facts: RunFacts): Verdict<RunReason> {
  if (!facts.workspaceIsSame) return no("context_lost");
  switch (run.origin.kind) {
    case "continuation":
      return facts.starter === "good" ? OK : no("responder_revoked");
    case "message":
      return facts.starter === "revoked" ? no("sender_revoked") : OK;
    default:
      return run.origin satisfies never;
  }
}

/** May this caller claim the run? A token that is bound to another run may not. Contract section 2. */
export const mayClaim = (caller: Caller, runId: string): boolean =>
  caller.stamp.kind === "operator" || caller.runId === undefined || caller.runId === runId;

/**
 * May this caller report on or settle the run? The operator, the run's own token, and the attached agent that claimed
 * it. Where it is not the active one, only an end that is repeated is at stake. Contract section 5.
 */
export function mayActForRun(caller: Caller, runId: string, active: Run | null): boolean {
  if (!mayClaim(caller, runId)) return false;
  if (caller.stamp.kind === "operator" || caller.runId === runId || active?.runId !== runId) return true;
  return active.claimedBy === caller.stamp.id;
}

/** Neither rotated, expired nor revoked; a device that may only read still lives. */
const isLive = (standing: Standing): boolean => standing === "good" || standing === "read_only";
