import { getShortestPaths } from "xstate/graph";
import { BOUNDS } from "../../protocol/bounds.js";
import { conversationMachine } from "../conversation.js";
import { type ConversationState, type Decision, decide } from "../decide.js";
import type { Effect } from "../effects.js";
import type { ConversationEvent } from "../facts.js";
import { type ChartRegion, type ChartTransition, readChart } from "./model.js";
import { BEGINNINGS, type Beginning, type Move } from "./moves.js";
import { idsTakenBy, TAKE_NEXT } from "./taken.js";

/** The shortest ways through the machine, found by running it: to every state, transition, guard's side and reason. */
export interface Exploration {
  /** By a state's id, as `question.pending`. */
  readonly states: ReadonlyMap<string, Way>;
  /** By a transition's id. */
  readonly transitions: ReadonlyMap<string, Way>;
  /** Ids of transitions that were tried and whose guard stood in nobody's way. */
  readonly passedOver: ReadonlyMap<string, Way>;
  /** By what is said or stored, as `refused stale_request` or `cancelled expired`. */
  readonly reasons: ReadonlyMap<string, Way>;
}

/** What happens, in order, from a beginning. */
export interface Way {
  readonly beginning: string;
  readonly steps: readonly string[];
  /** The transitions the last step took. */
  readonly taken: readonly string[];
  /** Whether the last step changed anything. */
  readonly changed: boolean;
}

export function explore(
  chart: readonly ChartRegion[] = readChart(),
  beginnings: readonly Beginning[] = BEGINNINGS,
): Exploration {
  const transitionsOf = (id: string, event: string) => tried(chart, id).filter((each) => each.event === event);
  const found = {
    states: new Map<string, Way>(),
    transitions: new Map<string, Way>(),
    passedOver: new Map<string, Way>(),
    reasons: new Map<string, Way>(),
  };
  for (const beginning of beginnings) exploreFrom(beginning, transitionsOf, found);
  return found;
}

/** What is tried in a state, or in any state of a region. */
const tried = (chart: readonly ChartRegion[], id: string): readonly ChartTransition[] =>
  chart.flatMap(({ name, transitions, states }) =>
    name === id ? transitions : states.flatMap((state) => (state.id === id ? state.transitions : [])),
  );

type Found = { readonly [K in keyof Exploration]: Map<string, Way> };

function exploreFrom(
  beginning: Beginning,
  transitionsOf: (stateId: string, event: string) => readonly ChartTransition[],
  found: Found,
): void {
  const labels = new WeakMap<ConversationEvent, string>();
  const eventsFrom = (state: ConversationState): readonly ConversationEvent[] =>
    offered(beginning.moves, state).flatMap(({ label, from }) => {
      const event = from(state);
      if (event === null) return [];
      labels.set(event, label);
      return [event];
    });
  const paths = getShortestPaths(conversationMachine, {
    fromState: beginning.state,
    events: eventsFrom,
    serializeState: (state) => placeOf(state),
    serializeEvent: (event) => labels.get(event) ?? event.type,
  });
  const byLength = paths.toSorted((one, other) => one.steps.length - other.steps.length);
  for (const { state, steps } of byLength) {
    const way = {
      beginning: beginning.label,
      steps: steps.flatMap(({ event }) => labels.get(event) ?? []),
      taken: [],
      changed: false,
    };
    for (const id of idsOf(state)) keepShorter(found.states, id, way);
    for (const event of eventsFrom(state)) note(state, event, labels.get(event) ?? "", way, transitionsOf, found);
  }
}

/** Everything, while the queue is nearly empty; then only what fills it, and what a full queue refuses. */
function offered(moves: readonly Move[], { context }: ConversationState): readonly Move[] {
  const { length } = context.waiting;
  if (length < 2) return moves;
  if (context.receipts.length > 0 || context.settled.length > 0) return [];
  const filling = ["operator: conversation_send"];
  const refused = [...filling, "operator: input_answer"];
  const labels = length < BOUNDS.queuedRuns ? filling : refused;
  return moves.filter(({ label }) => labels.includes(label));
}

/** What tells two states apart, as far as any rule looks. */
const placeOf = ({ value, context }: ConversationState): string =>
  JSON.stringify([
    value,
    context.harness,
    context.open && [context.open.draft.expiresInSeconds, context.open.question.originRunId === context.active?.runId],
    [...new Set(context.receipts.map(({ status }) => status))].toSorted(),
    context.active?.origin.kind,
    context.waiting.length,
    context.settled.some(({ state }) => state === "completed"),
    context.settled.length > 0,
  ]);

/** Remembers what one event from one state does. */
function note(
  state: ConversationState,
  event: ConversationEvent,
  label: string,
  before: Way,
  transitionsOf: (stateId: string, event: string) => readonly ChartTransition[],
  found: Found,
): void {
  const decision = decide(state, event);
  const taken = idsTakenBy(state, event, decision);
  const way: Way = { beginning: before.beginning, steps: [...before.steps, label], taken, changed: decision.changed };

  for (const id of taken) keepShorter(found.transitions, id, way);
  for (const id of [...idsOf(state), ...REGIONS]) {
    for (const each of transitionsOf(id, event.type)) {
      if (taken.includes(each.id)) break;
      if (each.guard !== null) keepShorter(found.passedOver, each.id, way);
    }
  }
  if (decision.next.value.turn === "idle" && decision.changed) keepShorter(found.passedOver, TAKE_NEXT, way);
  for (const reason of reasonsIn(state, decision)) keepShorter(found.reasons, reason, way);
}

const REGIONS = Object.keys(conversationMachine.root.states);

const idsOf = ({ value }: ConversationState): readonly string[] =>
  Object.entries(value).map(([region, name]) => `${region}.${name}`);

function keepShorter(ways: Map<string, Way>, key: string, way: Way): void {
  const known = ways.get(key);
  if (known === undefined || known.steps.length > way.steps.length) ways.set(key, way);
}

/** Everything with a code that this step says to the caller or stores. */
function reasonsIn({ context }: ConversationState, { next, effects }: Decision): readonly string[] {
  const kept = new Set(context.receipts.map(({ requestId }) => requestId));
  const cancelled = next.context.receipts.flatMap(({ requestId, reason }) =>
    reason === undefined || kept.has(requestId) ? [] : [`cancelled ${reason}`],
  );
  return [...cancelled, ...effects.flatMap(reasonsOf)];
}

function reasonsOf(effect: Effect): readonly string[] {
  switch (effect.type) {
    case "reply": {
      const { reply } = effect;
      if (reply.kind === "fault") {
        return [reply.reason === undefined ? `error ${reply.code}` : `error ${reply.code} ${reply.reason}`];
      }
      if (reply.kind === "conflict") return ["revision_conflict of a message or a reset"];
      if (reply.kind !== "question") return [];
      if (reply.status === "revision_conflict") return ["revision_conflict"];
      return reply.reason === undefined ? [] : [`${reply.status} ${reply.reason}`];
    }
    case "event":
      return effect.event.type === "turn" && effect.event.reasonCode !== undefined
        ? [`turn ${effect.event.phase} ${effect.event.reasonCode}`]
        : [];
    case "recheck":
    case "start":
    case "stop":
    case "again":
      return [];
    default:
      return effect satisfies never;
  }
}
