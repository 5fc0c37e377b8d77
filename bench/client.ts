import { once } from "node:events";
import { WebSocket } from "ws";

/** One connection that sends a request and waits for its reply. */
export class Client {
  readonly #socket: WebSocket;
  readonly #waiting = new Map<number, (reply: string) => void>();
  #count = 0;

  private constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.on("message", (data) => {
      const text = String(data);
      const id = Number(/"id":(\d+)/.exec(text)?.[1]);
      this.#waiting.get(id)?.(text);
      this.#waiting.delete(id);
    });
  }

  static async connect(url: string, token?: string): Promise<Client> {
    const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
    const socket = new WebSocket(url, ["clankie.v1"], { headers, perMessageDeflate: false });
    await once(socket, "open");
    return new Client(socket);
  }

  /** The reply as text. */
  request(method: string, params: object): Promise<string> {
    this.#count += 1;
    const id = this.#count;
    const reply = new Promise<string>((resolve) => this.#waiting.set(id, resolve));
    this.#socket.send(JSON.stringify({ jsonrpc: "2.0", id, method, params: { schemaVersion: 1, ...params } }));
    return reply;
  }

  /** A request that has to succeed. */
  async result<T>(method: string, params: object): Promise<T> {
    const reply = JSON.parse(await this.request(method, params)) as { readonly result?: T; readonly error?: unknown };
    if (reply.result === undefined) throw new Error(`${method}: ${JSON.stringify(reply.error)}`);
    return reply.result;
  }

  close(): void {
    this.#socket.close();
  }
}
