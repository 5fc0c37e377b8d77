import type { QuestionResult } from "../protocol/question.js";
import type { ConversationSnapshot } from "../protocol/snapshot.js";
import { eligibility } from "./authority.js";
import { cursorOf } from "./context.js";
import type { ConversationState } from "./decide.js";
import type { Reply } from "./effects.js";
import { findReceipt } from "./receipts.js";

/** What a client sees of a conversation. Contract section 4. */
export function snapshotOf({ context, value }: ConversationState): ConversationSnapshot {
  const eligible = eligibility(context);
  return {
    schemaVersion: 1,
    conversationId: context.conversationId,
    title: context.title,
    scope: context.scope,
    driver: { kind: value.driver, ...(context.harness !== null && { harness: context.harness }) },
    incarnationId: context.incarnationId,
    revision: context.revision,
    safeCursor: cursorOf(context.eventSequence),
    eligible: eligible.ok,
    ...(!eligible.ok && { ineligibleReason: eligible.reason }),
    question: context.open?.question ?? null,
    receipts: Object.fromEntries(context.receipts.map((receipt) => [receipt.requestId, receipt])),
    activeRun:
      context.active === null
        ? null
        : { runId: context.active.runId, state: value.turn === "running" ? "running" : "accepted" },
    queuedRuns: context.waiting.length,
  };
}

/** The document of a decision about a question. Contract section 4, `QuestionResult`. */
export function questionResult(
  { context }: ConversationState,
  reply: Extract<Reply, { kind: "question" }>,
): QuestionResult {
  const { requestId } = reply;
  const pending = context.open?.question;
  const question =
    requestId === undefined
      ? undefined
      : pending?.requestId === requestId
        ? pending
        : findReceipt(context.receipts, requestId);
  return {
    status: reply.status,
    conversationId: context.conversationId,
    incarnationId: context.incarnationId,
    revision: context.revision,
    safeCursor: cursorOf(context.eventSequence),
    ...(question && { question }),
    ...(reply.reason !== undefined && { reason: reply.reason }),
  };
}
