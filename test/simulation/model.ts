/**
 * A conversation as sections 6 to 8 of the contract describe it, once more and on purpose: written from the contract
 * alone, sharing no code and no shape with `machines/`. It is a plain record and one function a request; it knows what a
 * client may be told, not how it is stored.
 */

export interface ModelQuestion {
  readonly id: string;
  readonly incarnation: string;
  readonly options: readonly string[];
  readonly freeform: boolean;
  /** Who started the asking turn, and the asking agent's own credential. */
  readonly needs: readonly string[];
  readonly expiresAt: number | null;
  readonly draft: string;
  /** The run it was asked in; null for a session of an attached agent. */
  readonly run: string | null;
}

export interface ModelReceipt extends ModelQuestion {
  readonly status: "submitted" | "cancelled";
  readonly reason: string | null;
  readonly answer: string | null;
  readonly continuation: { readonly run: string; readonly state: string; readonly reason: string | null } | null;
}

export type Credential = { rotatedOrExpired: boolean; revoked: boolean; readOnly: boolean; kind: string };

/** What the contract says about one conversation. */
export interface Model {
  incarnation: string;
  revision: number;
  native: string | null;
  pending: ModelQuestion | null;
  receipts: ModelReceipt[];
  active: { readonly run: string; readonly by: string; begun: boolean; readonly of: string | null } | null;
  waiting: { readonly run: string; readonly by: string; readonly of: string | null }[];
}

export const emptyModel = (incarnation: string, revision: number): Model => ({
  incarnation,
  revision,
  native: null,
  pending: null,
  receipts: [],
  active: null,
  waiting: [],
});

export interface Facts {
  readonly now: number;
  readonly sameDirectory: boolean;
  readonly credential: (id: string) => Credential;
}

export interface Verdict {
  readonly status: "ready" | "resolved" | "revision_conflict" | "refused";
  readonly reason: string | null;
  /** The question that has to be in the result; null: none. */
  readonly question: string | null;
}

const verdict = (status: Verdict["status"], reason: string | null, question: string | null): Verdict => ({
  status,
  reason,
  question,
});

const KEPT = 32;

/** Section 7: the pending question becomes a cancelled receipt, and the revision grows. */
function cancelPending(model: Model, reason: string): void {
  if (model.pending === null) return;
  keep(model, { ...model.pending, status: "cancelled", reason, answer: null, continuation: null });
}

function keep(model: Model, receipt: ModelReceipt): void {
  model.receipts = [...model.receipts, receipt].slice(-KEPT);
  model.pending = null;
  model.revision += 1;
}

/** Section 6.6: why the pending question no longer holds, or null. */
function lost(model: Model, facts: Facts): string | null {
  const { pending } = model;
  if (pending === null) return null;
  if (!facts.sameDirectory) return "workspace_replaced";
  const needed = pending.needs.map(facts.credential);
  if (needed.some(({ revoked }) => revoked)) return "owner_revoked";
  const [owner] = needed;
  if (owner?.rotatedOrExpired) return "owner_context_lost";
  return pending.expiresAt !== null && facts.now >= pending.expiresAt ? "expired" : null;
}

/** Section 6.1. */
function mayNotAnswer({ kind, revoked, rotatedOrExpired, readOnly }: Credential): string | null {
  if (kind !== "operator" && kind !== "device") return "not_permitted";
  if (revoked) return kind === "device" ? "device_revoked" : "not_permitted";
  if (rotatedOrExpired) return "not_permitted";
  return readOnly ? "device_read_only" : null;
}

export interface Target {
  readonly incarnation: string;
  readonly request: string;
  readonly revision: number;
}

/** `input_answer`, in the order of section 6. `run` is the id of the continuation where one is accepted. */
export function answer(model: Model, by: string, target: Target, given: string, run: string, facts: Facts): Verdict {
  const refused = mayNotAnswer(facts.credential(by));
  if (refused !== null) return verdict("refused", refused, null);
  if (target.incarnation !== model.incarnation) return verdict("refused", "stale_request", null);
  const receipt = model.receipts.find(({ id }) => id === target.request);
  if (receipt === undefined && model.pending?.id !== target.request) return verdict("refused", "unknown_request", null);
  if (receipt?.status === "submitted") {
    return receipt.answer === given
      ? verdict("resolved", null, receipt.id)
      : verdict("refused", "answer_conflict", receipt.id);
  }
  if (receipt !== undefined || model.pending === null) {
    return verdict("refused", "question_cancelled", target.request);
  }
  const reason = lost(model, facts);
  if (reason !== null) {
    cancelPending(model, reason);
    return verdict("refused", "question_cancelled", target.request);
  }
  if (target.revision !== model.revision) return verdict("revision_conflict", null, target.request);
  const { pending } = model;
  if (given.startsWith("option ") && !pending.options.includes(given)) {
    return verdict("refused", "unknown_option", target.request);
  }
  if (given.startsWith("text ") && !pending.freeform) return verdict("refused", "text_not_allowed", target.request);
  keep(model, {
    ...pending,
    status: "submitted",
    reason: null,
    answer: given,
    continuation: { run, state: "accepted", reason: null },
  });
  accept(model, run, by, pending.id);
  return verdict("resolved", null, target.request);
}

