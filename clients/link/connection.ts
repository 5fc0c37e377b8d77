import { BOUNDS } from "../../protocol/bounds.js";
import { parseJson } from "../../protocol/checked.js";
import type { ErrorFrame, ResultFrame } from "../../protocol/frames.js";
import type {
  Method,
  NotificationName,
  Notifications,
  Params,
  PrincipalView,
  Result,
} from "../../protocol/operations.js";
import { FAULT_NUMBERS, PROTOCOL_NUMBERS } from "../../protocol/refusals.js";
import { checkNotification, checkResult, checkServiceFrame, isNotificationName } from "../../protocol/results.js";
import type { Clock } from "./clock.js";
import { BadReply, type CallError, FaultError, LinkLost } from "./errors.js";
import type { Connector, Ending, Transport } from "./transport.js";

/** A method's parameters without the `schemaVersion` that every one carries; unions stay unions. */
export type Arguments<M extends Method> = WithoutVersion<Params<M>>;
type WithoutVersion<T> = T extends unknown ? Omit<T, "schemaVersion"> : never;

/** What became of a request. */
export type Outcome<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly error: CallError };

export type Notice = {
  readonly [N in NotificationName]: { readonly name: N; readonly params: Notifications[N] };
}[NotificationName];

/** What a connection tells its link. After `down` it says nothing more. */
export interface ConnectionEvents {
  /** Open and authenticated. The principal is known where the link had to authenticate itself. */
  up(principal: PrincipalView | undefined): void;
  notice(notice: Notice): void;
  /** Something came that the contract does not know, in words for a log. */
  oddity(text: string): void;
  down(ending: Ending): void;
}

export interface ConnectionOptions {
  readonly url: string;
  readonly token: string | undefined;
  readonly connector: Connector;
  readonly clock: Clock;
  readonly events: ConnectionEvents;
  /** Ids are never used twice in a link, so that a late reply can be nobody else's. */
  readonly nextId: () => number;
}

/** A connection has to be open and authenticated within this time. */
const OPENING_MS = 10_000;
/** A request without a reply for so long is given up; what became of it is not known. */
const REPLY_MS = 30_000;
/** The service pings every 30 s: after so long without a sign of life the connection is dead. */
const SILENCE_MS = 75_000;
/** Where pings cannot be seen, the link asks for a sign of life itself after so long without one. */
const PROBE_MS = 45_000;

/** The service ends the live view of a token that was revoked, rotated or has expired: the next request is refused. */
const CREDENTIAL_ENDED = "credential_ended";

interface Waiting {
  readonly method: Method;
  readonly settle: (frame: ResultFrame | ErrorFrame) => void;
  readonly fail: (error: CallError) => void;
  readonly stopTimer: () => void;
}

/**
 * One WebSocket from its opening to its end: requests with their replies, notices, and the watch over its life. It sends
 * every request once.
 *
 * Half-open connections: where pings are seen (Node), 75 s of silence end the connection. A browser hides them, so there
 * the link asks for the projects after 45 s of silence: a short list that anyone may read. Any reply is a sign of life, and
 * a token that has been revoked is noticed by it. (Not `authenticate`: a new identity begins without subscriptions.)
 */
export class Connection {
  readonly #options: ConnectionOptions;
  readonly #transport: Transport;
  readonly #waiting = new Map<number, Waiting>();
  #stopOpening: () => void;
  #stopWatch: () => void = () => {};
  #heard: number;
  #probing = false;
  #phase: "opening" | "up" | "down" = "opening";

