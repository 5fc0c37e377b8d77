import { type Channel, Connection } from "../../server/connection.js";
import type { RateLimits } from "../../server/limits.js";
import type { Log } from "../../server/log.js";
import type { Service } from "../../server/service.js";
import type { HistoryRecord } from "../history/records.js";
import type { Ledger } from "./ledger.js";

/** Frames that wait unread before a client counts as one that does not read. */
const CONGESTED = 3;

export type Reply =
  | { readonly ok: true; readonly result: Members }
  | { readonly ok: false; readonly code: string; readonly reason?: string };
export type Members = Readonly<Record<string, unknown>>;

/** Where all clients of a world write down what they do and see. */
export class Recorder {
  readonly records: HistoryRecord[] = [];
  readonly ledger: Ledger;
  /** Everything that was sent in both directions, to compare runs by. */
  readonly trace: string[] = [];
  #op = 0;

  constructor(ledger: Ledger) {
    this.ledger = ledger;
  }

  nextOp(): number {
    this.#op += 1;
    return this.#op;
  }

  add(record: HistoryRecord): void {
    this.records.push(record);
  }
}

/** One socket of a client, in this process: it can be cut, and its reader can stall. */
export class Socket {
  readonly name: string;
  readonly #recorder: Recorder;
  readonly #connection: Connection;
  readonly #replied = new Map<number, (reply: Reply) => void>();
  #unread: string[] = [];
  #clear: (() => void)[] = [];
  #isOpen = true;
  stalled = false;

  constructor(name: string, service: Service, token: string, recorder: Recorder, rates: RateLimits, log: Log) {
    this.name = name;
    this.#recorder = recorder;
    const socket = this;
    const channel: Channel = {
      get congested() {
        return socket.#unread.length > CONGESTED;
      },
      send: (frame) => this.#receive(frame),
      whenClear: (task) => this.#clear.push(task),
      close: () => this.cut(),
    };
    this.#connection = new Connection({ service, channel, address: name, rates, log, authenticated: () => undefined });
    const presented = service.principals.authenticate(token);
    if (presented !== null) this.#connection.present(presented);
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** Frames that the service has sent and the client has not read. */
  get unread(): number {
    return this.#unread.length;
  }

  get isAuthenticated(): boolean {
    return this.#connection.isAuthenticated;
  }

  review(): void {
    this.#connection.review();
  }

  /** Sends a request; `replied` is called with its reply, if it ever comes. */
  request(method: string, params: Members, replied: (reply: Reply) => void): () => void {
    const op = this.#recorder.nextOp();
    this.#recorder.add({ type: "invoke", client: this.name, op, method, params });
    this.#replied.set(op, replied);
    const frame = JSON.stringify({ jsonrpc: "2.0", id: op, method, params: { schemaVersion: 1, ...params } });
    this.#recorder.trace.push(`${this.name}> ${frame}`);
    return () => {
      if (this.#isOpen) void this.#connection.receive(frame, frame.length);
    };
  }

  /** The client reads what waits. */
  read(): void {
    const frames = this.#unread;
    this.#unread = [];
    for (const frame of frames) this.#take(frame);
    if (this.#unread.length > CONGESTED / 2) return;
    const tasks = this.#clear;
    this.#clear = [];
    for (const task of tasks) task();
  }

  cut(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.#unread = [];
    this.#recorder.add({ type: "closed", client: this.name });
    this.#connection.closed();
  }

  /** The service is dead: nothing more comes, and it is told nothing. */
  die(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.#unread = [];
    this.#recorder.add({ type: "closed", client: this.name });
  }

  #receive(frame: string): void {
    if (!this.#isOpen) return;
    this.#unread.push(frame);
    if (!this.stalled) this.read();
  }

  #take(text: string): void {
    this.#recorder.trace.push(`${this.name}< ${text}`);
    const frame = JSON.parse(text) as Members;
    this.#recorder.ledger.shown(frame);
    if (typeof frame["method"] === "string") {
      this.#recorder.add({ type: "notify", client: this.name, method: frame["method"], params: frame["params"] });
      return;
    }
    const op = Number(frame["id"]);
    const replied = this.#replied.get(op);
    this.#replied.delete(op);
    if ("result" in frame) {
      const result = frame["result"] as Members;
      this.#recorder.add({ type: "return", op, result });
      replied?.({ ok: true, result });
      return;
    }
    const { data } = frame["error"] as { readonly data: { readonly code: string; readonly reason?: string } };
    const reason = data.reason === undefined ? {} : { reason: data.reason };
    this.#recorder.add({ type: "error", op, code: data.code, ...reason });
    replied?.({ ok: false, code: data.code, ...reason });
  }
}

/** Somebody with a token, who connects when it is needed. */
export interface Person {
  readonly name: string;
  token: string;
  socket: Socket | null;
  sockets: number;
}
