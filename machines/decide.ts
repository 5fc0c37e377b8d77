import { initialTransition, type SnapshotFrom, transition } from "xstate";
import type { ConversationContext } from "./context.js";
import { conversationMachine } from "./conversation.js";
import type { Effect } from "./effects.js";
import type { ConversationEvent } from "./facts.js";

/** A conversation as the machine knows it: its state value and its context. Immutable. */
export type ConversationState = SnapshotFrom<typeof conversationMachine>;

/** What an event leads to. `changed` is false for refusals and reads: then there is nothing to commit. */
export interface Decision {
  readonly next: ConversationState;
  readonly changed: boolean;
  readonly effects: readonly Effect[];
}

/** A new conversation with no event, no question and no run. Contract section 5, `conversation_create`. */
export const openConversation = (context: ConversationContext): ConversationState =>
  initialTransition(conversationMachine, context)[0];

/**
 * Runs one event through the chart and performs nothing. The version grows by one where anything changed, whatever it
 * was. Contract section 1.
 */
export function decide(state: ConversationState, event: ConversationEvent): Decision {
  const [reached, actions] = transition(conversationMachine, state, event);
  const effects = actions.flatMap(({ params }) => emittedBy(params));
  const changed = reached.context !== state.context || !sameValue(reached.value, state.value);
  if (!changed) return { next: state, changed, effects };
  return { next: restate(reached, { ...reached.context, version: state.context.version + 1 }), changed, effects };
}

/** Every action of the chart emits effects and nothing else; xstate hands them out in the order they were asked for. */
const emittedBy = (params: unknown): readonly Effect[] =>
  typeof params === "object" && params !== null && "event" in params ? [params.event as Effect] : [];

/** The same place in the chart with another context. */
const restate = (state: ConversationState, context: ConversationContext): ConversationState =>
  conversationMachine.resolveState({ value: state.value, context });

const sameValue = (one: ConversationState["value"], other: ConversationState["value"]): boolean =>
  one.driver === other.driver && one.question === other.question && one.turn === other.turn;
