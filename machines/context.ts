import type { Counter, Id, Name, Path, Reason, RunId, Title, Uuid } from "../protocol/bounds.js";
import type { Runner } from "../protocol/operations.js";
import type { Answer, Question, QuestionDraft } from "../protocol/question.js";
import type { Scope } from "../protocol/snapshot.js";

/** A directory as it was when the conversation was bound to it. Contract 6.6. */
export interface WorkspaceBinding {
  /** Canonical path. */
  readonly path: Path;
  /** Device and inode as decimal text, so that no bit is lost. */
  readonly device: string;
  readonly inode: string;
}

/**
 * A credential at one moment of its life. Rotating raises the generation, so a stamp of an earlier generation is
 * recognised as rotated. Contract section 2.
 */
export interface CredentialStamp {
  readonly kind: "operator" | "device" | "captain" | "agent";
  readonly id: Id;
  readonly generation: Counter;
}

/** The pending question with what its answer depends on. Contract 6.6 and section 7. */
export interface OpenQuestion {
  readonly question: Question;
  /** As it was asked, to recognise the same draft asked again. */
  readonly draft: QuestionDraft;
  /** The credential under which the asking turn was started. */
  readonly owner: CredentialStamp;
  /** The asking agent's own credential, where it is not one that lives and dies with a run. */
  readonly asker: CredentialStamp | null;
}

export type RunOrigin =
  | { readonly kind: "message"; readonly text: string }
  | { readonly kind: "continuation"; readonly question: Question; readonly answer: Answer };

/** A run that waits or is active. */
export interface Run {
  readonly runId: RunId;
  readonly origin: RunOrigin;
  /** Who sent the message, or who answered. */
  readonly starter: CredentialStamp;
  /** The credential that claimed it, where one did: the run is that agent's. */
  readonly claimedBy?: Id;
}

export interface SettledRun {
  readonly runId: RunId;
  readonly state: "completed" | "failed" | "cancelled";
  readonly reasonCode?: Reason;
  readonly summary?: string;
}

/** Everything a conversation remembers beside its state value. Stored as it is. */
export interface ConversationContext {
  readonly conversationId: Id;
  readonly title: Title;
  readonly scope: Scope;
  readonly binding: WorkspaceBinding | null;
  readonly runner: Runner;
  /** Who sits in the native seat, while the driver is native. */
  readonly harness: Name | null;
  /** The service whose pending question and runs these are: what it finds here at its start is orphaned. */
  readonly serviceId: Id;
  readonly incarnationId: Uuid;
  readonly revision: Counter;
  readonly version: Counter;
  /** Number of the newest event; its cursor is made from it. */
  readonly eventSequence: Counter;
  readonly open: OpenQuestion | null;
  /** Oldest first; at most 32. */
  readonly receipts: readonly Question[];
  readonly active: Run | null;
  readonly waiting: readonly Run[];
  /** The newest settled runs, oldest first, so that a repeated settlement is recognised. */
  readonly settled: readonly SettledRun[];
}

/** What every conversation begins with; its version is 1 once it is stored. */
export const BEGINNING = {
  harness: null,
  revision: 0,
  version: 0,
  eventSequence: 0,
  open: null,
  receipts: [],
  active: null,
  waiting: [],
  settled: [],
} as const satisfies Partial<ConversationContext>;

/** How many settled runs are remembered. */
export const SETTLED_RUNS = 32;

/** A cursor sorts in event order and says nothing else to clients. Contract section 1. */
export const cursorOf = (eventSequence: number): string => eventSequence.toString().padStart(16, "0");
