import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { type Duplex, Readable } from "node:stream";
import { SOCKET_PATH } from "../protocol/frames.js";
import { backupText } from "./backup.js";
import { type Environment, timestamp } from "./environment.js";
import { type HostRules, hostIsKnown, originMayConnect } from "./hosts.js";
import type { Log } from "./log.js";
import type { Service } from "./service.js";
import type { Sockets } from "./socket.js";
import type { Backup } from "./store/port.js";
import type { Strangers } from "./strangers.js";

/** Serves what is no part of the protocol: the Take Control page. False where the path is none of its. */
export type ServePage = (request: IncomingMessage, response: ServerResponse) => boolean;

export interface HttpOptions {
  readonly service: Service;
  readonly sockets: Sockets;
  readonly rules: HostRules;
  readonly servePage: ServePage;
  readonly backup: () => Promise<Backup>;
  readonly strangers: Strangers;
  /** Open connections at most, of whatever kind. */
  readonly connections: number;
  readonly environment: Environment;
  readonly log: Log;
}

/** A backup that its reader takes nothing of for so long is ended: it keeps the store's old files, in milliseconds. */
const BACKUP_STALLS_MS = 60_000;

/** Headers that take longer than this end their connection, in milliseconds; looked at every so often. */
const HEADERS_WITHIN_MS = 10_000;
const LOOK_EVERY_MS = 2_000;

/** `/healthz`, `/readyz`, `/metrics`, `/v1/backup`, the page, and the upgrade to the socket. Contract section 5. */
export function httpServer(options: HttpOptions): Server {
  const server = createServer({
    requestTimeout: 30_000,
    headersTimeout: HEADERS_WITHIN_MS,
    connectionsCheckingInterval: LOOK_EVERY_MS,
    maxHeaderSize: 16_384,
  });
  server.maxConnections = options.connections;
  server.on("connection", (socket) => options.strangers.came(socket));
  server.on("request", (request, response) => answer(options, request, response));
  server.on("upgrade", (request, socket, head) => upgrade(options, request, socket, head));
  server.on("clientError", (_error, socket) => {
    if (socket.writable) socket.end("HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
    else socket.destroy();
  });
  return server;
}

function answer(options: HttpOptions, request: IncomingMessage, response: ServerResponse): void {
  const { service, rules } = options;
  if (!hostIsKnown(rules, request.headers.host)) {
    return say(response, 403, "this is not a name of the service; see --allow-host");
  }
  if (!originMayConnect(rules, request.headers.origin, request.headers.host)) {
    return say(response, 403, "pages of this origin may not reach the service; see --allow-origin");
  }
  if (request.method !== "GET" && request.method !== "HEAD")
    return say(response, 405, "only GET", { allow: "GET, HEAD" });
  switch (pathOf(request)) {
    case "/healthz":
      return say(response, 200, "ok");
    case "/readyz":
      return service.isReady ? say(response, 200, "ready") : say(response, 503, "the store is not available");
    case "/metrics":
      return metrics(options, request, response);
    case "/v1/backup":
      return backup(options, request, response);
    case SOCKET_PATH:
      return say(response, 426, "this is a WebSocket", { upgrade: "websocket", connection: "Upgrade" });
    default:
      if (!options.servePage(request, response)) say(response, 404, "there is nothing here");
  }
}

function metrics({ service, log }: HttpOptions, request: IncomingMessage, response: ServerResponse): void {
  if (!isOperator(service, request, response)) return;
  const { registry } = service.metrics;
  registry.metrics().then(
    (text) => {
      response.writeHead(200, { "content-type": registry.contentType, "cache-control": "no-store" });
      response.end(text);
    },
    (error: unknown) => {
      log.error({ error: String(error) }, "the metrics could not be gathered");
      say(response, 500, "the metrics could not be gathered");
    },
  );
}

/** Streams one consistent state of the store while the service goes on. Its last line says whether it is whole. */
function backup(options: HttpOptions, request: IncomingMessage, response: ServerResponse): void {
  const { service, environment, log } = options;
  if (!isOperator(service, request, response)) return;
  if (request.method === "HEAD") return say(response, 200, "");
  options.backup().then(
    (state) => {
      response.writeHead(200, { "content-type": "application/jsonl", "cache-control": "no-store" });
      response.setTimeout(BACKUP_STALLS_MS, () => response.destroy());
      const text = Readable.from(backupText(state, timestamp(environment)));
      const ended = (): void => {
        text.destroy();
        state.close().catch((error: unknown) => log.error({ error: String(error) }, "a backup could not be let go of"));
        const { writableFinished: complete } = response;
        if (complete) service.metrics.lastBackup.set(environment.now() / 1_000);
        log.info({ commits: state.commits, complete }, "a backup was read");
      };
      response.once("close", ended);
      text.once("error", () => response.destroy());
      text.pipe(response);
    },
    (error: unknown) => {
      log.error({ error: String(error) }, "a backup could not begin");
      say(response, 503, "the store cannot be read now; ask: clankie status");
    },
  );
}

/** Answers everybody else. */
function isOperator(service: Service, request: IncomingMessage, response: ServerResponse): boolean {
  const presented = bearer(service, request);
  if (presented === undefined || presented === null) {
    service.metrics.unauthenticated.inc();
    say(response, 401, "an operator token is needed", { "www-authenticate": "Bearer" });
    return false;
  }
  if (service.principals.caller(presented).stamp.kind === "operator") return true;
  say(response, 403, "operators only");
  return false;
}

function upgrade(
  { service, sockets, rules }: HttpOptions,
  request: IncomingMessage,
  socket: Duplex,
  head: Buffer,
): void {
  socket.on("error", () => socket.destroy());
  const { host, origin } = request.headers;
  if (pathOf(request) !== SOCKET_PATH) return refuse(socket, "404 Not Found", "there is no socket here");
  if (!hostIsKnown(rules, host)) return refuse(socket, "403 Forbidden", "this is not a name of the service");
  if (!originMayConnect(rules, origin, host))
    return refuse(socket, "403 Forbidden", "pages of this origin may not connect");
  const presented = bearer(service, request);
  if (presented === null) {
    service.metrics.unauthenticated.inc();
    return refuse(socket, "401 Unauthorized", "this token is not valid (any more)");
  }
  sockets.accept(request, socket, head, presented ?? null);
}

/** Who the `Authorization` header names: `undefined` without one, `null` where its token is not good. */
function bearer(service: Service, request: IncomingMessage) {
  const { authorization } = request.headers;
  if (authorization === undefined) return undefined;
  const token = /^Bearer ([!-~]{1,512})$/i.exec(authorization)?.[1];
  return token === undefined ? null : service.principals.authenticate(token);
}

const pathOf = (request: IncomingMessage): string => (request.url ?? "/").split("?", 1)[0] ?? "/";

function say(
  response: ServerResponse,
  status: number,
  text: string,
  headers: Readonly<Record<string, string>> = {},
): void {
  response.writeHead(status, {
    "content-type": "text/plain; charset=utf-8",
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    ...headers,
  });
  response.end(`${text}\n`);
}

function refuse(socket: Duplex, status: string, text: string): void {
  const body = `${text}\n`;
  socket.end(
    `HTTP/1.1 ${status}\r\nConnection: close\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  );
}
