import { StoreError } from "./errors.js";
import type { Change, Commit, Compare } from "./port.js";

/** Bytes of committed changes kept so that a watcher can begin a little in the past. */
const KEPT_BYTES = 4 * 1024 * 1024;
/** Changes kept, whatever their size. */
const KEPT_CHANGES = 4096;

/** What a commit did, in the order a watcher sees it. */
export function changeOf(commit: number, { puts, deletes }: Commit): Change {
  return { commit, entries: [...puts, ...deletes.map((key): Compare => ({ key, value: null }))] };
}

/**
 * The changes of the near past and those who wait for the next. Memory is bounded for all watchers together: they
 * share one list of changes, and one that falls off its end is told so.
 */
export class Watchers {
  readonly #kept: { readonly change: Change; readonly bytes: number }[] = [];
  readonly #asleep = new Set<() => void>();
  #bytes = 0;
  /** Number of the last commit published or skipped. */
  #last: number;
  #ended: { readonly error: StoreError } | undefined;
  /** Counts the ends: a watcher of an earlier life ends with the error of the last one. */
  #life = 0;

  constructor(last: number) {
    this.#last = last;
  }

  /** Tells every watcher of a durable change; changes come in the order of their numbers. */
  publish(change: Change): void {
    let bytes = 64;
    for (const { key, value } of change.entries) bytes += key.length + (value?.length ?? 0);
    this.#kept.push({ change, bytes });
    this.#bytes += bytes;
    this.#last = change.commit;
    while (this.#kept.length > KEPT_CHANGES || (this.#bytes > KEPT_BYTES && this.#kept.length > 1)) {
      this.#bytes -= this.#kept.shift()?.bytes ?? 0;
    }
    this.#wake();
  }

  /** Ends every watcher with this error, and starts afresh at commit `last`. */
  end(error: StoreError, last: number): void {
    this.#ended = { error };
    this.#life += 1;
    this.#kept.length = 0;
    this.#bytes = 0;
    this.#last = last;
    this.#wake();
  }

  watch(prefix: string, from: number): AsyncIterableIterator<Change> {
    const life = this.#life;
    let seen = from;
    let done = false;
    let wakeMine: (() => void) | undefined;

    const next = async (): Promise<IteratorResult<Change, undefined>> => {
      while (!done) {
        if (life !== this.#life && this.#ended !== undefined) {
          done = true;
          throw this.#ended.error;
        }
        const first = this.#kept[0]?.change.commit ?? this.#last + 1;
        if (seen < first - 1) {
          done = true;
          throw new StoreError("STORE_BEHIND", "The watcher is too far behind; read again.");
        }
        const change = this.#kept[seen + 1 - first]?.change;
        if (change === undefined) {
          await new Promise<void>((resolve) => {
            wakeMine = resolve;
            this.#asleep.add(resolve);
          });
          continue;
        }
        seen = change.commit;
        const entries = change.entries.filter((entry) => entry.key.startsWith(prefix));
        if (entries.length > 0) return { done: false, value: { commit: change.commit, entries } };
      }
      return { done: true, value: undefined };
    };

    // Not a generator: the return of one waits for its pending next, which here may be forever.
    return {
      next,
      return: async () => {
        done = true;
        if (wakeMine !== undefined) this.#asleep.delete(wakeMine);
        wakeMine?.();
        return { done: true, value: undefined };
      },
      [Symbol.asyncIterator]() {
        return this;
      },
    };
  }

  #wake(): void {
    const asleep = [...this.#asleep];
    this.#asleep.clear();
    for (const wake of asleep) wake();
  }
}
