import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { type WebSocket, WebSocketServer } from "ws";
import { BOUNDS } from "../protocol/bounds.js";
import { SUBPROTOCOL } from "../protocol/frames.js";
import { type Channel, CLOSE_UNAUTHENTICATED, Connection } from "./connection.js";
import type { Environment } from "./environment.js";
import { nameOf, type RateLimits } from "./limits.js";
import type { Log } from "./log.js";
import type { Presented } from "./principals/registry.js";
import type { Service } from "./service.js";
import type { ConnectionLimits, Strangers } from "./strangers.js";

/** A client that neither authenticated by header nor by its first request within this time is closed. Section 5. */
const AUTHENTICATE_WITHIN_MS = 5_000;
/** Pings are sent this often; who answered none since the last one is closed. Contract section 5. */
const PING_EVERY_MS = 30_000;
/** Unsent bytes at which a client counts as one that does not read. */
const CONGESTED_BYTES = 256 * 1_024;
/** Requests of one connection that are worked on at once; it is not read from while there are as many. */
const REQUESTS_AT_ONCE = 64;
/** "Try again later": the close code of one connection too many. RFC 6455's registry. */
const CLOSE_TOO_MANY = 1013;
/** Larger messages end the connection before they are in memory; smaller ones over the bound get an error. */
const MAX_PAYLOAD = 4 * BOUNDS.frameToService;

export interface SocketLimits {
  readonly rates: RateLimits;
  readonly strangers: Strangers;
  readonly ofOnePrincipal: ConnectionLimits["ofOnePrincipal"];
}

/** All open sockets. */
export class Sockets {
  readonly #service: Service;
  readonly #environment: Environment;
  readonly #log: Log;
  readonly #server: WebSocketServer;
  readonly #limits: SocketLimits;
  readonly #open = new Map<WebSocket, { readonly connection: Connection; alive: boolean }>();
  readonly #ofPrincipal = new Map<string, number>();
  readonly #stopPinging: () => void;
  #count = 0;

  constructor(service: Service, environment: Environment, log: Log, limits: SocketLimits) {
    this.#limits = limits;
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
    this.#server.handleUpgrade(request, socket, head, (client) => this.#opened(client, presented, request.socket));
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

  #opened(client: WebSocket, presented: Presented | null, socket: Socket): void {
    const { rates, strangers } = this.#limits;
    this.#count += 1;
    const log = this.#log.child({ connection: this.#count });
    const channel = channelOf(client);
    let leave = (): void => undefined;
    const connection = new Connection({
      service: this.#service,
      channel,
      address: socket.remoteAddress ?? "",
      rates,
      log,
      authenticated: (who) => {
        strangers.isKnown(socket);
        leave();
        const place = this.#takePlace(who);
        if (place === null) client.close(CLOSE_TOO_MANY, "too many connections of this credential");
        else leave = place;
      },
    });
    const entry = { connection, alive: true };
    this.#open.set(client, entry);
    const tooLate = this.#environment.after(AUTHENTICATE_WITHIN_MS, () => {
      if (!connection.isAuthenticated) client.close(CLOSE_UNAUTHENTICATED, "not authenticated in time");
    });
    let underWay = 0;
    let waits = false;
    // Who does not read its replies, or asks faster than it can be answered, is not read from either.
    const mayReadOn = (): void => {
      if (!client.isPaused || underWay >= REQUESTS_AT_ONCE || waits) return;
      if (!channel.congested) return client.resume();
      waits = true;
      channel.whenClear(() => {
        waits = false;
        mayReadOn();
      });
    };
    client.on("message", (data: Buffer, isBinary: boolean) => {
      if (isBinary) connection.receiveBinary();
      else {
        underWay += 1;
        void connection.receive(data.toString("utf8"), data.length).finally(() => {
          underWay -= 1;
          mayReadOn();
        });
      }
      if (underWay < REQUESTS_AT_ONCE && !channel.congested) return;
      client.pause();
      mayReadOn();
    });
    client.on("pong", () => {
      entry.alive = true;
    });
    client.on("error", (error) => log.debug({ error: error.message }, "a socket failed"));
    client.on("close", () => {
      tooLate();
      leave();
      this.#open.delete(client);
      connection.closed();
    });
    if (presented !== null) connection.present(presented);
  }

  /** A place among the connections of a principal, and what gives it back; null where there are too many. */
  #takePlace(presented: Presented): (() => void) | null {
    if (presented.kind === "stored" && presented.stamp.kind === "operator") return () => undefined;
    const name = nameOf(presented);
    const taken = this.#ofPrincipal.get(name) ?? 0;
    if (taken >= this.#limits.ofOnePrincipal) return null;
    this.#ofPrincipal.set(name, taken + 1);
    let held = true;
    return () => {
      if (!held) return;
      held = false;
      const left = (this.#ofPrincipal.get(name) ?? 1) - 1;
      if (left > 0) this.#ofPrincipal.set(name, left);
      else this.#ofPrincipal.delete(name);
    };
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
