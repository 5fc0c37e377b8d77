/** What waits for the schedule to let it go on: the only waiting there is in a simulated service. */
interface Task {
  readonly label: string;
  readonly go: () => void;
}

/** All that waits, oldest first. A crash drops everything: what waited then never goes on. */
export class Tasks {
  #waiting: Task[] = [];

  get count(): number {
    return this.#waiting.length;
  }

  get labels(): readonly string[] {
    return this.#waiting.map(({ label }) => label);
  }

  /** Resolves when the schedule says so. */
  pause(label: string): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting.push({ label, go: resolve });
    });
  }

  later(label: string, go: () => void): void {
    this.#waiting.push({ label, go });
  }

  /** Lets one go on, and everything that follows from it up to the next wait. */
  async step(pick: number): Promise<void> {
    const [task] = this.#waiting.splice(pick % Math.max(1, this.#waiting.length), 1);
    task?.go();
    await quiet();
  }

  /** Lets everything go on, oldest first, until nothing waits. */
  async drain(): Promise<void> {
    await quiet();
    for (let steps = 0; this.#waiting.length > 0; steps += 1) {
      if (steps > 20_000) throw new Error(`the service is never quiet: ${this.labels.slice(0, 8).join(", ")}`);
      await this.step(0);
    }
  }

  drop(): void {
    this.#waiting = [];
  }
}

/** Until no promise is left that can go on: promises run to their end before the event loop turns. */
export const quiet = (): Promise<void> =>
  new Promise((resolve) => {
    setImmediate(resolve);
  });
