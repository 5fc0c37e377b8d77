import { WebSocket } from "ws";
import type { Method, Params, Result } from "../protocol/operations.js";
import { checkNotification, checkResult, isNotificationName } from "../protocol/results.js";

/** A reply as it came, not looked at yet. */
export interface Reply {
  readonly jsonrpc: "2.0";
  readonly id: unknown;
  readonly result?: unknown;
  readonly error?: {
    readonly code: number;
    readonly message: string;
    readonly data: {
      readonly code: string;
      readonly errors?: readonly { readonly path: string; readonly expected: string }[];
      readonly reason?: string;
      readonly requestId?: string;
      readonly retryAfterMs?: number;
    };
  };
}

export interface Notification {
  readonly method: string;
  readonly params: Readonly<Record<string, unknown>>;
}

/** How a connection was refused before it was one. */
export class UpgradeRefused extends Error {
  constructor(readonly status: number) {
    super(`HTTP ${status}`);
  }
}

/** The parameters as a test writes them: `schemaVersion` is added. */
type Written<M extends Method> =
  Params<M> extends infer P ? (P extends unknown ? Omit<P, "schemaVersion"> : never) : never;

/**
 * A WebSocket client with hand-written JSON that shares nothing with our own link. Every result and every notification is
 * held against the protocol's strict validators.
 */
export class RawClient {
  readonly notifications: Notification[] = [];
  /** Resolves when the connection has ended. */
  readonly closed: Promise<{ readonly code: number; readonly reason: string }>;
  readonly #socket: WebSocket;
  readonly #waiting = new Map<unknown, (reply: Reply) => void>();
  readonly #unasked: Reply[] = [];
  #wakers: (() => void)[] = [];
  #isClosed = false;
  #count = 0;

  private constructor(socket: WebSocket) {
    this.#socket = socket;
    this.closed = new Promise((resolve) => {
      socket.once("close", (code, reason) => {
        this.#isClosed = true;
        resolve({ code, reason: reason.toString() });
        this.#wake();
      });
    });
    socket.on("error", () => undefined);
    socket.on("message", (data) => this.#receive(String(data)));
  }

  /** @throws {UpgradeRefused} where the service answered the upgrade with an HTTP error. */
  static connect(url: string, token?: string, headers: Readonly<Record<string, string>> = {}): Promise<RawClient> {
    return new Promise((resolve, reject) => {
      const socket = new WebSocket(`${url.replace(/^http/, "ws")}/v1/socket`, ["clankie.v1"], {
        headers: { ...(token !== undefined && { authorization: `Bearer ${token}` }), ...headers },
      });
      const client = new RawClient(socket);
      socket.once("open", () => resolve(client));
      socket.once("unexpected-response", (_request, response) => {
        response.resume();
        reject(new UpgradeRefused(response.statusCode ?? 0));
      });
      socket.once("error", reject);
    });
  }

  get protocol(): string {
    return this.#socket.protocol;
  }

  get isOpen(): boolean {
    return !this.#isClosed;
  }

  /** Sends exactly this. */
  send(frame: string | Uint8Array): void {
    this.#socket.send(frame);
  }

  /** Stops and goes on reading from the network. */
  pause(): void {
    this.#socket.pause();
  }

  resume(): void {
    this.#socket.resume();
  }

  /** Sends a request and waits for the reply, whatever it is. */
  call(method: string, params: unknown, id: string | number = `r${++this.#count}`): Promise<Reply> {
    const frame = JSON.stringify({ jsonrpc: "2.0", id, method, params });
    return this.exchange(frame, id);
  }

  /** Sends this text and waits for the reply with this id. */
  exchange(frame: string, id: unknown): Promise<Reply> {
    const reply = new Promise<Reply>((resolve, reject) => {
      this.#waiting.set(id, resolve);
      void this.closed.then(({ code, reason }) => reject(new Error(`closed with ${code} ${reason} before the reply`)));
    });
    this.send(frame);
    return reply;
  }

  /** Sends this and waits for the next reply that has no id. */
  async unanswerable(frame: string | Uint8Array): Promise<Reply> {
    const before = this.#unasked.length;
    this.send(frame);
    await this.#until(() => this.#unasked.length > before);
    return this.#unasked[before]!;
  }

  /** A request that has to succeed; its result is held against the protocol. */
  async ok<M extends Method>(method: M, params: Written<M>): Promise<Result<M>> {
    const reply = await this.call(method, { schemaVersion: 1, ...params });
    if (reply.error !== undefined) throw new Error(`${method}: ${reply.error.data.code}: ${reply.error.message}`);
    const result = checkResult(method, reply.result);
    if (!result.ok) throw new Error(`${method}: the result is not the contract's: ${JSON.stringify(result.errors)}`);
    return result.value;
  }

  /** A request that has to fail: its code. */
  async fault<M extends Method>(method: M, params: Written<M>): Promise<string> {
    return (await this.error(method, params)).data.code;
  }

  /** A request that has to fail. */
  async error<M extends Method>(method: M, params: Written<M>): Promise<NonNullable<Reply["error"]>> {
    const reply = await this.call(method, { schemaVersion: 1, ...params });
    if (reply.error === undefined) throw new Error(`${method} succeeded: ${JSON.stringify(reply.result)}`);
    return reply.error;
  }

  /** The first notification, of those that came or will come, that fits. */
  async notified(fits: (notification: Notification) => boolean): Promise<Notification> {
    await this.#until(() => this.notifications.some(fits));
    return this.notifications.find(fits)!;
  }

  async close(): Promise<void> {
    this.#socket.close();
    await this.closed;
  }

  async #until(holds: () => boolean): Promise<void> {
    while (!holds()) {
      if (this.#isClosed) throw new Error("the connection closed first");
      await new Promise<void>((resolve) => this.#wakers.push(resolve));
    }
  }

  #receive(text: string): void {
    const frame = JSON.parse(text) as Partial<Reply> & Partial<Notification>;
    if (frame.method !== undefined) this.#notice(frame.method, frame.params);
    else {
      const waiting = this.#waiting.get(frame.id);
      this.#waiting.delete(frame.id);
      if (waiting === undefined) this.#unasked.push(frame as Reply);
      else waiting(frame as Reply);
    }
    this.#wake();
  }

  #notice(method: string, params: unknown): void {
    if (!isNotificationName(method)) throw new Error(`a notification that the contract does not know: ${method}`);
    const checked = checkNotification(method, params);
    if (!checked.ok) throw new Error(`${method} is not the contract's: ${JSON.stringify(checked.errors)}`);
    this.notifications.push({ method, params: params as Notification["params"] });
  }

  #wake(): void {
    const wakers = this.#wakers;
    this.#wakers = [];
    for (const wake of wakers) wake();
  }
}
