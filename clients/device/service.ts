import type { QuestionResult, Target } from "../../protocol/question.js";
import { browserConnector } from "../link/browser.js";
import { type CallError, FaultError, LinkLost } from "../link/errors.js";
import type { ConversationUpdate } from "../link/watch.js";
import { type ConversationWatch, type Link, openLink } from "../link.js";
import type { Message } from "./message.js";
import type { Deed } from "./state.js";

/** Events in one page of history. */
const PAGE = 200;
const LIST_PAGE = 100;

/**
 * The page's side of the link: turns what the service says into messages, and what the page wants done into calls. It
 * sends each answer once; what became of an uncertain one is read, never tried.
 */
export class Service {
  readonly #link: Link;
  readonly #token: string;
  readonly #dispatch: (message: Message) => void;
  readonly #watches = new Map<string, ConversationWatch>();

  constructor(url: string, token: string, dispatch: (message: Message) => void) {
    this.#token = token;
    this.#link = openLink({ url, token, connector: browserConnector(WebSocket) });
    this.#dispatch = (message) => {
      if (!this.#closed) dispatch(message);
    };
    this.#link.onState((state) => {
      switch (state.kind) {
        case "connected":
          if (state.principal?.kind === "device") this.#dispatch({ type: "mode", mode: state.principal.mode });
          this.#dispatch({ type: "connected" });
          return;
        case "reconnecting":
          this.#dispatch({ type: "disconnected" });
          return;
        case "closed":
          if (state.reason === "unauthenticated") this.#dispatch({ type: "shut_out" });
          return;
        case "connecting":
          return;
        default:
          state satisfies never;
      }
    });
    this.#link.watchInbox((update) => {
      if (update.kind === "inbox") this.#dispatch({ type: "inbox", inbox: update.inbox });
      else this.#dispatch({ type: "inbox_stale" });
    });
  }

  #closed = false;

  close(): void {
    this.#closed = true;
    this.#link.close();
  }

  /** The network is back, or the page can be seen again. */
  nudge(): void {
    this.#link.nudge();
  }

  /** Asks what this device may do now: a mode that was changed is noticed, and so is a revocation. */
  async checkMode(): Promise<void> {
    this.#link.nudge();
    const { principal } = await this.#link.call("authenticate", { token: this.#token }).catch(noReply);
    if (principal?.kind === "device") this.#dispatch({ type: "mode", mode: principal.mode });
  }

  watch(conversationId: string): void {
    if (this.#watches.has(conversationId)) return;
    const watch = this.#link.watchConversation(conversationId, { events: true }, (update) =>
      this.#heard(conversationId, update),
    );
    this.#watches.set(conversationId, watch);
  }

  unwatch(conversationId: string): void {
    this.#watches.get(conversationId)?.close();
    this.#watches.delete(conversationId);
  }

  async history(conversationId: string, after: string | undefined): Promise<void> {
    try {
      const place = after === undefined ? {} : { after };
      const page = await this.#link.call("conversation_tail", { conversationId, limit: PAGE, ...place });
      const isEnd = page.events.length === 0 || page.next === after;
      // from the very start nothing was read yet that could be missing: a gap there is what retention dropped
      this.#dispatch({
        type: "history",
        conversationId,
        events: page.events,
        gap: page.gap,
        next: isEnd ? undefined : page.next,
      });
    } catch (error) {
      if (error instanceof LinkLost) return; // read on once connected
      this.#dispatch({ type: "history_fault", conversationId, why: words(error) });
    }
  }

  async list(after: string | undefined): Promise<void> {
    const place = after === undefined ? {} : { after };
    const page = await this.#link.call("conversation_list", { limit: LIST_PAGE, ...place }).catch(noReply);
    if (page.conversations !== undefined)
      this.#dispatch({
        type: "conversations",
        conversations: page.conversations,
        next: page.next,
        first: after === undefined,
      });
  }

  async read(conversationId: string, requestId: string): Promise<void> {
    try {
      const result = await this.#link.call("input_get", { conversationId, requestId });
      this.#dispatch({ type: "read", requestId, outcome: { kind: "result", result } });
    } catch (error) {
      const outcome =
        error instanceof LinkLost
          ? ({ kind: "unreachable" } as const)
          : ({ kind: "fault", why: words(error) } as const);
      this.#dispatch({ type: "read", requestId, outcome });
    }
  }

  /** Contract section 8: an outcome that is uncertain is reported as that, and then its receipt is read. */
  async send(target: Target, deed: Deed): Promise<void> {
    const { requestId } = target;
    const outcome =
      deed.kind === "answer" ? await this.#link.answer(target, deed.answer) : await this.#link.cancelQuestion(target);
    switch (outcome.kind) {
      case "settled":
        this.#dispatch({ type: "sent", requestId, outcome: { kind: "result", result: outcome.result } });
        return;
      case "not_sent":
        this.#dispatch({ type: "sent", requestId, outcome: { kind: "not_sent" } });
        return;
      case "fault":
        this.#dispatch({ type: "sent", requestId, outcome: { kind: "fault", why: words(outcome.error) } });
        return;
      case "uncertain":
        this.#dispatch({ type: "sent", requestId, outcome: { kind: "uncertain" } });
        await this.#recover(requestId, outcome.receipt);
        return;
      default:
        outcome satisfies never;
    }
  }

  async #recover(requestId: string, receipt: () => Promise<QuestionResult>): Promise<void> {
    try {
      this.#dispatch({ type: "sent", requestId, outcome: { kind: "recovered", result: await receipt() } });
    } catch (error) {
      if (error instanceof LinkLost) return;
      this.#dispatch({
        type: "sent",
        requestId,
        outcome: { kind: "fault", why: `The receipt could not be read: ${words(error)}` },
      });
    }
  }

  #heard(conversationId: string, update: ConversationUpdate): void {
    switch (update.kind) {
      case "snapshot":
        this.#dispatch({ type: "snapshot", snapshot: update.snapshot });
        return;
      case "stale":
        this.#dispatch({ type: "snapshot_stale", conversationId });
        return;
      case "event":
        this.#dispatch({ type: "event", event: update.event });
        return;
      case "gap":
        this.#dispatch({ type: "gap", conversationId });
        return;
      case "question":
        return; // the card is bound to what was read for it; the snapshot says what became of it
      case "failed":
        this.#dispatch({ type: "conversation_fault", conversationId, why: words(update.error) });
        return;
      default:
        update satisfies never;
    }
  }
}

/** What is read for information only: without a reply there is nothing to show, and it is asked again when it matters. */
const noReply = (): { readonly principal?: never; readonly conversations?: never; readonly next?: never } => ({});

function words(error: unknown): string {
  if (!(error instanceof FaultError)) return isCallError(error) ? error.message : String(error);
  switch (error.code) {
    case "unknown_conversation":
      return "The service has no such conversation.";
    case "question_state_unavailable":
      return "The service cannot read this conversation's stored state. The operator can see why with “clankie doctor”.";
    case "storage_unavailable":
      return "The service could not store anything just now. Nothing was changed.";
    case "rate_limited":
      return "Too many requests at once. Nothing was changed; wait a moment.";
    case "shutting_down":
      return "The service is stopping. Nothing was changed.";
    default:
      return `The service said: ${error.message}`;
  }
}

const isCallError = (error: unknown): error is CallError => error instanceof Error;
