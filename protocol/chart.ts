import type { Id, Timestamp } from "./bounds.js";

/** The state chart on the wire: where a conversation is on it, what it took, and the facts of the moment. */

/** One state of each region. */
export interface ChartStates {
  readonly driver: "service" | "native";
  readonly question: "none" | "pending" | "submitted" | "cancelled";
  readonly turn: "idle" | "accepted" | "running";
}

/** One transition that was taken, named as in the chart. */
export interface ChartStep {
  /** Its id in the chart. */
  readonly transition: string;
  readonly region: string;
  /** The state it was taken in. */
  readonly from: string;
  /** The same where it stays. */
  readonly to: string;
  /** The guard that held; absent where none was needed. */
  readonly guard?: string;
  /** The contract's section. */
  readonly rule: string;
  readonly actions: readonly string[];
}

/** How a credential stands, looked up for this very use and never remembered. Contract section 2. */
export type Standing = "good" | "read_only" | "rotated" | "expired" | "revoked";

/** What the service has just looked up and no snapshot holds: true at `at`, and no proof for later. Contract 6.6. */
export interface ChartFacts {
  readonly at: Timestamp;
  /** The bound directory is still the same: canonical path, device and inode. */
  readonly workspaceIsSame: boolean;
  /** The credential under which the asking turn was started; null where nothing is pending. */
  readonly owner: ChartCredential | null;
  /** The asking agent's own credential; null where it has none that outlives its run. */
  readonly asker: ChartCredential | null;
}

export interface ChartCredential {
  readonly kind: "operator" | "device" | "captain" | "agent";
  readonly id: Id;
  readonly standing: Standing;
}
