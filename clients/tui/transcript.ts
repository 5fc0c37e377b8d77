import type { ConversationEvent } from "../../protocol/events.js";
import { safeText } from "../text.js";
import { clip, hang, type Line, line, paragraph, span } from "./layout.js";
import type { State } from "./state.js";
import { receiptWords } from "./words.js";

/** The conversation as it is kept, oldest first. */
export function transcriptLines(state: State, width: number): readonly Line[] {
  const { open } = state;
  if (open === null) return [line("No conversation is open. /open shows them all.", "dim")];
  if (open.failed !== null)
    return paragraph(`This conversation cannot be shown: ${safeText(open.failed)}.`, width, "bad");
  if (!open.loaded) return [line("Reading the conversation…", "dim")];
  const head: readonly Line[] = open.gap ? paragraph("Older parts are no longer kept.", width, "dim") : [];
  if (open.events.length === 0 && head.length === 0) return [line("Nothing has been said yet.", "dim")];
  return [...head, ...open.events.flatMap((event, index) => linesOf(state, event, open.events[index + 1], width))];
}

const memo = new WeakMap<ConversationEvent, { readonly width: number; readonly lines: readonly Line[] }>();

/** Wrapping is the dear part, and an event never changes: its lines are kept while the width stays. */
function linesOf(
  state: State,
  event: ConversationEvent,
  next: ConversationEvent | undefined,
  width: number,
): readonly Line[] {
  if (event.type === "input_resolved") return resolvedLines(state, event, width);
  if (isGrownIn(event, next)) return [];
  const known = memo.get(event);
  if (known !== undefined && known.width === width) return known.lines;
  const lines = madeLines(event, width);
  memo.set(event, { width, lines });
  return lines;
}

/** A message that streams is shown once: in the event that holds all of it so far. */
function isGrownIn(event: ConversationEvent, next: ConversationEvent | undefined): boolean {
  return (
    event.type === "message" &&
    event.streaming &&
    next?.type === "message" &&
    next.role === event.role &&
    next.text.startsWith(event.text)
  );
}

const SPEAKERS = { operator: "you", agent: "agent", external: "other" } as const;

function madeLines(event: ConversationEvent, width: number): readonly Line[] {
  switch (event.type) {
    case "message": {
      const tone = event.role === "operator" ? "accent" : event.role === "agent" ? "good" : "dim";
      const text = safeText(event.text).replace(/\n+$/, "");
      return hang([span(SPEAKERS[event.role], tone), span(" › ", "dim")], event.streaming ? `${text} …` : text, width);
    }
    case "turn": {
      const why = [event.reasonCode, event.summary].filter((part) => part !== undefined).join(": ");
      return small(
        `run ${event.runId.slice(0, 8)} ${event.phase}${why === "" ? "" : ` (${why})`}`,
        width,
        event.phase === "failed",
      );
    }
    case "tool": {
      const summary = event.summary === undefined ? "" : `: ${event.summary}`;
      return small(`${event.name} ${event.phase}${summary}`, width, event.phase === "failed");
    }
    case "input_requested": {
      const prompt = safeText(event.prompt).replaceAll(/\s+/g, " ");
      return [line(clip(`? asked: ${prompt}`, width), "warn")];
    }
    case "session":
      return small(`session ${event.phase}`, width, event.phase === "failed");
    case "activity":
    case "input_resolved":
      return [];
    default:
      return event satisfies never;
  }
}

const small = (text: string, width: number, bad: boolean): readonly Line[] =>
  hang([span("· ", "dim")], safeText(text), width, bad ? "bad" : "dim");

function resolvedLines(
  state: State,
  event: ConversationEvent & { readonly type: "input_resolved" },
  width: number,
): readonly Line[] {
  const receipt = state.open?.snapshot?.receipts[event.requestId];
  const text =
    receipt === undefined ? (event.outcome === "submitted" ? "answered" : "cancelled") : receiptWords(receipt);
  return hang([span("? ", "warn")], safeText(text), width, event.outcome === "submitted" ? "good" : "warn");
}
