import type { Question } from "../../protocol/question.js";
import type { ConversationSnapshot } from "../../protocol/snapshot.js";

export const INCARNATION = "5f0c2f0e-0d2f-4c52-8a52-3f6f7a3c1a10";
export const REQUEST = "0b9c1b8e-51a7-4d35-9d55-0d6f1f4b2c31";
export const OPTION = "7e1b1f5a-3c3e-4a35-8f3c-1f2a3b4c5d6e";
export const OTHER_OPTION = "8e1b1f5a-3c3e-4a35-8f3c-1f2a3b4c5d6f";
export const TARGET = {
  conversationId: "c1",
  incarnationId: INCARNATION,
  requestId: REQUEST,
  expectedRevision: 3,
} as const;

export const question = (over: Partial<Question> = {}): Question => ({
  requestId: REQUEST,
  incarnationId: INCARNATION,
  conversationId: "c1",
  workspace: "/work/place",
  purpose: "preference",
  kind: "choice",
  prompt: "Which first?",
  options: [
    { optionId: OPTION, label: "one" },
    { optionId: OTHER_OPTION, label: "two", description: "the second" },
  ],
  allowFreeform: true,
  createdAt: "2026-01-02T03:04:05.000Z",
  originRunId: "run-1",
  status: "pending",
  ...over,
});

export const submitted = (over: Partial<Question> = {}): Question =>
  question({
    status: "submitted",
    resolvedAt: "2026-01-02T03:05:05.000Z",
    resolvedBy: { kind: "operator", id: "operator" },
    answer: { kind: "choice", optionId: OPTION },
    continuation: { runId: "run-2", state: "accepted" },
    ...over,
  });

export const snapshot = (over: Partial<ConversationSnapshot> = {}): ConversationSnapshot => ({
  schemaVersion: 1,
  conversationId: "c1",
  title: "place",
  scope: { kind: "workspace", workspaceId: "/work/place" },
  driver: { kind: "service" },
  incarnationId: INCARNATION,
  revision: 3,
  safeCursor: "c0003",
  eligible: true,
  question: null,
  receipts: {},
  activeRun: null,
  queuedRuns: 0,
  ...over,
});
