import { SUBPROTOCOL } from "../../protocol/frames.js";
import { CLOSED_UNAUTHENTICATED, type Connector } from "./transport.js";

/** As much of a browser's WebSocket as the link uses. */
interface BrowserSocket {
  onopen: (() => void) | null;
  onmessage: ((event: { readonly data: unknown }) => void) | null;
  onclose: ((event: { readonly code: number }) => void) | null;
  send(text: string): void;
  close(): void;
}

/**
 * WebSockets of a browser: pass its `WebSocket`. Headers cannot be set there, so the first request is `authenticate`;
 * pings and the status of a refused upgrade cannot be seen.
 */
export function browserConnector(Socket: new (url: string, protocol: string) => BrowserSocket): Connector {
  return {
    sendsTokenOnUpgrade: false,
    seesPings: false,
    open(url, _token, events) {
      const socket = new Socket(url, SUBPROTOCOL);
      socket.onopen = () => events.opened();
      socket.onmessage = ({ data }) => events.message(typeof data === "string" ? data : undefined);
      socket.onclose = ({ code }) =>
        events.ended(
          code === CLOSED_UNAUTHENTICATED
            ? { kind: "refused", reason: "unauthenticated" }
            : { kind: "lost", detail: `the connection was closed (${code})` },
        );
      return {
        send: (text) => socket.send(text),
        drop() {
          socket.onopen = null;
          socket.onmessage = null;
          socket.onclose = null;
          socket.close();
        },
      };
    },
  };
}
