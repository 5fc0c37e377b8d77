/** How a connection ended. */
export type Ending =
  | { readonly kind: "refused"; readonly reason: "unauthenticated" | "forbidden" }
  | { readonly kind: "lost"; readonly detail: string };

/** What a transport tells the link. After `ended` it says nothing more. */
export interface TransportEvents {
  opened(): void;
  /** One text message, or `undefined` for one that is not text. */
  message(text: string | undefined): void;
  /** A sign of life that is no message: the service's ping. */
  alive(): void;
  ended(ending: Ending): void;
}

/** One WebSocket, opening, open or ended. */
export interface Transport {
  /** Hands one text message to the network. */
  send(text: string): void;
  /** Ends it at once, without waiting for the other side. `ended` may still follow or not. */
  drop(): void;
}

/** Opens WebSockets in one environment: `node.ts`, `browser.ts`, or a test's own. */
export interface Connector {
  /** The token goes on the upgrade as a header; otherwise the first request is `authenticate`. */
  readonly sendsTokenOnUpgrade: boolean;
  /** The service's pings are seen, so that silence means that the connection is dead. */
  readonly seesPings: boolean;
  open(url: string, token: string | undefined, events: TransportEvents): Transport;
}

/** The close code of a connection that did not authenticate. Contract section 5. */
export const CLOSED_UNAUTHENTICATED = 4401;
