import type { Standing } from "../protocol/chart.js";
import type { RunEventBody } from "../protocol/events.js";
import type { Answer, QuestionDraft } from "../protocol/question.js";
import type { CredentialStamp } from "./context.js";

export type { Standing };

/** Who calls, as the shell has just looked it up. */
export interface Caller {
  readonly stamp: CredentialStamp;
  readonly standing: Standing;
  /** For an agent: the conversation its token is bound to. */
  readonly conversationId?: string;
  /** For an agent inside a run: that run. */
  readonly runId?: string;
  /** For an agent outside a run: the credential that issued its own. */
  readonly issuedBy?: CredentialStamp;
}

/** What a pending question depends on, as it is at this moment. Contract 6.6. */
export interface QuestionFacts {
  /** The bound directory is still the same: canonical path, device and inode. */
  readonly workspaceIsSame: boolean;
  /** The credential under which the asking turn was started. `good` where nothing is pending. */
  readonly owner: Standing;
  /** The asking agent's own credential; `good` where it has none. */
  readonly asker: Standing;
}

/** What a turn that asks needs beside the question facts. Contract section 5. */
export interface AskFacts extends QuestionFacts {
  /** The credential under which the turn that asks now was started. */
  readonly turn: Standing;
}

/** What a run needs before it starts. Contract section 6, the paragraph on continuations. */
export interface RunFacts {
  readonly workspaceIsSame: boolean;
  readonly starter: Standing;
}

interface Timed {
  /** RFC 3339 UTC; the machine never reads a clock. */
  readonly at: string;
}

/** What an answer and a cancellation have in common: who responds to what, and the facts at that moment. */
export interface Response extends Timed {
  readonly caller: Caller;
  readonly incarnationId: string;
  readonly requestId: string;
  readonly expectedRevision: number;
  readonly facts: QuestionFacts;
}

/**
 * Everything that can happen to a conversation. A closed union: what comes over the wire is translated into it and is
 * never forwarded. Ids that an event may need come with it.
 */
export type ConversationEvent =
  | (Timed & {
      readonly type: "message.send";
      readonly caller: Caller;
      readonly text: string;
      readonly expectedRevision?: number;
      readonly runId: string;
      readonly workspaceIsSame: boolean;
    })
  | (Timed & {
      readonly type: "conversation.reset";
      readonly expectedRevision: number;
      readonly incarnationId: string;
    })
  | (Timed & { readonly type: "native.claim"; readonly harness: string })
  | (Timed & { readonly type: "native.release" })
  | (Timed & {
      readonly type: "question.ask";
      readonly caller: Caller;
      readonly draft: QuestionDraft;
      readonly requestId: string;
      readonly optionIds: readonly string[];
      readonly facts: AskFacts;
    })
  | (Timed & { readonly type: "question.read"; readonly requestId?: string; readonly facts: QuestionFacts })
  | (Response & { readonly type: "question.answer"; readonly answer: Answer; readonly runId: string })
  | (Response & { readonly type: "question.cancel" })
  | (Timed & { readonly type: "credential.revoked"; readonly credential: Pick<CredentialStamp, "kind" | "id"> })
  | (Timed & { readonly type: "run.begin"; readonly runId: string; readonly facts: RunFacts })
  | (Timed & { readonly type: "run.claim"; readonly caller: Caller; readonly runId: string; readonly facts: RunFacts })
  | (Timed & {
      readonly type: "run.report";
      readonly caller: Caller;
      readonly runId: string;
      readonly bodies: readonly RunEventBody[];
    })
  | (Timed & {
      readonly type: "run.settle";
      readonly caller: Caller;
      readonly runId: string;
      readonly state: "completed" | "failed";
      readonly reasonCode?: string;
      readonly summary?: string;
    })
  | (Timed & { readonly type: "run.cancel"; readonly runId: string })
  /** The commit that accepted or began these runs had no known outcome and was found durable. Contract section 8. */
  | (Timed & { readonly type: "commit.interrupted"; readonly runIds: readonly string[] })
  | (Timed & { readonly type: "service.restarted"; readonly serviceId: string })
  | (Timed & { readonly type: "service.stopping" });
