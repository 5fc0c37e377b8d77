import { createServer, type IncomingMessage } from "node:http";
import { type WebSocket, WebSocketServer } from "ws";
import { SUBPROTOCOL } from "../../protocol/frames.js";
import { Queue } from "./queue.js";

export interface PeerRequest {
  readonly id: number;
  readonly method: string;
  readonly params: Readonly<Record<string, unknown>>;
}

/** The service's end of one connection, held by a test. */
export class PeerConnection {
  readonly #requests = new Queue<PeerRequest>();

  constructor(
    readonly socket: WebSocket,
    readonly headers: IncomingMessage["headers"],
  ) {
    // a test's own frame: what it says is looked at by the test
    socket.on("message", (data) => this.#requests.put(JSON.parse(String(data)) as PeerRequest));
  }

  /** The next request. */
  request(): Promise<PeerRequest> {
    return this.#requests.take();
  }

  /** Requests that came and were not taken. */
  get unread(): readonly PeerRequest[] {
    return this.#requests.waiting;
  }

  reply(id: number, result: unknown): void {
    this.raw(JSON.stringify({ jsonrpc: "2.0", id, result }));
  }

  fault(id: number, code: string, number: number): void {
    this.raw(JSON.stringify({ jsonrpc: "2.0", id, error: { code: number, message: `it is ${code}`, data: { code } } }));
  }

  notify(method: string, params: unknown): void {
    this.raw(JSON.stringify({ jsonrpc: "2.0", method, params }));
  }

  raw(data: string | Buffer): void {
    this.socket.send(data);
  }

  /** Cuts the connection without a closing handshake. */
  cut(): void {
    this.socket.terminate();
  }
}

/** A WebSocket server on a free port that does nothing but what the test says. */
export class Peer {
  readonly #http = createServer();
  readonly #sockets = new WebSocketServer({ noServer: true, handleProtocols: () => SUBPROTOCOL });
  readonly #connections = new Queue<PeerConnection>();
  /** Upgrades are answered with this status while it is set. */
  refuse: number | undefined;

  static async start(): Promise<Peer> {
    const peer = new Peer();
    await new Promise<void>((resolve) => peer.#http.listen(0, "127.0.0.1", resolve));
    return peer;
  }

  private constructor() {
    this.#http.on("upgrade", (request, socket, head) => {
      if (this.refuse !== undefined) {
        socket.end(`HTTP/1.1 ${this.refuse} Refused\r\nContent-Length: 0\r\nConnection: close\r\n\r\n`);
        return;
      }
      this.#sockets.handleUpgrade(request, socket, head, (webSocket) =>
        this.#connections.put(new PeerConnection(webSocket, request.headers)),
      );
    });
  }

  get url(): string {
    const address = this.#http.address();
    if (address === null || typeof address === "string") throw new Error("the peer does not listen");
    return `http://127.0.0.1:${address.port}`;
  }

  /** The next connection. */
  connection(): Promise<PeerConnection> {
    return this.#connections.take();
  }

  stop(): Promise<void> {
    for (const socket of this.#sockets.clients) socket.terminate();
    return new Promise((resolve) => this.#http.close(() => resolve()));
  }
}
