import { homedir } from "node:os";
import { basename, resolve } from "node:path";
import { BOUNDS } from "../../protocol/bounds.js";
import type { ConversationEvent } from "../../protocol/events.js";
import type { ConversationSnapshot } from "../../protocol/snapshot.js";
import { BadReply, FaultError, LinkLost } from "../link/errors.js";
import type { ResponseOutcome } from "../link/outcome.js";
import type { ConversationWatch, Link, LinkState } from "../link.js";
import type { Command, ConnectionState, Event, Responded } from "./state.js";
import { faultWords } from "./words.js";

type Unstamped<E> = E extends unknown ? Omit<E, "at"> : never;
/** An event before the shell put the time to it. */
export type Happening = Unstamped<Event>;

/** What of the commands concerns the service. */
export type ServiceCommand = Exclude<Command, { readonly type: "bell" | "redraw" | "quit" }>;

/** At most so many events of the past are loaded. */
const HISTORY = 2_000;

/** Performs commands over the link and tells what comes of them. It decides nothing. */
export class Session {
  readonly #link: Link;
  readonly #token: string;
  readonly #tell: (happening: Happening) => void;
  #watch: ConversationWatch | undefined;
  /** Counts what was opened: what still comes of an earlier one is nobody's. */
  #opening = 0;

  constructor(link: Link, token: string, tell: (happening: Happening) => void) {
    this.#link = link;
    this.#token = token;
    this.#tell = tell;
  }

  start(): void {
    const told = (state: LinkState): void => this.#tell({ type: "link", connection: connectionOf(state) });
    this.#link.onState(told);
    told(this.#link.state);
    this.#link.watchInbox((update) =>
      this.#tell({ type: "inbox", inbox: update.kind === "inbox" ? update.inbox : null }),
    );
  }

  close(): void {
    this.#opening += 1;
    this.#link.close();
  }

  perform(command: ServiceCommand): void {
    void this.#perform(command).catch((error: unknown) => {
      if (!isCallError(error)) throw error;
      this.#tell({ type: "failed", say: `${sentence(failureWords(error))}.` });
    });
  }

  async #perform(command: ServiceCommand): Promise<void> {
    switch (command.type) {
      case "list":
        return this.#list();
      case "whoami": {
        const { principal } = await this.#link.call("authenticate", { token: this.#token });
        return this.#tell({ type: "principal", principal });
      }
      case "open":
        return this.#open(command.conversationId);
      case "create":
        return this.#create(command.directory, command.command);
      case "send":
        return this.#send(command.conversationId, command.text);
      case "readQuestion":
        return this.#readQuestion(command);
      case "answer":
        return this.#responded(command.target.requestId, await this.#link.answer(command.target, command.answer));
      case "cancelQuestion":
        return this.#responded(command.target.requestId, await this.#link.cancelQuestion(command.target));
      default:
        return command satisfies never;
    }
  }

  async #list(): Promise<void> {
    const conversations: ConversationSnapshot[] = [];
    let after: string | undefined;
    try {
      do {
        const page = await this.#link.call("conversation_list", after === undefined ? {} : { after });
        conversations.push(...page.conversations);
        after = page.next;
      } while (after !== undefined);
    } catch (error) {
      if (error instanceof LinkLost) return; // it is listed again once the link is connected
      throw error;
    }
    this.#tell({ type: "conversations", conversations });
  }

  async #open(conversationId: string): Promise<void> {
    this.#opening += 1;
    const opening = this.#opening;
    this.#watch?.close();
    this.#watch = undefined;
    const history = await this.#history(conversationId, opening);
    if (history === undefined) return;
    this.#tell({ type: "history", conversationId, events: history.events, gap: history.gap });
    this.#watch = this.#link.watchConversation(conversationId, { events: true, after: history.next }, (update) => {
      switch (update.kind) {
        case "snapshot":
          return this.#tell({ type: "snapshot", conversationId, snapshot: update.snapshot });
        case "stale":
          return this.#tell({ type: "snapshot", conversationId, snapshot: null });
        case "event":
          return this.#tell({ type: "event", conversationId, event: update.event });
        case "gap":
          return this.#tell({ type: "gap", conversationId });
        case "question":
          if (update.result.question !== undefined)
            this.#tell({ type: "questionSeen", question: update.result.question });
          return;
        case "failed":
          return this.#tell({ type: "openFailed", conversationId, say: failureWords(update.error) });
        default:
          return update satisfies never;
      }
    });
  }

  /** Every retained event, at most the last `HISTORY`; nothing where another conversation was opened meanwhile. */
  async #history(conversationId: string, opening: number) {
    for (;;) {
      const events: ConversationEvent[] = [];
      let next: string | undefined;
      let gap = false;
      try {
        for (;;) {
          const after = next === undefined ? {} : { after: next };
          const page = await this.#link.call("conversation_tail", {
            conversationId,
            limit: BOUNDS.eventPage,
            ...after,
          });
          if (opening !== this.#opening) return undefined;
          gap ||= page.gap || events.length + page.events.length > HISTORY;
          events.push(...page.events);
          events.splice(0, events.length - HISTORY);
          const ended = page.events.length === 0 || page.next === next;
          next = page.next;
          if (ended) return { events, gap, next };
        }
      } catch (error) {
        if (!(error instanceof LinkLost) || this.#link.state.kind === "closed") {
          if (isCallError(error)) this.#tell({ type: "openFailed", conversationId, say: failureWords(error) });
          else throw error;
          return undefined;
        }
        await this.#link.ready();
        if (opening !== this.#opening) return undefined;
      }
    }
  }

  async #create(given: string, command: readonly string[]): Promise<void> {
    const directory = resolve(given.replace(/^~(?=\/|$)/, homedir()));
    const { conversation } = await this.#link.call("conversation_create", {
      scope: { kind: "workspace", workspaceId: directory },
      title: basename(directory) || directory,
      runner: command.length === 0 ? { kind: "attached" } : { kind: "command", command: [...command] },
    });
    this.#tell({ type: "created", conversation });
  }

  async #send(conversationId: string, text: string): Promise<void> {
    try {
      const result = await this.#link.call("conversation_send", { conversationId, message: text });
      const outcome =
        result.status === "accepted"
          ? ({ kind: "accepted", runId: result.runId } as const)
          : ({ kind: "refused", say: "the conversation changed" } as const);
      this.#tell({ type: "sent", text, outcome });
    } catch (error) {
      if (!isCallError(error)) throw error;
      const say = failureWords(error);
      const kind =
        error instanceof FaultError && error.code !== "internal_error"
          ? "refused"
          : isUnsent(error)
            ? "not_sent"
            : "uncertain";
      this.#tell({ type: "sent", text, outcome: { kind, say } });
    }
  }

  async #readQuestion(command: ServiceCommand & { readonly type: "readQuestion" }): Promise<void> {
    const { conversationId, requestId, sequence } = command;
    try {
      const result = await this.#link.call(
        "input_get",
        requestId === undefined ? { conversationId } : { conversationId, requestId },
      );
      this.#tell({ type: "questionRead", conversationId, sequence, outcome: { kind: "result", result } });
    } catch (error) {
      if (!isCallError(error)) throw error;
      const outcome = { kind: "failed", say: failureWords(error) } as const;
      this.#tell({ type: "questionRead", conversationId, sequence, outcome });
    }
  }

  async #responded(requestId: string, outcome: ResponseOutcome): Promise<void> {
    this.#tell({ type: "responded", requestId, outcome: respondedOf(outcome) });
    if (outcome.kind !== "uncertain") return;
    try {
      const result = await outcome.receipt();
      this.#tell({ type: "receiptRead", requestId, outcome: { kind: "result", result } });
    } catch (error) {
      if (!isCallError(error)) throw error;
      this.#tell({ type: "receiptRead", requestId, outcome: { kind: "failed", say: failureWords(error) } });
    }
  }
}

