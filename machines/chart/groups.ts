import type { ChartRegion, ChartState, ChartTransition } from "./model.js";

/** The transitions from one state to another, drawn as one arrow. */
export interface Arrow {
  readonly from: string;
  readonly to: string;
  readonly transitions: readonly ChartTransition[];
}

/** Transitions that stay where they are taken, the same ones in every state named. */
export interface Staying {
  readonly states: readonly string[];
  readonly transitions: readonly ChartTransition[];
}

const moves = ({ to, from }: ChartTransition): boolean => to !== null && to !== from;

/** The arrows of a region, in the order of the states they leave. */
export function arrowsOf(region: ChartRegion): readonly Arrow[] {
  const arrows = new Map<string, { from: string; to: string; transitions: ChartTransition[] }>();
  for (const transition of region.states.flatMap((state) => state.transitions)) {
    if (!moves(transition)) continue;
    const { from, to } = { from: transition.from, to: transition.to ?? transition.from };
    const key = `${from} ${to}`;
    const arrow = arrows.get(key) ?? { from, to, transitions: [] };
    arrow.transitions.push(transition);
    arrows.set(key, arrow);
  }
  return [...arrows.values()];
}

/** What stays, said once for states in which it is the same. */
export function stayingOf(region: ChartRegion): readonly Staying[] {
  const groups = new Map<string, { states: string[]; transitions: readonly ChartTransition[] }>();
  for (const state of [asState(region), ...region.states]) {
    const staying = state.transitions.filter((transition) => !moves(transition));
    if (staying.length === 0) continue;
    const key = staying.map(({ event, place, guard, effect }) => [event, place, guard, effect].join(" ")).join("\n");
    const group = groups.get(key) ?? { states: [], transitions: staying };
    group.states.push(state.name);
    groups.set(key, group);
  }
  return [...groups.values()];
}

const asState = ({ name, description, rule, transitions }: ChartRegion): ChartState => ({
  id: name,
  name: "any state",
  description,
  rule,
  transitions,
});
