import stringWidth from "string-width";
import type { ConversationEvent } from "../../protocol/events.js";
import type { Answer, Question, QuestionResult } from "../../protocol/question.js";
import type { CancelReason, RefusalReason } from "../../protocol/refusals.js";
import type { ConversationSnapshot } from "../../protocol/snapshot.js";
import { safeLine, safeText } from "../text.js";
import type { CommandLines } from "./command-line.js";
import type { Style } from "./console.js";

/** Rows under a heading, in columns as wide as their widest cell. Cells are made safe. */
export function table(heading: readonly string[], rows: readonly (readonly string[])[], style: Style): string {
  const safe = [heading, ...rows].map((row) => row.map(safeLine));
  const widths = heading.map((_, column) => Math.max(...safe.map((row) => stringWidth(row[column] ?? ""))));
  const lines = safe.map((row) =>
    row
      .map((cell, column) => cell + " ".repeat((widths[column] ?? 0) - stringWidth(cell)))
      .join("  ")
      .trimEnd(),
  );
  return lines.map((line, at) => (at === 0 ? style.dim(line) : line)).join("\n");
}

/** Names with their values, the values in one column. */
export function facts(pairs: readonly (readonly [string, string | undefined])[], style: Style): string {
  const known = pairs.filter((pair): pair is readonly [string, string] => pair[1] !== undefined);
  const width = Math.max(...known.map(([name]) => name.length));
  return known.map(([name, value]) => `${style.dim(name.padEnd(width))}  ${safeLine(value)}`).join("\n");
}

/** Every line of a text, moved in. */
function indented(text: string, by = 2): string {
  return safeText(text).replaceAll(/^/gm, " ".repeat(by));
}

/** A question with what can be done about it: each option with the exact command that answers with it. */
export function questionCard(result: QuestionResult, commands: CommandLines, style: Style): string {
  const { question } = result;
  if (question === undefined) return `${style.plain(result.conversationId)}: no question is waiting`;
  const head = [
    question.prompt
      .split("\n")
      .map((line) => style.bold(line.replaceAll("\t", "    ")))
      .join("\n"),
    indented(
      facts(
        [
          ["conversation", question.conversationId],
          ["request", question.requestId],
          ["incarnation", question.incarnationId],
          ["revision", result.revision === undefined ? undefined : String(result.revision)],
          ["status", statusWords(question)],
          ["asked", `${question.createdAt} by ${question.originRunId}`],
          ["workspace", question.workspace],
          ["expires", question.expiresAt],
        ],
        PLAIN,
      ),
    ),
  ];
  if (question.status === "pending") return [...head, ...choices(result, question, commands, style)].join("\n");
  return [...head, receiptLines(question, style)].join("\n");
}

const PLAIN: Style = { bold: safeLine, dim: safeLine, plain: safeLine };

function choices(result: QuestionResult, question: Question, commands: CommandLines, style: Style): readonly string[] {
  const options = question.options.map(({ optionId, label, description }, at) =>
    [
      `  ${at + 1}) ${style.bold(label)}  ${style.dim(optionId)}`,
      ...(description === undefined || description === "" ? [] : [indented(description, 5)]),
      `     ${commands.option(result, optionId)}`,
    ].join("\n"),
  );
  const text = question.allowFreeform
    ? [
        `  ${question.kind === "text" ? "Answer" : "Or answer"} with a text from standard input:`,
        `     ${commands.text(result)}`,
      ]
    : [];
  return [...options, ...text, "  Cancel it:", `     ${commands.cancel(result)}`];
}

function statusWords({ status, reason, resolvedAt, resolvedBy }: Question): string {
  const by = resolvedBy === undefined ? "" : ` by ${resolvedBy.kind} ${resolvedBy.id}`;
  const why = reason === undefined ? "" : `: ${CANCELLED[reason]}`;
  return status === "pending" ? "pending" : `${status} ${resolvedAt ?? ""}${by}${why}`;
}

/** What was answered, and how far its continuation is. */
export function receiptLines(question: Question, style: Style): string {
  const { answer, continuation, reason } = question;
  if (answer === undefined) return `  ${style.plain(`Cancelled: ${reason === undefined ? "" : CANCELLED[reason]}`)}`;
  const code = continuation?.reasonCode === undefined ? "" : ` (${continuation.reasonCode})`;
  return [
    "  Answer:",
    indented(answerWords(question, answer), 4),
    ...(continuation === undefined
      ? []
      : [`  Continuation: ${style.plain(`${continuation.state}${code}, run ${continuation.runId}`)}`]),
  ].join("\n");
}

