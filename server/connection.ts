import { isDeepStrictEqual } from "node:util";
import { BOUNDS } from "../protocol/bounds.js";
import { parseJson } from "../protocol/checked.js";
import type { FrameId } from "../protocol/frames.js";
import type { Method, Params } from "../protocol/operations.js";
import { FAULT_NUMBERS, type FaultData, type FieldError, PROTOCOL_NUMBERS } from "../protocol/refusals.js";
import { checkParams, checkRequestFrame, isMethod, METHODS } from "../protocol/requests.js";
import { Fault } from "./fault.js";
import type { RateLimits } from "./limits.js";
import type { Log } from "./log.js";
import type { Presented } from "./principals/registry.js";
import { type Call, type Service, Subscriber } from "./service.js";
import type { Outlet } from "./subscriptions.js";

/** One client's socket, as far as frames go. */
export interface Channel extends Outlet {
  close(code: number, reason: string): void;
}

/** Close code of a socket that did not authenticate in time. Contract section 5. */
export const CLOSE_UNAUTHENTICATED = 4401;

/** Methods whose results can be as large as a frame may be: one connection gets one of them at a time, when it reads. */
const LARGE: ReadonlySet<Method> = new Set<Method>([
  "conversation_list",
  "conversation_tail",
  "input_list",
  "inbox_subscribe",
  "device_list",
  "credential_list",
  "project_list",
]);

export interface ConnectionOptions {
  readonly service: Service;
  readonly channel: Channel;
  /** Where the client is, as far as the network says. */
  readonly address: string;
  readonly rates: RateLimits;
  readonly log: Log;
  /** Called with who it is, each time that is told anew. */
  readonly authenticated: (presented: Presented) => void;
}

/** JSON-RPC over one socket: authenticates, validates, hands requests to the service. Contract section 5. */
export class Connection {
  readonly #options: ConnectionOptions;
  readonly #service: Service;
  readonly #channel: Channel;
  readonly #log: Log;
  readonly #subscriber: Subscriber;
  #presented: Presented | null = null;
  #isClosed = false;
  /** The end of the large results that were asked for. */
  #large: Promise<unknown> = Promise.resolve();

