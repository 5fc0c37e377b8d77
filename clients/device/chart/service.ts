import type { Piece } from "../../../machines/chart/replay.js";
import type { ConversationSnapshot } from "../../../protocol/snapshot.js";
import { browserConnector } from "../../link/browser.js";
import { FaultError, LinkLost } from "../../link/errors.js";
import { type ChartWatch, type ConversationWatch, type Link, openLink } from "../../link.js";
import type { Message } from "./message.js";

/** Events in one page of history. */
const PAGE = 500;

/** The chart's side of the link: it reads and watches, and changes nothing. */
export class Service {
  readonly #link: Link;
  readonly #dispatch: (message: Message) => void;
  #closed = false;
  #conversation: ConversationWatch | undefined;
  #chart: ChartWatch | undefined;

  constructor(url: string, token: string, dispatch: (message: Message) => void) {
    this.#dispatch = (message) => {
      if (!this.#closed) dispatch(message);
    };
    this.#link = openLink({ url, token, connector: browserConnector(WebSocket) });
    this.#link.onState((state) => {
      switch (state.kind) {
        case "connected":
          if (state.principal?.kind !== "operator") {
            this.#dispatch({ type: "refused", why: notForYou(state.principal?.kind ?? "principal") });
            return;
          }
          this.#dispatch({ type: "connected" });
          void this.#read();
          return;
        case "reconnecting":
          this.#dispatch({ type: "disconnected" });
          return;
        case "closed":
          if (state.reason !== "by_client") {
            this.#dispatch({ type: "refused", why: "The service does not accept this token (any more)." });
          }
          return;
        case "connecting":
          return;
        default:
          state satisfies never;
      }
    });
  }

  close(): void {
    this.#closed = true;
    this.#link.close();
  }

  watch(conversationId: string): void {
    this.#conversation?.close();
    this.#chart?.close();
    this.#conversation = this.#link.watchConversation(conversationId, {}, (update) => {
      if (update.kind === "snapshot") this.#dispatch({ type: "snapshot", snapshot: update.snapshot });
      else if (update.kind === "failed") this.#dispatch({ type: "fault", why: words(update.error) });
    });
    this.#chart = this.#link.watchChart(conversationId, (update) => {
      switch (update.kind) {
        case "looked":
          this.#dispatch({ type: "looked", result: update.result });
          return;
        case "transition":
          this.#dispatch({ type: "transition", transition: update.transition });
          return;
        case "failed":
          if (!(update.error instanceof LinkLost)) this.#dispatch({ type: "fault", why: words(update.error) });
          return;
        case "stale":
          return;
        default:
          update satisfies never;
      }
    });
  }

  /** Looks the facts up again, and who there is. */
  look(): void {
    this.#chart?.look();
    void this.#principals().catch((error: unknown) => this.#fault(error));
  }

  /** Reads the stored history to its end, page by page. */
  async history(conversationId: string): Promise<void> {
    try {
      const pieces: Piece[] = [];
      for (let after: string | undefined; ; ) {
        const place = after === undefined ? {} : { after };
        const { events, gap, next } = await this.#link.call("conversation_tail", {
          conversationId,
          limit: PAGE,
          ...place,
        });
        if (events.length > 0 || gap || pieces.length === 0) pieces.push({ gap, events });
        if (events.length === 0 || next === after) break;
        after = next;
      }
      this.#dispatch({ type: "history", conversationId, pieces });
    } catch (error) {
      this.#fault(error);
    }
  }

  async #read(): Promise<void> {
    try {
      const conversations: ConversationSnapshot[] = [];
      for (let after: string | undefined; ; ) {
        const page = await this.#link.call("conversation_list", after === undefined ? {} : { after });
        conversations.push(...page.conversations);
        after = page.next;
        if (after === undefined) break;
      }
      this.#dispatch({ type: "conversations", conversations });
      await this.#principals();
    } catch (error) {
      this.#fault(error);
    }
  }

  async #principals(): Promise<void> {
    const [{ credentials }, { devices }] = await Promise.all([
      this.#link.call("credential_list", {}),
      this.#link.call("device_list", {}),
    ]);
    this.#dispatch({ type: "principals", credentials, devices });
  }

  /** A lost connection is shown as that, and everything is read again after it. */
  #fault(error: unknown): void {
    if (!(error instanceof LinkLost)) this.#dispatch({ type: "fault", why: words(error) });
  }
}

const notForYou = (kind: string): string =>
  `This page is for the operator. That is the token of ${/^[aeiou]/.test(kind) ? "an" : "a"} ${kind}: it is not used here, and this page has forgotten it.`;

const words = (error: unknown): string =>
  error instanceof FaultError
    ? `The service said: ${error.message}`
    : error instanceof Error
      ? error.message
      : String(error);