function respondedOf(outcome: ResponseOutcome): Responded {
  switch (outcome.kind) {
    case "settled":
      return { kind: "settled", result: outcome.result };
    case "fault":
      return { kind: "fault", say: failureWords(outcome.error) };
    case "not_sent":
      return { kind: "not_sent", say: failureWords(outcome.error) };
    case "uncertain":
      return { kind: "uncertain", say: outcome.detail };
    default:
      return outcome satisfies never;
  }
}

function connectionOf(state: LinkState): ConnectionState {
  switch (state.kind) {
    case "connecting":
    case "connected":
      return { kind: state.kind };
    case "reconnecting":
      return { kind: "reconnecting", nextTryAt: state.nextTryAt, detail: state.detail };
    case "closed":
      return { kind: "closed", say: closedWords(state.reason) };
    default:
      return state satisfies never;
  }
}

function closedWords(reason: "by_client" | "unauthenticated" | "forbidden"): string {
  switch (reason) {
    case "by_client":
      return "closed";
    case "unauthenticated":
      return "the service does not accept this token";
    case "forbidden":
      return "the service does not accept this address";
    default:
      return reason satisfies never;
  }
}

const isCallError = (error: unknown): error is FaultError | LinkLost | BadReply =>
  error instanceof FaultError || error instanceof LinkLost || error instanceof BadReply;

const isUnsent = (error: unknown): boolean => error instanceof LinkLost && !error.sent;

const sentence = (text: string): string => text.slice(0, 1).toUpperCase() + text.slice(1);

/** What went wrong, for people. */
function failureWords(error: FaultError | LinkLost | BadReply): string {
  if (!(error instanceof FaultError)) return error.message;
  const fields = (error.data?.errors ?? []).map(({ path, expected }) => `${path}: ${expected}`).join("; ");
  return faultWords(error.code, fields === "" ? error.message : fields);
}