  constructor(options: ConnectionOptions) {
    const { service, channel, log } = options;
    this.#options = options;
    this.#service = service;
    this.#channel = channel;
    this.#log = log;
    this.#subscriber = new Subscriber({
      get congested() {
        return channel.congested;
      },
      // What a credential may no longer see is not sent, however it came to be sent. Contract section 2.
      send: (frame) => {
        if (this.#isGood()) channel.send(frame);
        else this.review();
      },
      whenClear: (task) => channel.whenClear(task),
    });
  }

  get isAuthenticated(): boolean {
    return this.#presented !== null;
  }

  /** Whose connection it is, from its upgrade or its first request. */
  present(presented: Presented): void {
    this.#presented = presented;
    this.#options.authenticated(presented);
  }

  /** Ends the live view of a credential that is no longer good; the next request is refused. */
  review(): void {
    if (this.#presented === null || this.#isGood()) return;
    const { standing } = this.#service.principals.caller(this.#presented);
    const followed = this.#subscriber.followsSomething;
    this.#service.disconnect(this.#subscriber);
    if (followed)
      this.#channel.send(JSON.stringify({ jsonrpc: "2.0", method: "credential_ended", params: { standing } }));
  }

  closed(): void {
    this.#isClosed = true;
    this.#service.disconnect(this.#subscriber);
  }

  /** A binary message is no frame of this protocol. */
  receiveBinary(): void {
    if (this.#isTooMuch(null, null)) return;
    this.#protocolFault(null, "invalid_request", "frames are text messages", [{ path: "frame", expected: "text" }]);
  }

  /** Takes one text frame. Never throws, never rejects: whatever came, the answer is a frame. */
  async receive(text: string, bytes: number): Promise<void> {
    if (bytes > BOUNDS.frameToService) {
      if (this.#isTooMuch(null, null)) return;
      this.#fault(
        null,
        new Fault("frame_too_large", `a frame to the service has at most ${BOUNDS.frameToService} bytes`),
      );
      return;
    }
    const json = parseJson(text);
    if (!json.ok) {
      if (this.#isTooMuch(null, null)) return;
      return this.#protocolFault(null, "parse_error", "the frame is not JSON", json.errors);
    }
    const frame = checkRequestFrame(json.value);
    if (!frame.ok) {
      if (this.#isTooMuch(idOf(json.value), null)) return;
      const batch = Array.isArray(json.value);
      const what = batch
        ? "batches are not accepted: send one request a frame"
        : "the frame is not a JSON-RPC 2.0 request";
      return this.#protocolFault(idOf(json.value), "invalid_request", what, frame.errors);
    }
    const { id, method, params } = frame.value;
    if (this.#isTooMuch(id, isMethod(method) ? method : null)) return;
    if (!isMethod(method)) {
      const expected = `one of ${METHODS.join(", ")}`;
      return this.#protocolFault(id, "method_not_found", "there is no such method", [{ path: "method", expected }]);
    }
    const time = this.#service.metrics.requestSeconds.startTimer({ method });
    let outcome: string = "ok";
    try {
      if (LARGE.has(method)) await this.#inTurn(() => this.#reply(id, method, params));
      else await this.#reply(id, method, params);
    } catch (error) {
      outcome = this.#failed(id, method, error);
    } finally {
      time();
      this.#service.metrics.requests.inc({ method, outcome });
    }
    if (method === "authenticate" && this.#presented === null) {
      this.#channel.close(CLOSE_UNAUTHENTICATED, "unauthenticated");
    }
  }

  async #reply(id: FrameId, method: Method, params: unknown): Promise<void> {
    const afterReply: (() => void)[] = [];
    const asked = this.#presented;
    const result = await this.#request(method, params, afterReply);
    this.#channel.send(JSON.stringify({ jsonrpc: "2.0", id, result }));
    // A connection that went or became another's, or a credential that ended, while the request was under way follows
    // nothing.
    if (this.#isClosed || !isDeepStrictEqual(asked, this.#presented)) this.#service.disconnect(this.#subscriber);
    else for (const task of afterReply) task();
    this.review();
  }

  /** One after another, and not before the client has read what was sent. */
  #inTurn(task: () => Promise<void>): Promise<void> {
    const turn = this.#large.then(async () => {
      if (this.#channel.congested) await new Promise<void>((resolve) => this.#channel.whenClear(resolve));
      await task();
    });
    this.#large = turn.catch(() => undefined);
    return turn;
  }

  /** Refuses a frame where its sender has sent too many. Contract section 5, `rate_limited`. */
  #isTooMuch(id: FrameId | null, method: Method | null): boolean {
    const { rates, address } = this.#options;
    const retryAfterMs = rates.take(this.#presented, address, method);
    if (retryAfterMs === 0) return false;
    this.#service.metrics.rateLimited.inc();
    this.#fault(id, new Fault("rate_limited", `too many requests; try again in ${retryAfterMs} ms`, { retryAfterMs }));
    return true;
  }

  async #request(method: Method, given: unknown, afterReply: (() => void)[]): Promise<unknown> {
    // Who is nobody learns nothing, not even what would have been valid.
    if (this.#presented === null && method !== "authenticate" && method !== "device_pair_complete") {
      throw new Fault(
        "unauthenticated",
        "authenticate first: a bearer token on the upgrade, or the method authenticate",
      );
    }
    const params = checkParams(method, given);
    if (!params.ok) {
      const text = params.errors.map(({ path, expected }) => `${path}: expected ${expected}`).join("; ");
      throw new Fault("invalid_params", text, { errors: params.errors });
    }
    switch (method) {
      case "authenticate":
        return this.#authenticate((params.value as Params<"authenticate">).token);
      case "device_pair_complete":
        return this.#service.completePairing(params.value as Params<"device_pair_complete">);
      default: {
        const call: Call = {
          presented: this.#presented as Presented,
          subscriber: this.#subscriber,
          afterReply: (task) => afterReply.push(task),
        };
        return this.#service.request(method, params.value as Params<typeof method>, call);
      }
    }
  }

  #authenticate(token: string) {
    const presented = this.#service.principals.authenticate(token);
    // a client that says again who it is, as a sign of life, goes on hearing what it follows
    if (!isDeepStrictEqual(presented, this.#presented)) this.#service.disconnect(this.#subscriber);
    if (presented === null) {
      this.#presented = null;
      throw new Fault("unauthenticated", "this token is not valid (any more)");
    }
    this.present(presented);
    const { principals } = this.#service;
    return { principal: principals.view(principals.caller(presented)) };
  }

  #isGood(): boolean {
    if (this.#presented === null) return false;
    const { standing } = this.#service.principals.caller(this.#presented);
    return standing === "good" || standing === "read_only";
  }

  #failed(id: FrameId, method: Method, error: unknown): string {
    if (error instanceof Fault) {
      if (error.data.code === "unauthenticated") this.#service.metrics.unauthenticated.inc();
      this.#fault(id, error);
      return error.data.code;
    }
    // A fault of the program: the client learns that, the log learns what.
    this.#log.error(
      { method, error: error instanceof Error ? error.stack : String(error) },
      "a request failed unexpectedly",
    );
    this.#error(id, PROTOCOL_NUMBERS.internal_error, "the service failed; nothing is known about this request", {
      code: "internal_error",
    });
    return "internal_error";
  }

  #fault(id: FrameId | null, { message, data }: Fault): void {
    const number = data.code === "internal_error" ? PROTOCOL_NUMBERS.internal_error : FAULT_NUMBERS[data.code];
    this.#error(id, number, message, data);
  }

  #protocolFault(
    id: FrameId | null,
    kind: keyof typeof PROTOCOL_NUMBERS,
    message: string,
    errors: readonly FieldError[],
  ): void {
    this.#error(id, PROTOCOL_NUMBERS[kind], message, { code: "invalid_params", errors });
  }

  #error(id: FrameId | null, code: number, message: string, data: FaultData): void {
    this.#channel.send(JSON.stringify({ jsonrpc: "2.0", id, error: { code, message, data } }));
  }
}

function idOf(value: unknown): FrameId | null {
  if (typeof value !== "object" || value === null || !("id" in value)) return null;
  const { id } = value;
  return typeof id === "number" || (typeof id === "string" && id.length <= 512) ? id : null;
}
