import type { ConversationEvent } from "../../protocol/events.js";
import type { DeviceMode } from "../../protocol/operations.js";
import type { QuestionResult, Target } from "../../protocol/question.js";
import type { ConversationSnapshot, Inbox } from "../../protocol/snapshot.js";
import type { Deed, NotificationState, Route } from "./state.js";

/** Everything that can happen to the page: what the service said, what the person did, what the browser told. */
export type Message = FromService | FromPerson | FromBrowser;

export type FromService =
  | { readonly type: "connected" }
  /** What this device may do, as the service said just now. */
  | { readonly type: "mode"; readonly mode: DeviceMode }
  | { readonly type: "disconnected" }
  /** The token is no longer good. */
  | { readonly type: "shut_out" }
  | { readonly type: "inbox"; readonly inbox: Inbox }
  | { readonly type: "inbox_stale" }
  | { readonly type: "snapshot"; readonly snapshot: ConversationSnapshot }
  | { readonly type: "snapshot_stale"; readonly conversationId: string }
  | { readonly type: "conversation_fault"; readonly conversationId: string; readonly why: string }
  | {
      readonly type: "history";
      readonly conversationId: string;
      readonly events: readonly ConversationEvent[];
      /** Where the next page begins; nothing once the end is reached. */
      readonly next: string | undefined;
      readonly gap: boolean;
    }
  | { readonly type: "history_fault"; readonly conversationId: string; readonly why: string }
  | { readonly type: "event"; readonly event: ConversationEvent }
  | { readonly type: "gap"; readonly conversationId: string }
  | {
      readonly type: "conversations";
      readonly conversations: readonly ConversationSnapshot[];
      readonly next: string | undefined;
      readonly first: boolean;
    }
  | { readonly type: "read"; readonly requestId: string; readonly outcome: Read }
  | { readonly type: "sent"; readonly requestId: string; readonly outcome: Sent }
  | {
      readonly type: "paired";
      readonly deviceId: string;
      readonly name: string;
      readonly mode: DeviceMode;
      readonly kept: boolean;
    }
  | { readonly type: "pair_failed"; readonly why: string };

/** What came of reading a question. */
export type Read =
  | { readonly kind: "result"; readonly result: QuestionResult }
  /** No connection: it is read again when there is one. */
  | { readonly kind: "unreachable" }
  | { readonly kind: "fault"; readonly why: string };

/** What came of sending an answer or a cancellation. Contract section 8. */
export type Sent =
  | { readonly kind: "result"; readonly result: QuestionResult }
  /** It never left this device. */
  | { readonly kind: "not_sent" }
  /** It left, and there will be no reply. */
  | { readonly kind: "uncertain" }
  /** The receipt was read once connected again. */
  | { readonly kind: "recovered"; readonly result: QuestionResult }
  | { readonly kind: "fault"; readonly why: string };

export type FromPerson =
  | { readonly type: "code_typed"; readonly code: string }
  | { readonly type: "name_typed"; readonly name: string }
  | { readonly type: "pair_pressed" }
  | { readonly type: "option_chosen"; readonly requestId: string; readonly choice: string }
  | { readonly type: "text_typed"; readonly requestId: string; readonly text: string }
  | { readonly type: "send_pressed"; readonly requestId: string }
  | { readonly type: "read_again_pressed"; readonly requestId: string }
  | { readonly type: "cancel_pressed"; readonly requestId: string }
  | { readonly type: "cancel_kept"; readonly requestId: string }
  | { readonly type: "cancel_confirmed"; readonly requestId: string }
  | { readonly type: "draft_copied"; readonly requestId: string }
  | { readonly type: "draft_discarded"; readonly requestId: string }
  | { readonly type: "earlier_pressed" }
  | { readonly type: "newest_pressed" }
  | { readonly type: "more_conversations_pressed" }
  | { readonly type: "notify_pressed" }
  | { readonly type: "notify_off_pressed" }
  | { readonly type: "check_mode_pressed" }
  | { readonly type: "forget_pressed" }
  | { readonly type: "forget_kept" }
  | { readonly type: "forget_confirmed" };

export type FromBrowser =
  | { readonly type: "tick"; readonly now: number }
  | { readonly type: "visibility"; readonly hidden: boolean; readonly now: number }
  | { readonly type: "route"; readonly route: Route }
  | { readonly type: "code_in_address"; readonly code: string }
  | { readonly type: "armed"; readonly requestId: string }
  | { readonly type: "notifications"; readonly state: NotificationState };

/** What `update` wants done. The shell does it and reports with a message. */
export type Effect =
  | { readonly kind: "pair"; readonly code: string; readonly name: string }
  /** Ends the link and forgets the token. */
  | { readonly kind: "forget" }
  | { readonly kind: "watch"; readonly conversationId: string }
  | { readonly kind: "unwatch"; readonly conversationId: string }
  /** One page of the conversation's history. */
  | { readonly kind: "history"; readonly conversationId: string; readonly after: string | undefined }
  | { readonly kind: "list"; readonly after: string | undefined }
  | { readonly kind: "read"; readonly conversationId: string; readonly requestId: string }
  | { readonly kind: "send"; readonly target: Target; readonly deed: Deed }
  | { readonly kind: "check_mode" }
  /** Sends `armed` once the card has been on screen long enough. */
  | { readonly kind: "arm"; readonly requestId: string }
  | { readonly kind: "focus"; readonly on: "heading" | "text" | "newest" }
  | { readonly kind: "copy"; readonly text: string }
  | { readonly kind: "keep_drafts" }
  | { readonly kind: "ask_to_notify" }
  | { readonly kind: "stop_notifying" }
  | {
      readonly kind: "notify";
      readonly requestId: string;
      readonly conversationId: string;
      readonly title: string;
      readonly prompt: string;
    }
  | { readonly kind: "withdraw"; readonly requestId: string };
