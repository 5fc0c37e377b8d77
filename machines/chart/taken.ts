import type { ChartStates, ChartStep } from "../../protocol/chart.js";
import { conversationMachine } from "../conversation.js";
import type { ConversationState, Decision } from "../decide.js";
import type { Reply } from "../effects.js";
import type { ConversationEvent } from "../facts.js";
import { ALWAYS, allTransitions, type ChartTransition, idOfDefinition, readChart } from "./model.js";

/** What one event did on the chart. */
export interface Taken {
  readonly event: ConversationEvent["type"];
  /** In the order in which they were taken. */
  readonly steps: readonly ChartStep[];
  /** Something was stored; false for reads and for refusals that consume nothing. */
  readonly changed: boolean;
  /** The caller was refused; what was noticed on the way may have been stored all the same (6.6). */
  readonly refused: boolean;
  readonly reason?: string;
}

/**
 * The transitions an event takes from a state, found by the machine itself: it walks its states and tries the guards of
 * the event in their order, as `decide` does. Pure.
 */
export function takenBy(state: ConversationState, event: ConversationEvent, decision: Decision): Taken {
  const reason = refusalIn(decision);
  return {
    event: event.type,
    steps: idsTakenBy(state, event, decision).map((id) => stepOf(transitionOf(id), state.value)),
    changed: decision.changed,
    refused: reason !== null,
    ...(reason !== null && { reason }),
  };
}

/** The same as ids of the chart. */
export function idsTakenBy(
  state: ConversationState,
  event: ConversationEvent,
  { effects }: Decision,
): readonly string[] {
  const selected = conversationMachine.getTransitionData(state, event).map(idOfDefinition);
  return effects.some(({ type }) => type === "recheck") ? [...selected, TAKE_NEXT] : selected;
}

/** After an event, a run that waits takes the place that is free; nothing else needs no event. */
export const TAKE_NEXT = `turn.idle ${ALWAYS} 1`;

let known: ReadonlyMap<string, ChartTransition> | undefined;

function transitionOf(id: string): ChartTransition {
  known ??= new Map(allTransitions(readChart()).map((each) => [each.id, each]));
  const transition = known.get(id);
  if (transition === undefined) throw new Error(`the chart has no transition ${id}`);
  return transition;
}

function stepOf({ id, region, from, to, guard, effect, rule }: ChartTransition, states: ChartStates): ChartStep {
  // what a region takes in any of its states is taken in the one it is in
  const here = from === region ? stateIn(region, states) : from;
  return {
    transition: id,
    region,
    from: here,
    to: to ?? here,
    ...(guard !== null && { guard }),
    rule,
    actions: effect === null ? [] : [effect],
  };
}

const stateIn = (region: string, states: ChartStates): string =>
  Object.entries(states).find(([name]) => name === region)?.[1] ?? region;

/** The code with which the caller was refused, or null. */
function refusalIn({ effects }: Decision): string | null {
  for (const effect of effects) if (effect.type === "reply") return refusalOf(effect.reply);
  return null;
}

function refusalOf(reply: Reply): string | null {
  switch (reply.kind) {
    case "question":
      if (reply.status === "revision_conflict") return reply.status;
      return reply.status === "refused" ? (reply.reason ?? reply.status) : null;
    case "conflict":
      return "revision_conflict";
    case "fault":
      return reply.reason ?? reply.code;
    case "accepted":
    case "conversation":
    case "claimed":
    case "reported":
    case "done":
      return null;
    default:
      return reply satisfies never;
  }
}
