import type { Notifications, Result } from "../../protocol/operations.js";
import type { Notice } from "./connection.js";
import type { CallError } from "./errors.js";
import type { Watching, WatchPort } from "./watch.js";

/** What the watcher of a conversation's chart hears. */
export type ChartUpdate =
  /** Looked up by the service just now: after each connect, and whenever `look` asks. */
  | { readonly kind: "looked"; readonly result: Result<"chart_subscribe"> }
  | { readonly kind: "transition"; readonly transition: Notifications["chart_transition"] }
  /** Transitions of the meantime are not told again. */
  | { readonly kind: "stale" }
  | { readonly kind: "failed"; readonly error: CallError };

/** A conversation on the state chart, for operators. Changes nothing. */
export class ChartWatching implements Watching {
  readonly #port: WatchPort;
  readonly #conversationId: string;
  readonly #listener: (update: ChartUpdate) => void;
  #closed = false;

  constructor(port: WatchPort, conversationId: string, listener: (update: ChartUpdate) => void) {
    this.#port = port;
    this.#conversationId = conversationId;
    this.#listener = listener;
  }

  connected(): void {
    this.look();
  }

  disconnected(): void {
    this.#tell({ kind: "stale" });
  }

  /** Has the service look its facts up again. */
  look(): void {
    this.#port.request("chart_subscribe", { conversationId: this.#conversationId }, (outcome) =>
      this.#tell(outcome.ok ? { kind: "looked", result: outcome.value } : { kind: "failed", error: outcome.error }),
    );
  }

  notice(notice: Notice): void {
    if (notice.name === "chart_transition" && notice.params.conversationId === this.#conversationId) {
      this.#tell({ kind: "transition", transition: notice.params });
    }
  }

  close(): void {
    this.#closed = true;
    this.#port.request("chart_unsubscribe", { conversationId: this.#conversationId }, () => {});
  }

  #tell(update: ChartUpdate): void {
    if (!this.#closed) this.#listener(update);
  }
}
