/** Time as the link needs it; injected, so that tests hold it. */
export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
  /** Runs `task` once, `ms` from now; returns what calls that off. */
  after(ms: number, task: () => void): () => void;
}

/** The clock of the machine, in Node and in a browser. */
export const systemClock: Clock = {
  now: () => Date.now(),
  after(ms, task) {
    const timer = setTimeout(task, ms);
    return () => clearTimeout(timer);
  },
};
