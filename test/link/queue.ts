/** Values that come and are waited for, in order. */
export class Queue<T> {
  readonly #values: T[] = [];
  readonly #takers: ((value: T) => void)[] = [];

  put(value: T): void {
    const taker = this.#takers.shift();
    if (taker === undefined) this.#values.push(value);
    else taker(value);
  }

  take(): Promise<T> {
    const value = this.#values.shift();
    return value === undefined ? new Promise((resolve) => this.#takers.push(resolve)) : Promise.resolve(value);
  }

  /** What has come and was not taken. */
  get waiting(): readonly T[] {
    return this.#values;
  }
}
