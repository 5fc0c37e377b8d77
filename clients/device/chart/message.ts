import type { Piece } from "../../../machines/chart/replay.js";
import type { CredentialView, DeviceView, Notifications, Result } from "../../../protocol/operations.js";
import type { ConversationSnapshot } from "../../../protocol/snapshot.js";

/** Everything that happens to the page. */
export type Message =
  // a person
  | { readonly type: "token_typed"; readonly value: string }
  | { readonly type: "token_sent" }
  | { readonly type: "left" }
  | { readonly type: "chosen"; readonly conversationId: string }
  | { readonly type: "principal_chosen"; readonly key: string }
  | { readonly type: "look_pressed" }
  | { readonly type: "replay_pressed" }
  | { readonly type: "live_pressed" }
  | { readonly type: "stepped"; readonly to: StepTo }
  // the service
  | { readonly type: "refused"; readonly why: string }
  | { readonly type: "connected" }
  | { readonly type: "disconnected" }
  | { readonly type: "conversations"; readonly conversations: readonly ConversationSnapshot[] }
  | { readonly type: "snapshot"; readonly snapshot: ConversationSnapshot }
  | { readonly type: "looked"; readonly result: Result<"chart_subscribe"> }
  | { readonly type: "transition"; readonly transition: Transition }
  | {
      readonly type: "principals";
      readonly credentials: readonly CredentialView[];
      readonly devices: readonly DeviceView[];
    }
  | { readonly type: "history"; readonly conversationId: string; readonly pieces: readonly Piece[] }
  | { readonly type: "fault"; readonly why: string };

export type StepTo = "first" | "previous" | "next" | "last";
export type Transition = Notifications["chart_transition"];

/** What the page wants done. */
export type Effect =
  | { readonly kind: "enter"; readonly token: string }
  | { readonly kind: "leave" }
  | { readonly kind: "watch"; readonly conversationId: string }
  | { readonly kind: "look" }
  | { readonly kind: "history"; readonly conversationId: string };
