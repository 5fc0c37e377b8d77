import type { ConversationState } from "../machines/decide.js";
import type { Inbox, InboxEntry } from "../protocol/snapshot.js";
import { type InboxChange, InboxFollower, type Outlet, type Versioned } from "./subscriptions.js";

/**
 * Every pending question, across conversations, as stored; kept from the commits. A commit costs nothing by the number of
 * questions that are pending. Contract section 5.
 */
export class PendingQuestions {
  readonly #entries = new Map<string, InboxEntry>();
  readonly #followers = new Set<InboxFollower>();
  #version = 0;

  get newest(): Versioned<Inbox> {
    return { version: this.#version, value: Object.fromEntries(this.#entries) };
  }

  get count(): number {
    return this.#entries.size;
  }

  /** A follower of what changes after the newest version. */
  follow(outlet: Outlet): InboxFollower {
    const follower = new InboxFollower(outlet, this.#version);
    this.#followers.add(follower);
    return follower;
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
    const entries: [string, InboxEntry | null][] = [];
    if (was !== null) {
      this.#entries.delete(was.question.requestId);
      entries.push([was.question.requestId, null]);
    }
    if (is !== null) {
      this.#entries.set(is.question.requestId, is);
      entries.push([is.question.requestId, is]);
    }
    this.#version += 1;
    const change: InboxChange = { version: this.#version, entries };
    for (const follower of this.#followers) follower.follow(change);
  }
}

function entryOf({ context }: ConversationState): InboxEntry | null {
  return context.open === null
    ? null
    : { conversationId: context.conversationId, title: context.title, question: context.open.question };
}
