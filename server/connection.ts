import { isDeepStrictEqual } from "node:util";
import { BOUNDS } from "../protocol/bounds.js";
import { parseJson } from "../protocol/checked.js";
import type { FrameId } from "../protocol/frames.js";
import type { Method, Params } from "../protocol/operations.js";
import { FAULT_NUMBERS, type FaultData, type FieldError, PROTOCOL_NUMBERS } from "../protocol/refusals.js";
import { checkParams, checkRequestFrame, isMethod, METHODS } from "../protocol/requests.js";
import { Fault } from "./fault.js";
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

/** Requests of one connection that are being worked on at once; further ones are refused, not queued. */
const REQUESTS_AT_ONCE = 256;

/** JSON-RPC over one socket: authenticates, validates, hands requests to the service. Contract section 5. */
export class Connection {
  readonly #service: Service;
  readonly #channel: Channel;
  readonly #log: Log;
  readonly #subscriber: Subscriber;
  #presented: Presented | null;
  #underWay = 0;
  #isClosed = false;

  constructor(service: Service, channel: Channel, presented: Presented | null, log: Log) {
    this.#service = service;
    this.#channel = channel;
    this.#presented = presented;
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

  /** Ends the live view of a credential that is no longer good; the next request is refused. */
  review(): void {
    if (this.#presented === null || this.#isGood()) return;
    const { standing } = this.#service.principals.caller(this.#presented);
    const followed = this.#subscriber.conversations.size > 0 || this.#subscriber.inbox !== null;
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
    this.#protocolFault(null, "invalid_request", "frames are text messages", [{ path: "frame", expected: "text" }]);
  }

  /** Takes one text frame. Never throws, never rejects: whatever came, the answer is a frame. */
  async receive(text: string, bytes: number): Promise<void> {
    if (bytes > BOUNDS.frameToService) {
      this.#fault(
        null,
        new Fault("frame_too_large", `a frame to the service has at most ${BOUNDS.frameToService} bytes`),
      );
      return;
    }
    const json = parseJson(text);
    if (!json.ok) return this.#protocolFault(null, "parse_error", "the frame is not JSON", json.errors);
    const frame = checkRequestFrame(json.value);
    if (!frame.ok) {
      const batch = Array.isArray(json.value);
      const what = batch
        ? "batches are not accepted: send one request a frame"
        : "the frame is not a JSON-RPC 2.0 request";
      return this.#protocolFault(idOf(json.value), "invalid_request", what, frame.errors);
    }
    const { id, method, params } = frame.value;
    if (!isMethod(method)) {
      const expected = `one of ${METHODS.join(", ")}`;
      return this.#protocolFault(id, "method_not_found", "there is no such method", [{ path: "method", expected }]);
    }
    if (this.#underWay >= REQUESTS_AT_ONCE) {
      return this.#fault(
        id,
        new Fault("rate_limited", `${REQUESTS_AT_ONCE} requests of this connection are under way`),
      );
    }
    this.#underWay += 1;
    const time = this.#service.metrics.requestSeconds.startTimer({ method });
    const afterReply: (() => void)[] = [];
    let outcome: string = "ok";
    try {
      const result = await this.#request(method, params, afterReply);
      this.#channel.send(JSON.stringify({ jsonrpc: "2.0", id, result }));
      // A connection that went, or a credential that ended, while the request was under way follows nothing.
      if (this.#isClosed) this.#service.disconnect(this.#subscriber);
      else for (const task of afterReply) task();
      this.review();
    } catch (error) {
      outcome = this.#failed(id, method, error);
    } finally {
      this.#underWay -= 1;
      time();
      this.#service.metrics.requests.inc({ method, outcome });
    }
    if (method === "authenticate" && this.#presented === null) {
      this.#channel.close(CLOSE_UNAUTHENTICATED, "unauthenticated");
    }
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
    this.#presented = presented;
    if (presented === null) throw new Fault("unauthenticated", "this token is not valid (any more)");
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
