import type { Question } from "../../protocol/question.js";
import { safeText } from "../text.js";
import { clip, hang, type Line, line, paragraph, span } from "./layout.js";
import { type Card, isLow, type State } from "./state.js";
import { answerWords, cancelWords, continuationWords, spanWords, timeWords, whoWords } from "./words.js";

/** The part of the card that scrolls. */
export function cardBody(state: State, { question, target }: Card, width: number): readonly Line[] {
  const room = width - 2;
  const low = isLow(state);
  const gap: readonly Line[] = low ? [] : [[]];
  const about = [askedWords(question, state.now), `request ${question.requestId}`];
  const meta = low ? [] : paragraph([...about, `revision ${target.expectedRevision}`].join(" · "), room, "dim");
  if (question.status !== "pending") return [...receiptLines(state, question, room), ...meta];
  return [
    ...paragraph(safeText(question.prompt), room, "strong"),
    ...(question.options.length === 0 ? [] : gap),
    ...question.options.flatMap(({ label, description }, index) => [
      ...hang([span(` ${index + 1}  `, "accent")], safeText(label), room),
      ...(description === undefined || description === ""
        ? []
        : hang([span("    ")], safeText(description), room, "dim")),
    ]),
    ...gap,
    ...paragraph(freeWords(question), room),
    ...expiryLines(question, state.now, room),
    ...meta,
  ];
}

function freeWords({ kind, allowFreeform }: Question): string {
  if (kind === "text") return "Answer in your own words.";
  return allowFreeform ? "One of these, or your own words." : "One of these; free text is not taken.";
}

function askedWords({ createdAt, originRunId }: Question, now: number): string {
  const who = originRunId.startsWith("session:") ? `agent ${safeText(originRunId)}` : `run ${safeText(originRunId)}`;
  return `asked ${timeWords(createdAt, now)} by ${who}`;
}

function expiryLines({ expiresAt }: Question, now: number, width: number): readonly Line[] {
  if (expiresAt === undefined) return [];
  const left = Date.parse(expiresAt) - now;
  const words = left > 0 ? `in ${spanWords(left)}` : `${spanWords(-left)} ago`;
  return paragraph(`Expires ${timeWords(expiresAt, now)}: ${words}.`, width, left > 0 ? "plain" : "warn");
}

function receiptLines({ now }: State, question: Question, width: number): readonly Line[] {
  const prompt = paragraph(safeText(question.prompt).replaceAll(/\s+/g, " "), width);
  const when = question.resolvedAt === undefined ? "" : ` at ${timeWords(question.resolvedAt, now)}`;
  const who = safeText(whoWords(question.resolvedBy));
  const outcome =
    question.status === "submitted"
      ? paragraph(`✔ Answered: ${safeText(answerWords(question))}, by ${who}${when}.`, width, "good")
      : paragraph(`✘ Cancelled: ${cancelWords(question.reason)} (${who}${when}).`, width, "warn");
  const { continuation } = question;
  const then =
    continuation === undefined
      ? []
      : paragraph(
          safeText(continuationWords(continuation)),
          width,
          continuation.state === "failed" ? "bad" : continuation.state === "completed" ? "good" : "plain",
        );
  return [...(prompt.length > 3 ? [...prompt.slice(0, 2), line("…", "dim")] : prompt), ...outcome, ...then];
}

/** The part of the card that always stays: what has become of it, and what can be done. */
export function cardFoot(state: State, card: Card, width: number): readonly Line[] {
  const room = width - 2;
  const { question, target } = card;
  const lines: Line[] = [];
  const attempt = state.attempts[target.requestId];
  const kept = state.kept[target.requestId];
  if (attempt?.phase === "sending") {
    lines.push(...paragraph(attempt.answer === null ? "Cancelling…" : "Sending your answer…", room, "warn"));
  } else if (attempt?.phase === "uncertain") {
    lines.push(
      ...paragraph("Uncertain: sent, no reply came. Its receipt is read before anything is said.", room, "warn"),
    );
  }
  if (kept !== undefined) {
    lines.push(line(clip(`You wrote, and it was not stored: ${safeText(kept).replaceAll(/\s+/g, " ")}`, room), "dim"));
  }
  if (question.status !== "pending") return [...lines, line(clip("Esc puts this away.", room), "dim")];
  const revision = state.open?.snapshot?.revision;
  if (card.stale) {
    lines.push(
      ...paragraph("From before the connection was lost: it is read again before it can be answered.", room, "warn"),
    );
  } else if (revision !== undefined && revision > target.expectedRevision) {
    lines.push(
      ...paragraph(
        `The conversation has changed since (revision ${revision}): read it again with /question.`,
        room,
        "warn",
      ),
    );
  }
  if (isLow(state)) return [...lines, ...paragraph(shortWays(question), room, "strong")];
  return [
    ...lines,
    ...paragraph(answerWays(question), room, "strong"),
    ...paragraph("Cancel: /question cancel · Esc hides", room, "dim"),
  ];
}

function answerWays({ options, allowFreeform }: Question): string {
  const choose = options.length === 0 ? [] : [`/question answer 1${options.length > 1 ? `…${options.length}` : ""}`];
  const write = allowFreeform ? ["/question text WORDS"] : [];
  return `Answer: ${[...choose, ...write].join(" or ")}`;
}

/** The same in one line of a narrow screen. */
function shortWays({ options, allowFreeform }: Question): string {
  const choose = options.length === 0 ? [] : ["answer N"];
  const write = allowFreeform ? ["text WORDS"] : [];
  return `/question ${[...choose, ...write, "cancel"].join("|")}`;
}
