import { BEGINNINGS } from "../../machines/chart/moves.js";
import { type ConversationState, type Decision, decide } from "../../machines/decide.js";
import type { ConversationEvent } from "../../machines/facts.js";

/** One event from one state of the model, and what the machine decided. */
export interface Walked {
  readonly state: ConversationState;
  readonly event: ConversationEvent;
  readonly decision: Decision;
}

/** What tells two states apart for a walk. */
const placeOf = ({ value, context }: ConversationState): string =>
  JSON.stringify([
    value,
    context.open && context.open.question.originRunId === context.active?.runId,
    context.open?.draft.expiresInSeconds,
    [...new Set(context.receipts.map(({ status }) => status))].toSorted(),
    context.waiting.length,
    context.settled.some(({ state }) => state === "completed"),
  ]);

/** Every move of the model from every kind of state that its moves reach, the way to each being one of the shortest. */
export function* walkModel(): Generator<Walked, void, undefined> {
  for (const { state: beginning, moves } of BEGINNINGS) {
    const seen = new Set([placeOf(beginning)]);
    const open = [beginning];
    for (let state = open.shift(); state !== undefined; state = open.shift()) {
      const { waiting, receipts, settled } = state.context;
      // a queue is filled once, from the start
      const isFilling = waiting.length >= 2;
      for (const { from, label } of moves) {
        if (
          isFilling &&
          (receipts.length > 0 || settled.length > 0 || !/send$|input_answer$|request_user_input$/.test(label))
        )
          continue;
        const event = from(state);
        if (event === null) continue;
        const decision = decide(state, event);
        yield { state, event, decision };
        const place = placeOf(decision.next);
        if (seen.has(place)) continue;
        seen.add(place);
        open.push(decision.next);
      }
    }
  }
}
