import type { AnyStateNode, AnyTransitionDefinition } from "xstate";
import { conversationMachine } from "../conversation.js";

/** The chart as plain data, read off the machine that runs. Nothing here is written by hand. */

export interface ChartTransition {
  /** Unique: where, on what, and at which place among those tried. */
  readonly id: string;
  readonly region: string;
  /** The state it is taken in; a region's own name where it is taken in all of its states. */
  readonly from: string;
  /** The event's type; `always` where none is needed. */
  readonly event: string;
  /** Guards are tried from 1 upwards; the first that holds decides. */
  readonly place: number;
  readonly guard: string | null;
  /** `null` where it stays. */
  readonly to: string | null;
  readonly effect: string | null;
  /** The contract's section. */
  readonly rule: string;
}

export interface ChartState {
  readonly id: string;
  readonly name: string;
  readonly description: string;
  readonly rule: string;
  readonly transitions: readonly ChartTransition[];
}

export interface ChartRegion {
  readonly name: string;
  readonly description: string;
  readonly rule: string;
  readonly initial: string;
  /** Taken in every state of the region that has none of its own for the event. */
  readonly transitions: readonly ChartTransition[];
  readonly states: readonly ChartState[];
}

export const ALWAYS = "always";

const children = (node: AnyStateNode): readonly AnyStateNode[] =>
  Object.values(node.states).toSorted((one, other) => one.order - other.order);

/** The regions of the machine, in its order. */
export const readChart = (machine: { readonly root: AnyStateNode } = conversationMachine): readonly ChartRegion[] =>
  children(machine.root).map((region) => ({
    name: region.key,
    description: region.description ?? "",
    rule: ruleOf(region),
    initial: region.initial.target[0]?.key ?? "",
    transitions: transitionsOf(region, region),
    states: children(region).map((state) => ({
      id: idOf(state),
      name: state.key,
      description: state.description ?? "",
      rule: ruleOf(state),
      transitions: transitionsOf(region, state),
    })),
  }));

const transitionsOf = (region: AnyStateNode, node: AnyStateNode): readonly ChartTransition[] =>
  [[ALWAYS, node.always ?? []] as const, ...node.transitions].flatMap(([event, definitions]) =>
    definitions.map((definition, index) => ({
      id: transitionId(node, event, index),
      region: region.key,
      from: node === region ? region.key : node.key,
      event,
      place: index + 1,
      guard: nameOf(definition.guard),
      to: definition.target?.[0]?.key ?? null,
      effect: nameOf(definition.actions[0]),
      rule: ruleOf(definition),
    })),
  );

/** The id of a definition that the machine has just selected; the same as in the chart. */
export function idOfDefinition(definition: AnyTransitionDefinition): string {
  const node = definition.source as AnyStateNode;
  const event = definition.eventType === "" ? ALWAYS : definition.eventType;
  const all = event === ALWAYS ? (node.always ?? []) : (node.transitions.get(event) ?? []);
  return transitionId(node, event, all.indexOf(definition));
}

/** `region.state`, or the region's name. */
const idOf = (node: AnyStateNode): string => node.path.join(".");

const transitionId = (node: AnyStateNode, event: string, index: number): string =>
  `${idOf(node)} ${event} ${index + 1}`;

/** Guards and actions are named in the machine, never written in place: a name is what the chart shows. */
function nameOf(named: unknown): string | null {
  if (named === undefined) return null;
  if (typeof named === "string") return named;
  if (typeof named === "object" && named !== null && "type" in named && typeof named.type === "string") {
    return named.type;
  }
  throw new Error("a guard or an action of the chart has no name");
}

function ruleOf({ meta }: { readonly meta?: unknown }): string {
  if (typeof meta === "object" && meta !== null && "rule" in meta && typeof meta.rule === "string") return meta.rule;
  throw new Error("something in the chart does not say which section of the contract it keeps");
}

/** Every transition of the chart, region by region, state by state. */
export const allTransitions = (chart: readonly ChartRegion[]): readonly ChartTransition[] =>
  chart.flatMap((region) => [...region.transitions, ...region.states.flatMap((state) => state.transitions)]);

/** A name of the machine in words: `callerMayNotAnswer` is "caller may not answer". */
export const inWords = (name: string): string => name.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