function answerWords({ options }: Question, answer: Answer): string {
  switch (answer.kind) {
    case "choice":
      return options.find(({ optionId }) => optionId === answer.optionId)?.label ?? answer.optionId;
    case "text":
      return answer.text;
    default:
      return answer satisfies never;
  }
}

/** A conversation and all that a person wants to know of it. */
export function conversationCard(conversation: ConversationSnapshot, style: Style): string {
  const { driver, eligible, ineligibleReason, question, receipts, scope } = conversation;
  return facts(
    [
      ["conversation", conversation.conversationId],
      ["title", conversation.title],
      ["scope", scope.kind],
      ["directory", scope.workspaceId],
      ["driver", driver.harness === undefined ? driver.kind : `${driver.kind} (${driver.harness})`],
      ["revision", String(conversation.revision)],
      ["incarnation", conversation.incarnationId],
      ["can be asked", eligible ? "yes" : `no (${ineligibleReason ?? "not eligible"})`],
      ["question", question === null ? "none" : `${question.requestId} is waiting`],
      ["receipts", String(Object.keys(receipts).length)],
      ["run", runWords(conversation)],
      ["runs waiting", String(conversation.queuedRuns)],
    ],
    style,
  );
}

export function runWords({ activeRun }: ConversationSnapshot): string {
  return activeRun === null ? "none" : `${activeRun.runId} ${activeRun.state}`;
}

/** One event in one or more lines. */
export function eventLine(event: ConversationEvent, style: Style): string {
  const time = style.dim(event.occurredAt);
  const more = (text: string | undefined): string => (text === undefined ? "" : `\n${indented(text, 4)}`);
  switch (event.type) {
    case "message":
      return `${time}  ${style.bold(event.role)}${event.streaming ? style.dim(" …") : ""}${more(event.text)}`;
    case "input_requested":
      return `${time}  ${style.bold("question")} ${style.dim(event.requestId)}${more(event.prompt)}${more(
        event.options.length === 0 ? undefined : event.options.map((label) => `- ${label}`).join("\n"),
      )}`;
    case "input_resolved":
      return `${time}  ${style.bold(`question ${event.outcome}`)} ${style.dim(event.requestId)}`;
    case "turn": {
      const code = event.reasonCode === undefined ? "" : ` (${event.reasonCode})`;
      return `${time}  ${style.plain(`run ${event.runId} ${event.phase}${code}`)}${more(event.summary)}`;
    }
    case "activity":
      return `${time}  ${style.dim(event.phase)}`;
    case "tool":
      return `${time}  ${style.plain(`tool ${event.name} ${event.phase}`)}${more(event.summary)}`;
    case "session":
      return `${time}  ${style.plain(`session ${event.phase}`)}`;
    default:
      return event satisfies never;
  }
}

/** Why a question was cancelled, in words. Contract section 7. */
const CANCELLED: { readonly [R in CancelReason]: string } = {
  cancelled_by_owner: "its owner cancelled it",
  conversation_reset: "the conversation was reset",
  native_takeover: "the conversation was taken over natively",
  owner_revoked: "the credential behind the asking turn was revoked",
  run_cancelled: "the run that asked was cancelled",
  service_restarted: "the service was started again",
  owner_context_lost: "the credential behind the asking turn was rotated or has expired",
  workspace_replaced: "the directory is gone, moved or another one",
  expired: "it expired",
};

/** Why a response was refused, in words. Contract section 6. */
export const REFUSED: { readonly [R in RefusalReason | "already_pending"]: string } = {
  not_permitted: "this token may not answer",
  device_read_only: "this device is read-only",
  device_revoked: "this device was revoked",
  credential_expired: "this token has expired",
  stale_request: "the conversation was reset since this question was read",
  unknown_request: "the service does not know this request (any more)",
  answer_conflict: "it has been answered otherwise",
  already_submitted: "it has been answered already",
  question_cancelled: "the question was cancelled",
  unknown_option: "the question has no such option",
  text_not_allowed: "the question takes only one of its options",
  already_pending: "the question is waiting already",
};
