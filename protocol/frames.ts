import type { tags } from "typia";
import type { FaultData } from "./refusals.js";

/** JSON-RPC 2.0 frames, one a text message, never a batch. Contract section 5. */
export type FrameId = (string & tags.MaxLength<512>) | number;

export interface RequestFrame {
  readonly jsonrpc: "2.0";
  readonly id: FrameId;
  readonly method: string & tags.MaxLength<100>;
  readonly params?: unknown;
}

export interface ResultFrame {
  readonly jsonrpc: "2.0";
  readonly id: FrameId;
  readonly result: unknown;
}

export interface ErrorFrame {
  readonly jsonrpc: "2.0";
  /** `null` where the request's id could not be read. */
  readonly id: FrameId | null;
  readonly error: { readonly code: number; readonly message: string; readonly data?: FaultData };
}

export interface NotificationFrame {
  readonly jsonrpc: "2.0";
  readonly method: string;
  readonly params: unknown;
}

/** What the service sends. */
export type ServiceFrame = ResultFrame | ErrorFrame | NotificationFrame;

/** The WebSocket subprotocol and where the socket is. Contract section 5. */
export const SUBPROTOCOL = "clankie.v1";
export const SOCKET_PATH = "/v1/socket";
