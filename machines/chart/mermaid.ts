import { arrowsOf, stayingOf } from "./groups.js";
import { type ChartRegion, type ChartTransition, inWords, readChart } from "./model.js";

/**
 * Mermaid's `stateDiagram-v2`, one diagram a region: Mermaid cannot join the states of different regions. What stays in
 * a state is written below it, in the order in which it is tried.
 */
export const mermaid = (chart: readonly ChartRegion[] = readChart()): string =>
  chart.map((region) => `%% ${region.name}\n${mermaidOf(region)}`).join("\n");

const mermaidOf = (region: ChartRegion): string => [arrowsIn(region), ...notesIn(region), ""].join("\n");

/** The region without what stays. */
export const arrowsIn = (region: ChartRegion): string =>
  [
    "stateDiagram-v2",
    `  [*] --> ${region.initial}`,
    ...region.states.map((state) => `  ${state.name} : ${state.name} (${state.rule})`),
    ...arrowsOf(region).map(({ from, to, transitions }) => `  ${from} --> ${to} : ${labels(transitions)}`),
  ].join("\n");

const notesIn = (region: ChartRegion): readonly string[] =>
  stayingOf(region).flatMap(({ states, transitions }) => [
    `  note right of ${noteAt(region, states)}`,
    `    stays in ${states.join(", ")}`,
    ...transitions.map((transition) => `    ${label(transition)}`),
    "  end note",
  ]);

/** A note hangs on one state; what holds in any state hangs on the first. */
const noteAt = (region: ChartRegion, states: readonly string[]): string =>
  region.states.find(({ name }) => states.includes(name))?.name ?? region.initial;

const labels = (transitions: readonly ChartTransition[]): string => transitions.map(label).join("<br/>");

/** A colon would begin a label of its own, and a semicolon would end the line. */
const label = ({ event, place, guard, effect, rule }: ChartTransition): string =>
  `${event} #${place}${guard === null ? "" : ` [${inWords(guard)}]`}${effect === null ? "" : ` / ${inWords(effect)}`} (${rule})`
    .replaceAll(/[:;]/g, ",")
    .replaceAll("#", "№ ");
