/** What of a chart is lit: where a conversation is, and what may happen there next. */
export interface Marks {
  /** Ids of states, as `question.pending`. */
  readonly states: ReadonlySet<string>;
  /** Ids of transitions. */
  readonly transitions: ReadonlySet<string>;
  /** Ids of states where it may be, as far as what is kept says. */
  readonly maybe?: ReadonlySet<string>;
  /** Ids of the transitions that it has just taken. */
  readonly taken?: ReadonlySet<string>;
}

export const NO_MARKS: Marks = { states: new Set(), transitions: new Set() };
