import type { Method, PrincipalView, Result } from "../protocol/operations.js";
import type { Answer, QuestionResult, Target } from "../protocol/question.js";
import type { ConversationSnapshot, Inbox } from "../protocol/snapshot.js";
import { socketAddress } from "./link/address.js";
import { pauseBefore } from "./link/backoff.js";
import { type ChartUpdate, ChartWatching } from "./link/chart.js";
import { type Clock, systemClock } from "./link/clock.js";
import { type Arguments, Connection, type Notice, type Outcome } from "./link/connection.js";
import { LinkLost } from "./link/errors.js";
import { type ResponseOutcome, responseOutcome } from "./link/outcome.js";
import type { Connector, Ending } from "./link/transport.js";
import {
  type ConversationUpdate,
  ConversationWatching,
  type InboxUpdate,
  InboxWatching,
  type Watching,
  type WatchOptions,
} from "./link/watch.js";

export type LinkState =
  | { readonly kind: "connecting" }
  /** The principal is known where the link authenticates by its first request (a browser). */
  | { readonly kind: "connected"; readonly principal?: PrincipalView }
  /** Try number `attempt` (from 1) comes, or came, at `nextTryAt` (milliseconds since the epoch). */
  | {
      readonly kind: "reconnecting";
      readonly attempt: number;
      readonly nextTryAt: number;
      readonly detail: string;
    }
  /** For good: a refused credential or origin is not tried again. */
  | { readonly kind: "closed"; readonly reason: "by_client" | "unauthenticated" | "forbidden" };

export interface LinkOptions {
  /** `http://HOST:PORT` or `ws://HOST:PORT`; see `socketAddress`. */
  readonly url: string;
  /** Without one only `device_pair_complete` can be called. */
  readonly token?: string;
  readonly connector: Connector;
  readonly clock?: Clock;
  /** In [0, 1); for the jitter of the pauses. */
  readonly random?: () => number;
  /** What the service sent that the contract does not know, in words for a log. */
  readonly onOddity?: (text: string) => void;
}

export interface ConversationWatch {
  /** The mirror, or nothing while there is none that was read on this connection. */
  readonly snapshot: ConversationSnapshot | undefined;
  close(): void;
}

export interface InboxWatch {
  readonly inbox: Inbox | undefined;
  close(): void;
}

export interface ChartWatch {
  /** Has the service look the facts up again. */
  look(): void;
  close(): void;
}

/** A connection up for so long, in milliseconds, is stable: the next loss starts again with the shortest pause. */
const STABLE_MS = 10_000;

/**
 * Opens a link to the service and keeps it: reconnects with growing, jittered pauses until it is closed or refused.
 * Throws `BadAddress` for a URL that is no service's.
 */
export function openLink(options: LinkOptions): Link {
  return new Link(options);
}

/**
 * The client's side of the socket, shared by every client. It sends each request once and never again by itself, and it
 * keeps nothing from before a reconnect that it has not read again. Contract sections 5 and 8.
 */
export class Link {
  readonly #options: LinkOptions;
  readonly #address: string;
  readonly #clock: Clock;
  readonly #random: () => number;
  readonly #listeners = new Set<(state: LinkState) => void>();
  readonly #watches = new Set<Watching>();
  #connection: Connection | undefined;
  #state: LinkState = { kind: "connecting" };
  #ids = 0;
  #attempt = 0;
  #stopTimer: () => void = () => {};

  /** Use `openLink`. */
  constructor(options: LinkOptions) {
    this.#options = options;
    this.#address = socketAddress(options.url);
    this.#clock = options.clock ?? systemClock;
    this.#random = options.random ?? Math.random;
    this.#connect();
  }

  get state(): LinkState {
    return this.#state;
  }

