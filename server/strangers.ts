import { readFileSync } from "node:fs";
import type { Socket } from "node:net";

/**
 * Connections of nobody in particular: accepted and not yet authenticated, of whatever kind. There are at most so many;
 * for a new one the oldest ends. So half-open connections and slow upgrades, however many, keep nobody out: who
 * authenticates at once is never the oldest for long.
 */
export class Strangers {
  readonly #limit: number;
  readonly #sockets = new Set<Socket>();
  readonly #turnedAway: () => void;

  constructor(limit: number, turnedAway: () => void = () => undefined) {
    this.#limit = limit;
    this.#turnedAway = turnedAway;
  }

  get count(): number {
    return this.#sockets.size;
  }

  came(socket: Socket): void {
    if (this.#sockets.size >= this.#limit) {
      const [oldest] = this.#sockets;
      if (oldest !== undefined) {
        this.#sockets.delete(oldest);
        oldest.destroy();
        this.#turnedAway();
      }
    }
    this.#sockets.add(socket);
    socket.once("close", () => this.#sockets.delete(socket));
  }

  /** It is somebody's now. */
  isKnown(socket: Socket): void {
    this.#sockets.delete(socket);
  }
}

/** What a service that may have so many open files takes; the rest is for the store, logs and agents. */
export interface ConnectionLimits {
  readonly connections: number;
  readonly strangers: number;
  /** Of one principal that is no operator. */
  readonly ofOnePrincipal: number;
}

const FILES_FOR_OTHERS = 256;

/** Never as many connections as there may be open files: a store that can open none fails. */
export function connectionLimits(openFiles = openFilesLimit()): ConnectionLimits {
  const connections = Math.max(64, Math.min(16_384, openFiles - FILES_FOR_OTHERS));
  return {
    connections,
    strangers: Math.min(2_048, Math.floor(connections / 2)),
    ofOnePrincipal: Math.min(4_096, Math.floor(connections / 4)),
  };
}

/** Node raises the soft limit to the hard one when it starts. Where the system does not say: what most allow. */
function openFilesLimit(): number {
  try {
    const limit = /^Max open files +(\d+|unlimited)/m.exec(readFileSync("/proc/self/limits", "utf8"))?.[1];
    return limit === "unlimited" ? Number.POSITIVE_INFINITY : Number(limit ?? 1_024);
  } catch {
    return 1_024;
  }
}
