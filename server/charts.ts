import { takenBy } from "../machines/chart/taken.js";
import type { ConversationState, Decision } from "../machines/decide.js";
import type { ConversationEvent } from "../machines/facts.js";
import type { Notifications } from "../protocol/operations.js";
import type { Outlet } from "./subscriptions.js";

/** What the machine decided about an event: told after its commit, or at once where there is nothing to commit. */
export interface Decided {
  readonly conversationId: string;
  readonly before: ConversationState;
  readonly event: ConversationEvent;
  readonly decision: Decision;
}

type ChartTransition = Notifications["chart_transition"];

/** How many transitions wait for the reply to the subscription at most. */
const HELD = 64;

/** One operator's view of a conversation on the chart. Names of the chart go out, never what anybody wrote. */
export class ChartFollower {
  readonly #outlet: Outlet;
  #held: ChartTransition[] | null = [];
  #missed = 0;
  #closed = false;

  constructor(outlet: Outlet) {
    this.#outlet = outlet;
  }

  /** The reply has been sent: what happened since follows it. */
  begin(): void {
    const held = this.#held ?? [];
    this.#held = null;
    for (const each of held) this.tell(each);
  }

  close(): void {
    this.#closed = true;
  }

  /** A client that does not read is not queued for: it is told how many it missed. */
  tell(transition: ChartTransition): void {
    if (this.#closed) return;
    if (this.#held !== null && this.#held.length < HELD) this.#held.push(transition);
    else if (this.#held !== null || this.#outlet.congested) this.#missed += 1;
    else {
      const params = this.#missed === 0 ? transition : { ...transition, missed: this.#missed };
      this.#missed = 0;
      this.#outlet.send(JSON.stringify({ jsonrpc: "2.0", method: "chart_transition", params }));
    }
  }
}

/** Who watches which conversation on the chart. Costs a look into an empty map while nobody does. */
export class Charts {
  readonly #followers = new Map<string, Set<ChartFollower>>();

  /** Returns what ends it. */
  follow(conversationId: string, follower: ChartFollower): () => void {
    const followers = this.#followers.get(conversationId) ?? new Set();
    this.#followers.set(conversationId, followers.add(follower));
    return () => {
      follower.close();
      followers.delete(follower);
      if (followers.size === 0 && this.#followers.get(conversationId) === followers) {
        this.#followers.delete(conversationId);
      }
    };
  }

  isWatched(conversationId: string): boolean {
    return this.#followers.has(conversationId);
  }

  decided({ conversationId, before, event, decision }: Decided): void {
    const followers = this.#followers.get(conversationId);
    if (followers === undefined) return;
    const transition: ChartTransition = {
      conversationId,
      version: decision.next.context.version,
      at: event.at,
      ...takenBy(before, event, decision),
    };
    for (const follower of followers) follower.tell(transition);
  }
}
