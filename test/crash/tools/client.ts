import { WebSocket } from "ws";
import type { Method, Params, Result } from "../../../protocol/operations.js";
import type { HistoryRecord } from "../../history/records.js";

/** Writes down what clients saw, in the order in which it was seen. */
export class Recorder {
  readonly records: HistoryRecord[] = [];
  #ops = 0;

  nextOp(): number {
    this.#ops += 1;
    return this.#ops;
  }

  note(record: HistoryRecord): void {
    this.records.push(record);
  }
}

/** What a request was refused with. */
export class Refused extends Error {
  constructor(
    readonly code: string,
    message: string,
    readonly data: { readonly reason?: string; readonly retryAfterMs?: number; readonly requestId?: string },
  ) {
    super(`${code}: ${message}`);
  }
}

/** The connection ended before the reply: nobody knows. */
export class Lost extends Error {}

export type Notice = { readonly method: string; readonly params: Record<string, unknown> };

type Arguments<M extends Method> =
  Params<M> extends infer P ? (P extends unknown ? Omit<P, "schemaVersion"> : never) : never;

/** A bare client: sends every request once and says what came back. */
export class Client {
  readonly #socket: WebSocket;
  readonly #waiting = new Map<number, { resolve: (value: unknown) => void; reject: (error: Error) => void }>();
  readonly closed: Promise<number>;
  readonly #recorder: Recorder | undefined;
  readonly name: string;
  #ids = 0;
  onNotice: (notice: Notice) => void = () => undefined;
  /** Error frames that answer no request. */
  readonly strays: { readonly code: number; readonly data: { readonly code: string } }[] = [];

  private constructor(socket: WebSocket, name: string, recorder: Recorder | undefined) {
    this.#socket = socket;
    this.#recorder = recorder;
    this.name = name;
    socket.on("message", (data: Buffer) => this.#received(data.toString("utf8")));
    socket.on("error", () => undefined);
    this.closed = new Promise((resolve) =>
      socket.once("close", (code: number) => {
        recorder?.note({ type: "closed", client: name });
        for (const { reject } of this.#waiting.values()) reject(new Lost("the connection ended"));
        this.#waiting.clear();
        resolve(code);
      }),
    );
  }

  static async open(url: string, token?: string, name = "client", recorder?: Recorder): Promise<Client> {
    const socket = new WebSocket(`${url.replace(/^http/, "ws")}/v1/socket`, ["clankie.v1"], {
      ...(token !== undefined && { headers: { authorization: `Bearer ${token}` } }),
      perMessageDeflate: false,
    });
    const client = new Client(socket, name, recorder);
    await new Promise<void>((resolve, reject) => {
      socket.once("open", resolve);
      socket.once("error", reject);
    });
    return client;
  }

  get socket(): WebSocket {
    return this.#socket;
  }

  async call<M extends Method>(method: M, params: Arguments<M>): Promise<Result<M>> {
    return (await this.send(method, { schemaVersion: 1, ...params })) as Result<M>;
  }

  /** As `call`, with whatever parameters. */
  send(method: string, params: object): Promise<unknown> {
    if (this.#socket.readyState !== WebSocket.OPEN) return Promise.reject(new Lost("there is no connection"));
    this.#ids += 1;
    const id = this.#ids;
    const op = this.#recorder?.nextOp() ?? 0;
    const reply = new Promise<unknown>((resolve, reject) => {
      this.#waiting.set(id, {
        resolve: (result) => {
          this.#recorder?.note({ type: "return", op, result });
          resolve(result);
        },
        reject: (error) => {
          if (error instanceof Refused) {
            const { reason } = error.data;
            this.#recorder?.note({ type: "error", op, code: error.code, ...(reason !== undefined && { reason }) });
          }
          reject(error);
        },
      });
    });
    reply.catch(() => undefined);
    this.#recorder?.note({ type: "invoke", client: this.name, op, method, params: { ...params } });
    this.#socket.send(JSON.stringify({ jsonrpc: "2.0", id, method, params }));
    return reply;
  }

  close(): Promise<number> {
    this.#socket.close();
    return this.closed;
  }

  drop(): void {
    this.#socket.terminate();
  }

  #received(text: string): void {
    const frame = JSON.parse(text) as {
      readonly id?: number | null;
      readonly result?: unknown;
      readonly error?: {
        readonly code: number;
        readonly message: string;
        readonly data: Refused["data"] & { readonly code: string };
      };
      readonly method?: string;
      readonly params?: Record<string, unknown>;
    };
    if (frame.method !== undefined) {
      const notice = { method: frame.method, params: frame.params ?? {} };
      this.#recorder?.note({ type: "notify", client: this.name, ...notice });
      this.onNotice(notice);
      return;
    }
    const waiting = this.#waiting.get(frame.id ?? -1);
    this.#waiting.delete(frame.id ?? -1);
    if (waiting === undefined) {
      if (frame.error !== undefined) this.strays.push(frame.error);
    } else if (frame.error !== undefined) {
      waiting.reject(new Refused(frame.error.data.code, frame.error.message, frame.error.data));
    } else waiting.resolve(frame.result);
  }
}
