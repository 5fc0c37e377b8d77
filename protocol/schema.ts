import typia from "typia";
import type { ConversationEvent } from "./events.js";
import type { ErrorFrame, NotificationFrame, RequestFrame, ResultFrame } from "./frames.js";
import type { Notifications, Operations } from "./operations.js";
import type { Question, QuestionResult } from "./question.js";
import type { ConversationSnapshot, Inbox } from "./snapshot.js";

/** What the schema document is made from: every method, every notification, every frame and object of sections 4 and 5. */
interface Protocol {
  readonly operations: Operations;
  readonly notifications: Notifications;
  readonly frames: {
    readonly request: RequestFrame;
    readonly result: ResultFrame;
    readonly error: ErrorFrame;
    readonly notification: NotificationFrame;
  };
  readonly objects: {
    readonly question: Question;
    readonly questionResult: QuestionResult;
    readonly conversationSnapshot: ConversationSnapshot;
    readonly event: ConversationEvent;
    readonly inbox: Inbox;
  };
}

/** JSON Schema (OpenAPI 3.1 dialect) of the protocol, from the types that the validators are made from. */
export const protocolSchema = () => typia.json.schemas<[Protocol], "3.1">();