  constructor(options: ConnectionOptions) {
    this.#options = options;
    this.#heard = options.clock.now();
    this.#stopOpening = options.clock.after(OPENING_MS, () => this.#lose("it did not open in time"));
    this.#transport = options.connector.open(options.url, options.token, {
      opened: () => this.#opened(),
      message: (text) => this.#message(text),
      alive: () => this.#alive(),
      ended: (ending) => this.#down(ending),
    });
  }

  /** Sends one request; `settle` hears once what became of it, in the order in which the service's frames come. */
  request<M extends Method>(method: M, args: Arguments<M>, settle: (outcome: Outcome<Result<M>>) => void): void {
    if (this.#phase === "up") this.#send(method, args, settle);
    else settle({ ok: false, error: new LinkLost(false, "there is no connection to the service") });
  }

  /** Asks for a sign of life now, where the silence of the service says nothing. */
  probe(): void {
    const { connector, token } = this.#options;
    if (this.#phase !== "up" || this.#probing || connector.seesPings || token === undefined) return;
    this.#probing = true;
    this.#send("project_list", {}, () => {
      this.#probing = false;
    });
  }

  /** Ends the connection; requests without a reply are lost. `down` is not told. */
  drop(detail: string): void {
    this.#down({ kind: "lost", detail }, false);
    this.#transport.drop();
  }

  #send<M extends Method>(method: M, args: Arguments<M>, settle: (outcome: Outcome<Result<M>>) => void): void {
    const id = this.#options.nextId();
    const text = JSON.stringify({ jsonrpc: "2.0", id, method, params: { schemaVersion: 1, ...args } });
    if (text.length * 3 > BOUNDS.frameToService && new TextEncoder().encode(text).length > BOUNDS.frameToService) {
      const words = `the request is larger than ${BOUNDS.frameToService} bytes and was not sent`;
      const data = { code: "frame_too_large" } as const;
      settle({ ok: false, error: new FaultError("frame_too_large", words, data, FAULT_NUMBERS.frame_too_large) });
      return;
    }
    const stopTimer = this.#options.clock.after(REPLY_MS, () => {
      this.#waiting.delete(id);
      settle({ ok: false, error: new LinkLost(true, `no reply to ${method} in ${REPLY_MS / 1000} s`) });
    });
    this.#waiting.set(id, {
      method,
      stopTimer,
      fail: (error) => settle({ ok: false, error }),
      settle: (frame) => settle("error" in frame ? { ok: false, error: faultOf(frame) } : read(method, frame.result)),
    });
    this.#transport.send(text);
  }

  #opened(): void {
    if (this.#phase !== "opening") return;
    this.#alive();
    const { connector, token } = this.#options;
    if (connector.sendsTokenOnUpgrade || token === undefined) {
      this.#up(undefined);
      return;
    }
    this.#send("authenticate", { token }, (outcome) => {
      if (this.#phase !== "opening") return;
      if (outcome.ok) this.#up(outcome.value.principal);
      else if (outcome.error instanceof FaultError && outcome.error.code === "unauthenticated")
        this.#end({ kind: "refused", reason: "unauthenticated" });
      else this.#lose(outcome.error.message);
    });
  }

  #up(principal: PrincipalView | undefined): void {
    this.#phase = "up";
    this.#stopOpening();
    this.#watch(this.#options.connector.seesPings ? SILENCE_MS : PROBE_MS);
    this.#options.events.up(principal);
  }

  #alive(): void {
    this.#heard = this.#options.clock.now();
  }

  /** Looks again in `ms` at how long it has been silent. */
  #watch(ms: number): void {
    const { clock, connector, token } = this.#options;
    if (token === undefined && !connector.seesPings) return; // silence says nothing, and there is nobody to ask as
    const due = connector.seesPings ? SILENCE_MS : PROBE_MS;
    this.#stopWatch = clock.after(ms, () => {
      const silent = clock.now() - this.#heard;
      if (silent >= SILENCE_MS) {
        this.#lose(`nothing was heard for ${SILENCE_MS / 1000} s`);
        return;
      }
      if (silent >= PROBE_MS) this.probe();
      this.#watch((silent >= due ? SILENCE_MS : due) - silent);
    });
  }

  #message(text: string | undefined): void {
    if (this.#phase === "down") return;
    this.#alive();
    const frame = readFrame(text);
    // what could not be read might have been anything, also the one delta after which nothing more changes
    if (frame === undefined) this.#lose("the service sent what is no frame of the contract");
    else if ("method" in frame) this.#notice(frame.method, frame.params);
    else this.#reply(frame);
  }

  #reply(frame: ResultFrame | ErrorFrame): void {
    const id = typeof frame.id === "number" ? frame.id : -1;
    const waiting = this.#waiting.get(id);
    if (waiting === undefined) {
      const words = frame.id === null ? "the service could not read a frame of ours" : "a reply that nobody waits for";
      this.#options.events.oddity(words);
      return;
    }
    this.#waiting.delete(id);
    waiting.stopTimer();
    waiting.settle(frame);
    if (this.#options.token !== undefined && "error" in frame && frame.error.data?.code === "unauthenticated")
      this.#end({ kind: "refused", reason: "unauthenticated" });
  }

  #notice(name: string, params: unknown): void {
    const { events } = this.#options;
    if (name === CREDENTIAL_ENDED && this.#options.token !== undefined) {
      this.#end({ kind: "refused", reason: "unauthenticated" });
      return;
    }
    if (!isNotificationName(name)) {
      events.oddity("a notification of a kind that is not known here");
      return;
    }
    const checked = checkNotification(name, params);
    // the pair is what was checked: its name and its own parameters
    if (checked.ok) events.notice({ name, params: checked.value } as Notice);
    // an event of a later version is no reason to lose the others; a delta that cannot be read is one to begin again
    else if (name === "conversation_event") events.oddity("an event of a kind that is not known here");
    else this.#lose(`the service sent a ${name} that is not what the contract says`);
  }

  #lose(detail: string): void {
    this.#end({ kind: "lost", detail });
  }

  #end(ending: Ending): void {
    this.#down(ending);
    this.#transport.drop();
  }

  #down(ending: Ending, tell = true): void {
    if (this.#phase === "down") return;
    this.#phase = "down";
    this.#stopOpening();
    this.#stopWatch();
    const waiting = [...this.#waiting.values()];
    this.#waiting.clear();
    // the link first, so that who hears of a lost request finds the link not connected
    if (tell) this.#options.events.down(ending);
    for (const { stopTimer, fail, method } of waiting) {
      stopTimer();
      fail(new LinkLost(true, `the connection ended before the reply to ${method}`));
    }
  }
}

