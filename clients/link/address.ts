import { SOCKET_PATH } from "../../protocol/frames.js";

/** An address that is no service's. */
export class BadAddress extends Error {
  override readonly name = "BadAddress";
}

/**
 * The socket of the service at `url`: `http://HOST:PORT` and `ws://HOST:PORT`, with or without the socket's path. Throws
 * `BadAddress` for anything else, also for one that carries a name, a password, a query or a fragment: never a token in
 * a URL (contract section 5).
 */
export function socketAddress(url: string): string {
  if (!URL.canParse(url)) throw new BadAddress("not a URL");
  const address = new URL(url);
  const secure = { "http:": false, "ws:": false, "https:": true, "wss:": true }[address.protocol];
  if (secure === undefined) throw new BadAddress("a service's URL starts with http://, https://, ws:// or wss://");
  if (address.username + address.password + address.search + address.hash !== "")
    throw new BadAddress("a service's URL has no user, password, query or fragment");
  const path = address.pathname.replace(/\/+$/, "");
  const base = path.endsWith(SOCKET_PATH) ? path.slice(0, -SOCKET_PATH.length) : path;
  return `${secure ? "wss:" : "ws:"}//${address.host}${base}${SOCKET_PATH}`;
}
