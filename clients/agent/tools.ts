import type { Tool } from "@modelcontextprotocol/sdk/types.js";
import { BOUNDS } from "../../protocol/bounds.js";

/** The longest time, in seconds, for which a tool call is held; well below the minute after which clients give up. */
const MOST_WAIT_SECONDS = 50;

/*
 * What the tools are to a model. The schemas are flat and use only type, properties, required, enum, minItems, maxItems,
 * minimum and maximum: every provider's dialect takes these, and the service checks the rest and says what is wrong.
 */
const requestId = { type: "string", description: "The requestId that request_user_input returned." };
const guidance = { type: "string", description: "What this means and what to do next." };
const waitSeconds = (until: string) => ({
  type: "integer",
  minimum: 0,
  maximum: MOST_WAIT_SECONDS,
  description: `Hold this call for up to so many seconds, until ${until}. 0 or absent: return at once.`,
});

/** `QuestionResult` of contract section 4 with one more member, `guidance`. */
const questionOutput: NonNullable<Tool["outputSchema"]> = {
  type: "object",
  properties: {
    status: { type: "string", enum: ["ready", "resolved", "refused"] },
    conversationId: { type: "string" },
    incarnationId: { type: "string" },
    revision: { type: "integer" },
    safeCursor: { type: "string" },
    question: {
      type: "object",
      description:
        "The question: requestId, status (pending, submitted or cancelled), prompt, options and, once it is submitted, answer and continuation; absent if there is none.",
    },
    reason: { type: "string" },
    guidance,
  },
  required: ["status", "conversationId", "guidance"],
};

const requestUserInput: Tool = {
  name: "request_user_input",
  title: "Ask the owner",
  description: [
    "Ask the owner of this conversation ONE question: a choice among options, or a short text.",
    "Returns the pending request at once; the answer comes later, possibly from another device, and starts a new turn of yours in this conversation.",
    "After calling this, finish what does not depend on the answer and end your turn; never guess or assume an answer, and silence is not one.",
    "An answer is a preference, not an approval: it permits nothing, changes no settings and confirms no risky action.",
    "At most one question can be pending. Do not repeat a request that is pending or whose outcome is uncertain: look with question_status instead.",
    "Do not use it for secrets such as passwords.",
  ].join(" "),
  inputSchema: {
    type: "object",
    properties: {
      kind: { type: "string", enum: ["choice", "text"], description: "choice: give options. text: the owner writes." },
      prompt: {
        type: "string",
        description: `The question, complete in itself: the owner may not see this conversation. At most ${BOUNDS.prompt} characters.`,
      },
      options: {
        type: "array",
        minItems: 0,
        maxItems: BOUNDS.optionsMax,
        description: `For kind choice: ${BOUNDS.optionsMin} to ${BOUNDS.optionsMax} options with different labels. For kind text: leave out.`,
        items: {
          type: "object",
          properties: {
            label: { type: "string", description: `At most ${BOUNDS.label} characters.` },
            description: {
              type: "string",
              description: `What choosing it means. At most ${BOUNDS.description} characters.`,
            },
          },
          required: ["label"],
        },
      },
      allowFreeform: {
        type: "boolean",
        description: "For kind choice: whether the owner may write a text instead of choosing. Default false.",
      },
      expiresInSeconds: {
        type: "integer",
        minimum: 1,
        description:
          "After so many seconds the question can no longer be answered. Leave out unless it becomes useless.",
      },
    },
    required: ["kind", "prompt"],
    additionalProperties: false,
  },
  outputSchema: questionOutput,
  annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: true, openWorldHint: false },
};

const questionStatus: Tool = {
  name: "question_status",
  title: "Look at a question",
  description: [
    "Read a question that was asked with request_user_input: pending, submitted (with the owner's answer) or cancelled (with the reason).",
    "Without requestId: the one that is pending now, if there is one; use that when you do not know whether a request arrived.",
    `With waitSeconds (at most ${MOST_WAIT_SECONDS}) the call is held and returns as soon as the question is resolved; if time runs out it is still waiting, which is not an answer.`,
    "Reading changes nothing.",
  ].join(" "),
  inputSchema: {
    type: "object",
    properties: { requestId, waitSeconds: waitSeconds("the question is answered or cancelled") },
    additionalProperties: false,
  },
  outputSchema: questionOutput,
  annotations: { readOnlyHint: true, openWorldHint: false },
};

const runId = { type: "string", description: "The run." };

const claimRun: Tool = {
  name: "claim_run",
  title: "Take the next turn",
  description: [
    "Take the turn that waits for an agent in this conversation: a message of the owner, or the owner's answer to your question.",
    "Returns its runId and message once; nobody gets it a second time. Do what the message asks, then call settle_run with that runId.",
    `With waitSeconds (at most ${MOST_WAIT_SECONDS}) the call is held until a turn waits; claimed false means that none came.`,
  ].join(" "),
  inputSchema: {
    type: "object",
    properties: {
      runId: { ...runId, description: "A certain run; leave out to take the one that waits." },
      waitSeconds: waitSeconds("a turn waits"),
    },
    additionalProperties: false,
  },
  outputSchema: {
    type: "object",
    properties: {
      claimed: { type: "boolean" },
      runId: { type: "string" },
      message: { type: "string" },
      context: { type: "object", description: "Facts about the workspace, read-only; absent if there are none." },
      workspace: { type: "string" },
      guidance,
    },
    required: ["claimed", "guidance"],
  },
  annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: false, openWorldHint: false },
};

const settleRun: Tool = {
  name: "settle_run",
  title: "End a turn",
  description:
    "End a turn that you took with claim_run: completed or failed. The next turn, such as the owner's answer, waits for this. Repeating the same call is safe.",
  inputSchema: {
    type: "object",
    properties: {
      runId: { ...runId, description: "The runId that claim_run returned." },
      state: { type: "string", enum: ["completed", "failed"] },
      reasonCode: { type: "string", description: `Why it failed, as one word. At most ${BOUNDS.reason} characters.` },
      summary: { type: "string", description: "What was done, for the owner." },
    },
    required: ["runId", "state"],
    additionalProperties: false,
  },
  outputSchema: {
    type: "object",
    properties: { runId: { type: "string" }, state: { type: "string" }, guidance },
    required: ["runId", "state", "guidance"],
  },
  annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: true, openWorldHint: false },
};

export type ToolName = "request_user_input" | "question_status" | "claim_run" | "settle_run";

/** The tools of an agent: one in a run of its own needs no other runs. Answering and cancelling are not among them. */
export function toolsFor(agent: "in_run" | "attached"): readonly Tool[] {
  switch (agent) {
    case "in_run":
      return [requestUserInput, questionStatus];
    case "attached":
      return [requestUserInput, questionStatus, claimRun, settleRun];
    default:
      return agent satisfies never;
  }
}

/** What a client may tell its model about this server as a whole. */
export const INSTRUCTIONS = [
  "Asks the owner of this conversation one question at a time, without blocking.",
  "When a decision is the owner's to make, call request_user_input instead of asking in the terminal, then end your turn;",
  "the answer starts a new turn. An answer is a preference, never an approval. Look at a question with question_status.",
].join(" ");
