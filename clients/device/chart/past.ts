import type { Marks } from "../../../machines/chart/marks.js";
import { readChart } from "../../../machines/chart/model.js";
import { certainIn, type Possible, type ReplayStep } from "../../../machines/chart/replay.js";
import type { ConversationEvent } from "../../../protocol/events.js";
import { h, type View } from "./h.js";
import { timeOf } from "./live.js";
import type { StepTo } from "./message.js";
import type { Replay } from "./state.js";
import { strip } from "./strip.js";

const CHART = readChart();
const marks = new WeakMap<ReplayStep, Marks>();

const idsIn = (possible: Possible): ReadonlySet<string> =>
  new Set(Object.entries(possible).flatMap(([region, states]) => [...states].map((state) => `${region}.${state}`)));

/** What was certain is lit, what was possible is dashed; which transition was taken is not stored, and none is lit. */
export function pastMarks(steps: readonly ReplayStep[], at: number): Marks {
  const step = stepAt(steps, at);
  const made = marks.get(step) ?? {
    states: certainIn(step.possible),
    maybe: idsIn(step.possible),
    transitions: new Set<string>(),
  };
  marks.set(step, made);
  return made;
}

export function pastStrip(steps: readonly ReplayStep[], at: number): View {
  const step = stepAt(steps, at);
  const certain = certainIn(step.possible);
  const possible = idsIn(step.possible);
  const isTrimmed = steps.slice(0, at + 1).some(({ kind }) => kind === "trimmed");
  return strip(
    "States at this step",
    CHART,
    (id) => (certain.has(id) ? "now" : possible.has(id) ? "maybe" : "off"),
    (region) => noteOn(region, step, isTrimmed),
  );
}

function stepAt(steps: readonly ReplayStep[], at: number): ReplayStep {
  const step = steps[at];
  if (step === undefined) throw new Error("there is no such step of the history");
  return step;
}

/** Why more than one state is possible. */
function noteOn(region: string, step: ReplayStep, isTrimmed: boolean): string | undefined {
  const states = Object.entries(step.possible).find(([name]) => name === region)?.[1];
  const all = CHART.find(({ name }) => name === region)?.states.length;
  if (states === undefined || states.size === 1) return undefined;
  if (states.size < (all ?? 0)) return "no event tells the start of a run";
  if (step.kind === "event" && (step.unseen ?? 0) > 0) return "no event tells it: a reset, or another driver";
  return isTrimmed ? "unknown: trimmed" : "no event tells it";
}

/** Its history, step by step. */
export function replayPanel(replay: Replay | undefined): View {
  if (replay === undefined) {
    return h(
      "div",
      { key: "replay-offer", class: "replay-offer" },
      h(
        "button",
        { class: "secondary", type: "button", on: { click: () => ({ type: "replay_pressed" }) } },
        "Replay its history",
      ),
    );
  }
  const { steps, at } = replay;
  if (steps === undefined) return h("p", { key: "reading", role: "status" }, "The history is being read…");
  const button = (to: StepTo, words: string, disabled: boolean): View =>
    h(
      "button",
      // still focusable at an end, so that the keyboard stays where it is
      {
        key: to,
        class: "secondary",
        type: "button",
        "aria-disabled": disabled ? "true" : undefined,
        on: { click: () => ({ type: "stepped", to }) },
      },
      words,
    );
  return h(
    "section",
    { key: "replay", class: "card replay", "aria-label": "History, step by step" },
    h("h2", {}, `Step ${at + 1} of ${steps.length}`),
    h("p", { class: "replay-what", role: "status" }, stepWords(stepAt(steps, at))),
    h(
      "div",
      { class: "replay-buttons", role: "group", "aria-label": "Steps" },
      button("first", "First", at === 0),
      button("previous", "Previous", at === 0),
      button("next", "Next", at === steps.length - 1),
      button("last", "Last", at === steps.length - 1),
    ),
    h(
      "p",
      { class: "quiet-text" },
      "Also with ← and →, Home and End. Only what is stored is shown: guards and refusals are not.",
    ),
    h("button", { class: "secondary", type: "button", on: { click: () => ({ type: "live_pressed" }) } }, "Back to now"),
  );
}

function stepWords(step: ReplayStep): string {
  switch (step.kind) {
    case "beginning":
      return "The beginning: the conversation was created.";
    case "trimmed":
      return "Unknown: trimmed. What was before the next event has left the retained history.";
    case "event": {
      const { event, unseen = 0 } = step;
      const jump =
        unseen > 0 ? ` Before it the revision grew by ${unseen} without an event: another driver, or a reset.` : "";
      return `${timeOf(event.occurredAt)}, revision ${event.revision}: ${eventWords(event)}.${jump}`;
    }
    default:
      return step satisfies never;
  }
}

/** What happened, without what anybody wrote. */
function eventWords(event: ConversationEvent): string {
  switch (event.type) {
    case "input_requested":
      return `a ${event.inputKind} question opened`;
    case "input_resolved":
      return `the question was ${event.outcome}`;
    case "message":
      return `a message of the ${event.role === "external" ? "captain" : event.role}`;
    case "turn":
      return `a run ${event.phase === "accepted" ? "was accepted" : event.phase === "cancelled" ? "was cancelled" : event.phase}${event.reasonCode === undefined ? "" : ` (${event.reasonCode})`}`;
    case "activity":
      return `the agent is ${event.phase}`;
    case "tool":
      return `a tool ${event.phase}`;
    case "session":
      return `a session ${event.phase}`;
    default:
      return event satisfies never;
  }
}