type ReadFrame = ResultFrame | ErrorFrame | { readonly method: string; readonly params: unknown };

function readFrame(text: string | undefined): ReadFrame | undefined {
  if (text === undefined || text.length > BOUNDS.frameToClient) return undefined;
  const parsed = parseJson(text);
  if (!parsed.ok) return undefined;
  const frame = checkServiceFrame(parsed.value);
  return frame.ok ? frame.value : undefined;
}

function read<M extends Method>(method: M, result: unknown): Outcome<Result<M>> {
  const checked = checkResult(method, withAbsentMembers(result));
  return checked.ok ? { ok: true, value: checked.value } : { ok: false, error: new BadReply(method, checked.errors) };
}

function faultOf({ error }: ErrorFrame): FaultError {
  const otherwise = error.code === PROTOCOL_NUMBERS.internal_error ? "internal_error" : "protocol";
  return new FaultError(error.data?.code ?? otherwise, error.message, error.data, error.code);
}

/** A snapshot's member that is absent means the same as one that is null. Contract section 5. */
function withAbsentMembers(result: unknown): unknown {
  if (typeof result !== "object" || result === null) return result;
  const member = "snapshot" in result ? "snapshot" : "conversation";
  const snapshot: unknown = Reflect.get(result, member);
  if (typeof snapshot !== "object" || snapshot === null) return result;
  return { ...result, [member]: { question: null, activeRun: null, ...snapshot } };
}
