import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import { type WebSocket, WebSocketServer } from "ws";
import { BOUNDS } from "../protocol/bounds.js";
import { SUBPROTOCOL } from "../protocol/frames.js";
import { type Channel, CLOSE_UNAUTHENTICATED, Connection } from "./connection.js";
import type { Environment } from "./environment.js";
import type { Log } from "./log.js";
import type { Presented } from "./principals/registry.js";
import type { Service } from "./service.js";

/** A client that neither authenticated by header nor by its first request within this time is closed. Section 5. */
const AUTHENTICATE_WITHIN_MS = 5_000;
/** Pings are sent this often; who answered none since the last one is closed. Contract section 5. */
const PING_EVERY_MS = 30_000;
/** Unsent bytes at which a client counts as one that does not read. */
const CONGESTED_BYTES = 256 * 1_024;
/** Larger messages end the connection before they are in memory; smaller ones over the bound get an error. */
const MAX_PAYLOAD = 4 * BOUNDS.frameToService;

/** All open sockets. */
export class Sockets {
  readonly #service: Service;
  readonly #environment: Environment;
  readonly #log: Log;
  readonly #server: WebSocketServer;
  readonly #open = new Map<WebSocket, { readonly connection: Connection; alive: boolean }>();
  readonly #stopPinging: () => void;

  constructor(service: Service, environment: Environment, log: Log) {
    this.#service = service;
    this.#environment = environment;
    this.#log = log;
    this.#server = new WebSocketServer({
      noServer: true,
      maxPayload: MAX_PAYLOAD,
      perMessageDeflate: false,
      clientTracking: false,
      handleProtocols: (offered) => (offered.has(SUBPROTOCOL) ? SUBPROTOCOL : false),
    });
    service.connections = () => this.#open.size;
    service.credentialsChanged = () => {
      for (const { connection } of this.#open.values()) connection.review();
    };
    this.#stopPinging = this.#pingRegularly();
  }

  /** Completes an upgrade that was let in. `presented` is who the bearer token named, if there was one. */
  accept(request: IncomingMessage, socket: Duplex, head: Buffer, presented: Presented | null): void {
    this.#server.handleUpgrade(request, socket, head, (client) => this.#opened(client, presented));
  }

  /** Says goodbye to everyone. */
  close(): void {
    this.#stopPinging();
    for (const client of this.#open.keys()) client.close(1001, "the service is stopping");
    for (const client of this.#open.keys()) this.#environment.after(1_000, () => client.terminate());
    this.#server.close();
  }

  /** Ends what is still open. */
  terminate(): void {
    for (const client of this.#open.keys()) client.terminate();
  }

  #opened(client: WebSocket, presented: Presented | null): void {
    const channel = channelOf(client);
    const connection = new Connection(this.#service, channel, presented, this.#log);
    const entry = { connection, alive: true };
    this.#open.set(client, entry);
    const tooLate = this.#environment.after(AUTHENTICATE_WITHIN_MS, () => {
      if (!connection.isAuthenticated) client.close(CLOSE_UNAUTHENTICATED, "not authenticated in time");
    });
    client.on("message", (data: Buffer, isBinary: boolean) => {
      if (isBinary) connection.receiveBinary();
      else void connection.receive(data.toString("utf8"), data.length);
      // Who does not read its replies is not read from either.
      if (channel.congested && !client.isPaused) {
        client.pause();
        channel.whenClear(() => client.resume());
      }
    });
    client.on("pong", () => {
      entry.alive = true;
    });
    client.on("error", (error) => this.#log.debug({ error: error.message }, "a socket failed"));
    client.on("close", () => {
      tooLate();
      this.#open.delete(client);
      connection.closed();
    });
  }

  #pingRegularly(): () => void {
    let stop = (): void => undefined;
    const next = (): void => {
      stop = this.#environment.after(PING_EVERY_MS, () => {
        for (const [client, entry] of this.#open) {
          if (!entry.alive) client.terminate();
          else {
            entry.alive = false;
            client.ping();
          }
        }
        next();
      });
    };
    next();
    return () => stop();
  }
}

/** The frames' way out, with what tells a client that does not read. */
function channelOf(client: WebSocket): Channel {
  let waiting: (() => void)[] = [];
  const sent = (): void => {
    if (client.bufferedAmount > CONGESTED_BYTES / 2 || waiting.length === 0) return;
    const tasks = waiting;
    waiting = [];
    for (const task of tasks) task();
  };
  return {
    get congested() {
      return client.bufferedAmount > CONGESTED_BYTES;
    },
    send: (frame) => {
      if (client.readyState === client.OPEN) client.send(frame, sent);
    },
    whenClear: (task) => {
      waiting.push(task);
    },
    close: (code, reason) => client.close(code, reason),
  };
}