/** `input_cancel`. */
export function cancel(model: Model, by: string, target: Target, facts: Facts): Verdict {
  const refused = mayNotAnswer(facts.credential(by));
  if (refused !== null) return verdict("refused", refused, null);
  if (target.incarnation !== model.incarnation) return verdict("refused", "stale_request", null);
  const receipt = model.receipts.find(({ id }) => id === target.request);
  if (receipt === undefined && model.pending?.id !== target.request) return verdict("refused", "unknown_request", null);
  if (receipt?.status === "submitted") return verdict("refused", "already_submitted", receipt.id);
  if (receipt !== undefined) return verdict("resolved", null, receipt.id);
  const reason = lost(model, facts);
  if (reason !== null) {
    cancelPending(model, reason);
    return verdict("refused", "question_cancelled", target.request);
  }
  if (target.revision !== model.revision) return verdict("revision_conflict", null, target.request);
  cancelPending(model, "cancelled_by_owner");
  return verdict("resolved", null, target.request);
}

/** `input_get`: a use, so the context is looked at first. */
export function read(model: Model, request: string | null, facts: Facts): Verdict {
  const { pending } = model;
  if (pending !== null && (request === null || request === pending.id)) {
    const reason = lost(model, facts);
    if (reason === null) return verdict("ready", null, pending.id);
    cancelPending(model, reason);
    return verdict("resolved", null, pending.id);
  }
  if (request === null) return verdict("ready", null, null);
  return model.receipts.some(({ id }) => id === request)
    ? verdict("resolved", null, request)
    : verdict("refused", "unknown_request", null);
}

/** `request_user_input` by one whose turn is an owner's: the code of the error, or what it returns. */
export function ask(model: Model, question: ModelQuestion, facts: Facts): Verdict | string {
  if (model.native !== null) return "ineligible_conversation";
  const reason = lost(model, facts);
  if (reason !== null) cancelPending(model, reason);
  const [owner] = question.needs.map(facts.credential);
  if (!facts.sameDirectory || owner?.revoked || owner?.rotatedOrExpired) return "ineligible_conversation";
  if (model.pending !== null) {
    return model.pending.draft === question.draft
      ? verdict("ready", "already_pending", model.pending.id)
      : "question_pending";
  }
  model.pending = question;
  model.revision += 1;
  return verdict("ready", null, question.id);
}

/** A message that was accepted. */
export function send(model: Model, run: string, by: string): void {
  model.revision += 1;
  accept(model, run, by, null);
}

function accept(model: Model, run: string, by: string, of: string | null): void {
  model.waiting.push({ run, by, of });
  next(model);
}

/** One run at a time. */
function next(model: Model): void {
  if (model.active !== null) return;
  const run = model.waiting.shift();
  if (run !== undefined) model.active = { ...run, begun: false };
}

/** Before a run starts: why it may not, or null. */
export function mayNotBegin(model: Model, facts: Facts): string | null {
  if (model.active === null) return null;
  if (!facts.sameDirectory) return "context_lost";
  const { revoked, rotatedOrExpired, readOnly } = facts.credential(model.active.by);
  if (model.active.of !== null) return revoked || rotatedOrExpired || readOnly ? "responder_revoked" : null;
  return revoked ? "sender_revoked" : null;
}

/** A run is over; its receipt says how. */
export function end(model: Model, run: string, state: string, reason: string | null): void {
  model.receipts = model.receipts.map((receipt) =>
    receipt.continuation?.run === run ? { ...receipt, continuation: { run, state, reason } } : receipt,
  );
  if (model.active?.run === run) model.active = null;
  model.waiting = model.waiting.filter((each) => each.run !== run);
  next(model);
}

/** Takeover and reset: the active run is cancelled, those that wait fail. */
function endAll(model: Model, reason: string): void {
  const { active, waiting } = model;
  model.waiting = [];
  if (active !== null) end(model, active.run, "cancelled", reason);
  for (const { run } of waiting) end(model, run, "failed", "context_lost");
}

export function takeOver(model: Model, harness: string): void {
  if (model.native === harness) return;
  const wasNative = model.native !== null;
  if (!wasNative) cancelPending(model, "native_takeover");
  endAll(model, "native_takeover");
  model.native = harness;
  model.revision += 1;
}

export function release(model: Model): void {
  if (model.native === null) return;
  model.native = null;
  model.revision += 1;
}

export function reset(model: Model, expected: number, incarnation: string): boolean {
  if (expected !== model.revision) return false;
  cancelPending(model, "conversation_reset");
  endAll(model, "conversation_reset");
  model.incarnation = incarnation;
  model.revision += 1;
  return true;
}

/** `run_cancel` of a run that is live; the question it asked goes with it. */
export function cancelRun(model: Model, run: string): boolean {
  const isActive = model.active?.run === run;
  if (!isActive && !model.waiting.some((each) => each.run === run)) return false;
  if (isActive && model.pending?.run === run) cancelPending(model, "run_cancelled");
  end(model, run, "cancelled", "run_cancelled");
  return true;
}

/** Section 7 `owner_revoked`: at once. */
export function revoke(model: Model, id: string): void {
  if (model.pending?.needs.includes(id)) cancelPending(model, "owner_revoked");
}

/** Section 8: the service started. */
export function restart(model: Model): void {
  cancelPending(model, "service_restarted");
  const { active, waiting } = model;
  model.waiting = [];
  model.active = null;
  for (const { run } of [...(active === null ? [] : [active]), ...waiting]) {
    end(model, run, "failed", "service_restarted");
  }
}
