import { type Marks, NO_MARKS } from "./marks.js";
import { type ChartRegion, type ChartState, type ChartTransition, inWords, readChart } from "./model.js";

/**
 * The chart as text for a terminal: regions, states, and below each state what is tried there on each event, in order.
 * A lit state has a `*` before it, a lit transition a `>`.
 */
export const chartText = (marks: Marks = NO_MARKS, chart: readonly ChartRegion[] = readChart()): string =>
  chart.map((region) => regionText(region, marks)).join("\n");

function regionText(region: ChartRegion, marks: Marks): string {
  const head = `${region.name}: ${region.description} Begins as ${region.initial}. [${region.rule}]`;
  const own = region.transitions.length === 0 ? [] : ["", "    in any state", ...linesOf(region.transitions, marks)];
  return [head, ...own, ...region.states.flatMap((state) => stateText(state, marks)), ""].join("\n");
}

const stateText = (state: ChartState, marks: Marks): readonly string[] => [
  "",
  `  ${marks.states.has(state.id) ? "*" : " "} ${state.name}: ${state.description} [${state.rule}]`,
  ...linesOf(state.transitions, marks),
];

function linesOf(transitions: readonly ChartTransition[], marks: Marks): readonly string[] {
  const widest = Math.max(0, ...transitions.map((each) => sentence(each).length));
  return transitions.flatMap((each) => {
    const lit = marks.transitions.has(each.id) ? ">" : " ";
    const line = `    ${lit} ${String(each.place).padStart(2)} ${sentence(each).padEnd(widest)}  [${each.rule}]`;
    return each.place === 1 ? [`      ${each.event}`, line] : [line];
  });
}

const sentence = ({ guard, effect, to }: ChartTransition): string =>
  [
    guard === null ? "otherwise" : `if ${inWords(guard)}`,
    effect === null ? ": nothing" : `: ${inWords(effect)}`,
    to === null ? "" : ` -> ${to}`,
  ].join("");
