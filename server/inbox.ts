import type { ConversationState } from "../machines/decide.js";
import type { Inbox, InboxEntry } from "../protocol/snapshot.js";
import type { Change, InboxFollower, Versioned } from "./subscriptions.js";

/** Every pending question, across conversations, as stored; kept from the commits. Contract section 5. */
export class PendingQuestions {
  #inbox: Versioned<Inbox> = { version: 0, value: {} };
  readonly #followers = new Set<InboxFollower>();

  get newest(): Versioned<Inbox> {
    return this.#inbox;
  }

  get count(): number {
    return Object.keys(this.#inbox.value).length;
  }

  add(follower: InboxFollower): void {
    this.#followers.add(follower);
  }

  remove(follower: InboxFollower): void {
    follower.close();
    this.#followers.delete(follower);
  }

  /** Takes note of a committed change. */
  committed(before: ConversationState | null, after: ConversationState): void {
    const was = before === null ? null : entryOf(before);
    const is = entryOf(after);
    if (was?.question === is?.question) return;
    const entries = new Map(Object.entries(this.#inbox.value));
    if (was !== null) entries.delete(was.question.requestId);
    if (is !== null) entries.set(is.question.requestId, is);
    const from = this.#inbox;
    this.#inbox = { version: from.version + 1, value: Object.fromEntries(entries) };
    const change: Change<Inbox> = { from, to: this.#inbox };
    for (const follower of this.#followers) follower.follow(change);
  }
}

function entryOf({ context }: ConversationState): InboxEntry | null {
  return context.open === null
    ? null
    : { conversationId: context.conversationId, title: context.title, question: context.open.question };
}
