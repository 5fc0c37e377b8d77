import { SUBPROTOCOL } from "../../protocol/frames.js";
import { CLOSED_UNAUTHENTICATED, type Connector } from "./transport.js";

/** As much of a browser's WebSocket as the link uses; `never`, because the DOM's listeners ask for its own events. */
interface BrowserSocket {
  onopen: ((event: never) => void) | null;
  onmessage: ((event: never) => void) | null;
  onclose: ((event: never) => void) | null;
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
      socket.onmessage = ({ data }: { readonly data: unknown }) =>
        events.message(typeof data === "string" ? data : undefined);
      socket.onclose = ({ code }: { readonly code: number }) =>
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
