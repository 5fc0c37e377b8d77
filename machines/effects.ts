import type { ConversationEvent as StoredEvent } from "../protocol/events.js";
import type { AskReason, FaultCode, RefusalReason } from "../protocol/refusals.js";
import type { Run } from "./context.js";

/** What the machine decided to say to the caller. The document is made from the state after the transition. */
export type Reply =
  | {
      readonly kind: "question";
      readonly status: "ready" | "resolved" | "revision_conflict" | "refused";
      readonly reason?: RefusalReason | "already_pending";
      /** The question that goes into the result. */
      readonly requestId?: string;
    }
  | { readonly kind: "accepted"; readonly runId: string }
  | { readonly kind: "conflict" }
  | { readonly kind: "conversation" }
  | { readonly kind: "claimed"; readonly run: Run }
  | { readonly kind: "reported" }
  | { readonly kind: "done" }
  | {
      readonly kind: "fault";
      readonly code: FaultCode;
      readonly reason?: AskReason | string;
      readonly requestId?: string;
    };

/** What is to be done, and only after the commit. */
export type Effect =
  | { readonly type: "reply"; readonly reply: Reply }
  /** Stored with the state, then told to subscribers. */
  | { readonly type: "event"; readonly event: StoredEvent }
  /** Look at the facts a run depends on and send `run.begin`. */
  | { readonly type: "recheck"; readonly runId: string }
  | { readonly type: "start"; readonly run: Run }
  | { readonly type: "stop"; readonly runId: string }
  /** The question that was in the way is cancelled: ask again with fresh facts. */
  | { readonly type: "again" };