  /** Hears every change of the state from now on; returns what ends that. */
  onState(listener: (state: LinkState) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Resolves once the link is connected; rejects with `LinkLost` once it is closed. Waits through reconnects. */
  ready(): Promise<void> {
    return new Promise((resolve, reject) => {
      const look = (state: LinkState): boolean => {
        if (state.kind === "connected") resolve();
        else if (state.kind === "closed") reject(new LinkLost(false, closedWords(state.reason)));
        else return false;
        return true;
      };
      if (look(this.#state)) return;
      const stop = this.onState((state) => {
        if (look(state)) stop();
      });
    });
  }

  /**
   * Calls a method once. Rejects with `FaultError` for a JSON-RPC error, with `LinkLost` when there is no connection
   * (`sent: false`) or it went before the reply (`sent: true`), and with `BadReply` for a reply that breaks the contract.
   */
  call<M extends Method>(method: M, args: Arguments<M>): Promise<Result<M>> {
    return new Promise((resolve, reject) => {
      this.#request(method, args, (outcome) => (outcome.ok ? resolve(outcome.value) : reject(outcome.error)));
    });
  }

  /** Sends an answer, once. Never rejects. Contract sections 6 and 8. */
  answer(target: Target, answer: Answer): Promise<ResponseOutcome> {
    return this.#respond("input_answer", { ...target, answer }, target);
  }

  /** Sends the cancellation of a question, once. Never rejects. Contract sections 6 and 8. */
  cancelQuestion(target: Target): Promise<ResponseOutcome> {
    return this.#respond("input_cancel", target, target);
  }

  /** Watches a conversation until `close`. One watch for each conversation at a time. */
  watchConversation(
    conversationId: string,
    options: WatchOptions,
    listener: (update: ConversationUpdate) => void,
  ): ConversationWatch {
    const watching = new ConversationWatching(this.#port(), conversationId, options, listener);
    this.#watch(watching);
    return {
      get snapshot() {
        return watching.snapshot;
      },
      close: () => this.#unwatch(watching),
    };
  }

  /** Watches every pending question until `close`. One watch at a time. */
  watchInbox(listener: (update: InboxUpdate) => void): InboxWatch {
    const watching = new InboxWatching(this.#port(), listener);
    this.#watch(watching);
    return {
      get inbox() {
        return watching.inbox;
      },
      close: () => this.#unwatch(watching),
    };
  }

  /** Watches a conversation on the state chart until `close`. Operators only. One watch for each at a time. */
  watchChart(conversationId: string, listener: (update: ChartUpdate) => void): ChartWatch {
    const watching = new ChartWatching(this.#port(), conversationId, listener);
    this.#watch(watching);
    return { look: () => watching.look(), close: () => this.#unwatch(watching) };
  }

  /**
   * The environment says that the network is back, or that the page is visible again: a pause ends now, and a connection
   * that may be dead is asked for a sign of life.
   */
  nudge(): void {
    if (this.#state.kind === "reconnecting" && this.#connection === undefined) this.#connect();
    else this.#connection?.probe();
  }

  /** Ends the link for good. */
  close(): void {
    this.#close("by_client");
  }

  #port() {
    return {
      clock: this.#clock,
      random: this.#random,
      request: <M extends Method>(method: M, args: Arguments<M>, settle: (outcome: Outcome<Result<M>>) => void): void =>
        this.#request(method, args, settle),
    };
  }

  #watch(watching: Watching): void {
    this.#watches.add(watching);
    if (this.#state.kind === "connected") watching.connected();
  }

  #unwatch(watching: Watching): void {
    if (this.#watches.delete(watching)) watching.close();
  }

  #request<M extends Method>(method: M, args: Arguments<M>, settle: (outcome: Outcome<Result<M>>) => void): void {
    const closed = this.#state.kind === "closed" ? closedWords(this.#state.reason) : undefined;
    if (this.#connection !== undefined) this.#connection.request(method, args, settle);
    else settle({ ok: false, error: new LinkLost(false, closed ?? "there is no connection to the service") });
  }

  #respond<M extends "input_answer" | "input_cancel">(
    method: M,
    args: Arguments<M>,
    { conversationId, requestId }: Target,
  ): Promise<ResponseOutcome> {
    return new Promise((resolve) => {
      this.#request(method, args, (outcome) => {
        resolve(responseOutcome(outcome, () => this.#receipt(conversationId, requestId)));
      });
    });
  }

  async #receipt(conversationId: string, requestId: string): Promise<QuestionResult> {
    for (;;) {
      await this.ready();
      try {
        return await this.call("input_get", { conversationId, requestId });
      } catch (error) {
        if (!(error instanceof LinkLost) || this.#state.kind === "closed") throw error;
      }
    }
  }

  #connect(): void {
    this.#stopTimer();
    this.#connection = new Connection({
      url: this.#address,
      token: this.#options.token,
      connector: this.#options.connector,
      clock: this.#clock,
      nextId: () => ++this.#ids,
      events: {
        up: (principal) => this.#up(principal),
        notice: (notice) => this.#notice(notice),
        oddity: (text) => this.#options.onOddity?.(text),
        down: (ending) => this.#down(ending),
      },
    });
  }

  #up(principal: PrincipalView | undefined): void {
    this.#stopTimer = this.#clock.after(STABLE_MS, () => {
      this.#attempt = 0;
    });
    this.#become(principal === undefined ? { kind: "connected" } : { kind: "connected", principal });
    for (const watch of [...this.#watches]) watch.connected();
  }

  #notice(notice: Notice): void {
    for (const watch of [...this.#watches]) watch.notice(notice);
  }

  #down(ending: Ending): void {
    if (ending.kind === "refused") this.#close(ending.reason);
    else this.#reconnect(ending.detail);
  }

  #reconnect(detail: string): void {
    this.#connection = undefined;
    this.#stopTimer();
    this.#attempt += 1;
    const pause = pauseBefore(this.#attempt, this.#random);
    this.#stopTimer = this.#clock.after(pause, () => this.#connect());
    this.#become({
      kind: "reconnecting",
      attempt: this.#attempt,
      nextTryAt: this.#clock.now() + pause,
      detail,
    });
    for (const watch of [...this.#watches]) watch.disconnected();
  }

  #close(reason: "by_client" | "unauthenticated" | "forbidden"): void {
    if (this.#state.kind === "closed") return;
    this.#stopTimer();
    const connection = this.#connection;
    this.#connection = undefined;
    this.#become({ kind: "closed", reason });
    for (const watch of [...this.#watches]) watch.disconnected();
    connection?.drop(closedWords(reason));
  }

  #become(state: LinkState): void {
    this.#state = state;
    for (const listener of [...this.#listeners]) listener(state);
  }
}

function closedWords(reason: "by_client" | "unauthenticated" | "forbidden"): string {
  switch (reason) {
    case "by_client":
      return "the link was closed";
    case "unauthenticated":
      return "the service refused the token";
    case "forbidden":
      return "the service refused this host or origin";
    default:
      return reason satisfies never;
  }
}
