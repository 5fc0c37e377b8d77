import type { ChartStates } from "../../protocol/chart.js";
import type { ConversationEvent } from "../../protocol/events.js";
import { readChart } from "./model.js";

/** Part of a conversation's stored history, as one page of `conversation_tail` holds it. */
export interface Piece {
  /** Events before it have left the retained history, or may have. */
  readonly gap: boolean;
  readonly events: readonly ConversationEvent[];
}

/** Of each region, the states that the stored events leave possible: one where they tell it, several where not. */
export type Possible = { readonly [R in keyof ChartStates]: ReadonlySet<ChartStates[R]> };

/** One place in the history, right after an event or where events are missing. */
export type ReplayStep = { readonly possible: Possible } & (
  | { readonly kind: "beginning" }
  /** Nothing before the next event is kept: nothing is said about it. */
  | { readonly kind: "trimmed" }
  | {
      readonly kind: "event";
      readonly event: ConversationEvent;
      /** So often the revision grew without an event: the driver changed, or a reset. Absent where that is not known. */
      readonly unseen?: number;
    }
);

/**
 * What the stored events say about where a conversation was, step by step. Nothing is invented: a state that no event
 * tells (the driver, the start of a run) stays open until one does, and what was trimmed is unknown. Pure. Contract
 * section 8, last paragraph.
 */
export function replay(pieces: readonly Piece[]): readonly ReplayStep[] {
  const steps: ReplayStep[] = [];
  let known: Knowledge = BEGINNING;
  for (const [index, { gap, events }] of pieces.entries()) {
    if (gap) {
      known = NOTHING;
      steps.push({ kind: "trimmed", possible: possibleIn(known) });
    } else if (index === 0) steps.push({ kind: "beginning", possible: possibleIn(known) });
    for (const event of events) {
      const unseen = unseenBefore(known, event);
      known = learn(unseen === 0 ? known : { ...known, drivers: DRIVERS }, event);
      steps.push({ kind: "event", event, possible: possibleIn(known), ...(unseen !== null && { unseen }) });
    }
  }
  return steps;
}

interface Knowledge {
  readonly revision: number | null;
  readonly drivers: Possible["driver"];
  readonly questions: Possible["question"];
  /** Runs that were accepted and have not ended, in order. */
  readonly runs: readonly string[];
  /** There may be runs before those, accepted where nothing is kept. */
  readonly earlierRuns: boolean;
  /** The active run has reported: it is running. */
  readonly running: boolean;
}

const states = <R extends keyof ChartStates>(region: R): Possible[R] =>
  // the chart's names of a region's states are that region's, by the machine's own types
  new Set(
    readChart()
      .find(({ name }) => name === region)
      ?.states.map(({ name }) => name),
  ) as unknown as Possible[R];

const DRIVERS = states("driver");
const QUESTIONS = states("question");
const TURNS = states("turn");

const BEGINNING: Knowledge = {
  revision: 0,
  drivers: new Set(["service"]),
  questions: new Set(["none"]),
  runs: [],
  earlierRuns: false,
  running: false,
};

const NOTHING: Knowledge = {
  revision: null,
  drivers: DRIVERS,
  questions: QUESTIONS,
  runs: [],
  earlierRuns: true,
  running: false,
};

/** Events that say themselves why the revision grew. Contract section 6, the paragraph on the revision. */
const grows = (event: ConversationEvent): boolean =>
  event.type === "input_requested" ||
  event.type === "input_resolved" ||
  (event.type === "message" && event.role !== "agent");

function unseenBefore({ revision }: Knowledge, event: ConversationEvent): number | null {
  return revision === null ? null : event.revision - revision - (grows(event) ? 1 : 0);
}

function learn(known: Knowledge, event: ConversationEvent): Knowledge {
  const next = { ...known, revision: event.revision };
  switch (event.type) {
    case "input_requested":
      return { ...next, drivers: SERVICE, questions: new Set(["pending"]) };
    case "input_resolved":
      // a takeover and a reset cancel too: only an answer says who drives
      return {
        ...next,
        questions: new Set([event.outcome]),
        ...(event.outcome === "submitted" && { drivers: SERVICE }),
      };
    case "message":
      return event.role === "agent" ? { ...next, ...RUNNING } : { ...next, drivers: SERVICE };
    case "activity":
    case "tool":
      return { ...next, ...RUNNING };
    case "turn":
      return event.phase === "accepted"
        ? { ...next, drivers: SERVICE, runs: [...next.runs, event.runId] }
        : ended(next, event);
    case "session":
      return next;
    default:
      return event satisfies never;
  }
}

const SERVICE: Possible["driver"] = new Set(["service"]);
/** What an agent reports comes from the run that is on, and runs are on where the service drives. */
const RUNNING = { drivers: SERVICE, running: true } as const;

function ended(known: Knowledge, event: Extract<ConversationEvent, { type: "turn" }>): Knowledge {
  const { runId, phase, reasonCode } = event;
  const place = known.runs.indexOf(runId);
  const isFirst = place === 0 && !known.earlierRuns;
  // one run at a time, in order: where a run completed, all that were accepted before it have ended
  const runs = phase === "completed" ? known.runs.slice(place + 1) : known.runs.filter((each) => each !== runId);
  return {
    ...known,
    runs,
    earlierRuns: known.earlierRuns && !(phase === "completed" && place >= 0),
    // a run that waited may be cancelled while another is on
    running: known.running && !isFirst && !known.earlierRuns,
    drivers: phase === "completed" ? SERVICE : reasonCode === "native_takeover" ? new Set(["native"]) : known.drivers,
  };
}

function possibleIn({ drivers, questions, runs, earlierRuns, running }: Knowledge): Possible {
  const turn: Possible["turn"] = running
    ? new Set(["running"])
    : runs.length > 0
      ? new Set(["accepted", "running"])
      : earlierRuns
        ? TURNS
        : new Set(["idle"]);
  return { driver: drivers, question: questions, turn };
}

/** The states that are certain at a step, as ids of the chart. */
export const certainIn = (possible: Possible): ReadonlySet<string> =>
  new Set(
    Object.entries(possible).flatMap(([region, each]) =>
      each.size === 1 ? [...each].map((name) => `${region}.${name}`) : [],
    ),
  );
