/** What of a chart is lit: where a conversation is, and what may happen there next. */
export interface Marks {
  /** Ids of states, as `question.pending`. */
  readonly states: ReadonlySet<string>;
  /** Ids of transitions. */
  readonly transitions: ReadonlySet<string>;
}

export const NO_MARKS: Marks = { states: new Set(), transitions: new Set() };
