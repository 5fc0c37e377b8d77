/**
 * What a recorder writes down, one plain JSON value a record (a JSON line each where a history is a file). The place in
 * the list is the time: a record stands before another exactly when the recorder saw it first, so one recorder writes
 * down all clients of a run. Nothing here is a clock's.
 *
 * A recorder writes
 * - `start` when the service accepts connections, at its first start and at each later one, before any client sends;
 * - `invoke` just before a request is sent, with an `op` that no other request of the history has, and then at most one
 *   of `return` (its result) or `error` (its `data.code`) when the reply arrives. A request whose connection was lost, or
 *   that was under way when the service was killed, gets neither: its outcome stays open and the checker leaves it so;
 * - `notify` for each notification as it arrives;
 * - `closed` when a connection has ended: what was subscribed on it is over;
 * - `run` when an agent really began to work on a run: the command was started. (A successful `run_claim` is seen in its
 *   `return`; it needs no record of its own);
 * - `settled` where everything that was sent has arrived, every client reads, and nothing is under way: then every
 *   subscription that is still open has to have reached the newest version that anyone saw.
 *
 * `client` names a connection, not a person: a client that connects again gets a new name (`device-1#2`).
 */
export type HistoryRecord =
  | { readonly type: "start" }
  | {
      readonly type: "invoke";
      readonly client: string;
      readonly op: number;
      readonly method: string;
      readonly params: Readonly<Record<string, unknown>>;
    }
  | { readonly type: "return"; readonly op: number; readonly result: unknown }
  | { readonly type: "error"; readonly op: number; readonly code: string; readonly reason?: string }
  | { readonly type: "notify"; readonly client: string; readonly method: string; readonly params: unknown }
  | { readonly type: "closed"; readonly client: string }
  | {
      readonly type: "run";
      readonly conversationId: string;
      readonly runId: string;
      /** For a continuation: the request it answers, as its message says (`requestIdIn`). */
      readonly requestId?: string;
    }
  | { readonly type: "settled" };

/** What a history shows that may never be. */
export type ViolationKind =
  /** Two answers were accepted for one request, or replies about it fit no order of what was done. */
  | "not_linearizable"
  /** A receipt, answer, message, conversation or revocation that was acknowledged is not there later. */
  | "acknowledged_lost"
  /** A revision was lower than one that was known before the request was sent; or an incarnation came back. */
  | "revision_fell"
  | "version_fell"
  /** A continuation's end changed, or was taken back. */
  | "continuation_changed"
  /** A delta does not follow from what the client has. */
  | "delta_chain_broken"
  /** Two clients have different snapshots of the same version. */
  | "snapshot_differs"
  /** A subscription has not reached the newest version though everything has arrived. */
  | "last_state_lost"
  /** Events came twice or out of order, or one cursor names two events. */
  | "event_order"
  /** Events are missing in a stream, and no gap was announced. */
  | "event_gap"
  | "run_started_twice"
  /** A run of an earlier life of the service was started again. */
  | "run_replayed"
  /** A run was started after its end was known. */
  | "run_started_after_end"
  /** A run was started that no accepted message or answer has asked for. */
  | "run_unfounded"
  /** A question was pending after a start though it was asked before it. */
  | "pending_after_start"
  /** A notification came for nothing that was subscribed. */
  | "unexpected_notification"
  /** The history itself is malformed: a fault of the recorder. */
  | "malformed";

export interface Violation {
  readonly kind: ViolationKind;
  readonly message: string;
  /** Index of the record at which it shows. */
  readonly at: number;
}

/** The request whose answer a continuation's message carries, or undefined for any other message. */
export function requestIdIn(message: string): string | undefined {
  const line = message.split("\n").at(-1) ?? "";
  try {
    const data: unknown = JSON.parse(line);
    return typeof data === "object" && data !== null && "requestId" in data && typeof data.requestId === "string"
      ? data.requestId
      : undefined;
  } catch {
    return undefined;
  }
}
