import { BOUNDS } from "../../protocol/bounds.js";
import type { ChartFacts, Standing } from "../../protocol/chart.js";
import type { CredentialView, DeviceView } from "../../protocol/operations.js";
import type { Question } from "../../protocol/question.js";
import type { ConversationSnapshot } from "../../protocol/snapshot.js";
import { answerAuthority, questionContext } from "../authority.js";
import type { CredentialStamp } from "../context.js";

/** Somebody who may or may not answer, as the service lists them. */
export interface Principal {
  readonly kind: CredentialStamp["kind"];
  readonly id: string;
  readonly name: string;
  /** With its current token; a token that was rotated away is refused as `not_permitted`. */
  readonly standing: Standing;
}

/** Why a principal may or may not answer what is pending, or the newest receipt, at the moment of the facts. */
export interface Verdict {
  readonly may: boolean;
  /** What the answer would be to; without a pending question it is the newest kept receipt. */
  readonly about: "the pending question" | "the newest receipt" | "nothing";
  /** The item that decides. */
  readonly rule: string;
  readonly reason?: string;
  /** Every item in its order, up to the one that decides. */
  readonly items: readonly VerdictItem[];
}

export interface VerdictItem {
  readonly rule: string;
  readonly outcome: "holds" | "fails" | "depends on the answer";
  readonly says: string;
}

/** Everybody the service knows, with how they stand at `at`. */
export const principalsIn = (
  credentials: readonly CredentialView[],
  devices: readonly DeviceView[],
  at: string,
): readonly Principal[] => [
  ...credentials.map((each) => ({
    kind: each.kind,
    id: each.credentialId,
    name: each.kind === each.credentialId ? each.kind : `${each.kind} ${each.credentialId}`,
    standing: standingOf(each, at),
  })),
  ...devices.map((each) => ({
    kind: "device" as const,
    id: each.deviceId,
    name: each.name,
    standing: standingOf(each, at),
  })),
];

function standingOf(view: CredentialView | DeviceView, at: string): Standing {
  if (view.revokedAt !== undefined) return "revoked";
  if (view.expiresAt !== undefined && Date.parse(at) >= Date.parse(view.expiresAt)) return "expired";
  return "mode" in view && view.mode === "read-only" ? "read_only" : "good";
}

/**
 * Goes through section 6 for one who answers the pending question as it is displayed now, or, where none is pending, the
 * newest receipt. The facts are the service's, looked up for this; what only the answer can tell is said to be open. Pure;
 * the rules are `authority.ts`.
 */
export function mayAnswer(principal: Principal, snapshot: ConversationSnapshot, facts: ChartFacts): Verdict {
  const { kind, id, standing } = principal;
  const authority = answerAuthority({ stamp: { kind, id, generation: 1 }, standing });
  const items: VerdictItem[] = [];
  const { question } = snapshot;
  const receipt = question === null ? newestReceipt(snapshot) : undefined;
  const about = question !== null ? "the pending question" : receipt !== undefined ? "the newest receipt" : "nothing";
  const holds = (rule: string, says: string) => items.push({ rule, outcome: "holds", says });
  const fails = (rule: string, reason: string, says: string): Verdict => ({
    may: false,
    about,
    rule,
    reason,
    items: [...items, { rule, outcome: "fails", says }],
  });

  if (!authority.ok) return fails("6.1", authority.reason, standingWords(principal));
  holds("6.1", standingWords(principal));
  if (receipt !== undefined && receipt.incarnationId !== snapshot.incarnationId)
    return fails("6.2", "stale_request", "the newest receipt is of an earlier incarnation");
  holds("6.2", "the displayed question is of the current incarnation");
  if (question === null) {
    if (receipt === undefined) return fails("6.3", "unknown_request", "nothing is pending, and no receipt is kept");
    holds("6.3", "nothing is pending; the newest request is a kept receipt");
    if (receipt.status === "submitted") {
      const says = "it was submitted: the same answer gets the stored receipt, another one answer_conflict";
      items.push({ rule: "6.4", outcome: "depends on the answer", says });
      return { may: false, about, rule: "6.4", reason: "answer_conflict", items };
    }
    holds("6.4", "it was not submitted");
    return fails(
      "6.5",
      "question_cancelled",
      `it was cancelled (${receipt.reason ?? "no reason"}): no answer is taken`,
    );
  }
  holds("6.3", "the request is pending");
  holds("6.4", "it was not submitted");
  holds("6.5", "it was not cancelled");
  const context = questionContext({ question }, standingsIn(facts), facts.at);
  if (!context.ok) {
    return fails(
      "6.6",
      "question_cancelled",
      `${CONTEXT_WORDS[context.reason]}: an answer would cancel it (${context.reason})`,
    );
  }
  holds("6.6", contextWords(facts));
  holds("6.7", `with revision ${snapshot.revision}, which is current`);
  items.push({
    rule: "6.8",
    outcome: "depends on the answer",
    says: question.allowFreeform ? "one of its options, or a text" : "one of its options; no text",
  });
  if (snapshot.queuedRuns >= BOUNDS.queuedRuns) {
    return fails(
      "3, queue_full",
      "queue_full",
      `${BOUNDS.queuedRuns} runs wait: there is no room for the continuation`,
    );
  }
  holds("6.9", "an answer that fits would be stored, and only then resolved");
  return { may: true, about, rule: "6.9", items };
}

/** The receipt a responder most likely still displays. */
const newestReceipt = ({ receipts }: ConversationSnapshot): Question | undefined =>
  Object.values(receipts)
    .toSorted((a, b) => ((a.resolvedAt ?? "") < (b.resolvedAt ?? "") ? -1 : 1))
    .at(-1);

const standingsIn = ({ workspaceIsSame, owner, asker }: ChartFacts) => ({
  workspaceIsSame,
  owner: owner?.standing ?? "good",
  asker: asker?.standing ?? "good",
});

const STANDING_WORDS: { readonly [S in Standing]: string } = {
  good: "its credential is good",
  read_only: "it may only read",
  rotated: "its token was rotated away",
  expired: "its credential has expired",
  revoked: "it was revoked",
};

function standingWords({ kind, standing }: Principal): string {
  if (kind === "operator" || kind === "device")
    return `${kind === "operator" ? "an operator" : "a device"}: ${STANDING_WORDS[standing]}`;
  return `${kind === "agent" ? "an agent" : "a captain"} never answers, however its credential stands`;
}

const CONTEXT_WORDS = {
  workspace_replaced: "the bound directory is gone, moved, or another one",
  owner_revoked: "the credential of the asking turn, or the asking agent's own, was revoked",
  owner_context_lost: "the credential of the asking turn was rotated or has expired",
  expired: "the question is past its expiry",
} as const;

function contextWords({ owner }: ChartFacts): string {
  const who = owner === null ? "" : ` (${owner.kind} ${owner.id})`;
  return `the directory is the same, the credential of the asking turn${who} is good, and the question has not expired`;
}
