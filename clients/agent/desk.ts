import type { Method, Result } from "../../protocol/operations.js";
import type { QuestionResult } from "../../protocol/question.js";
import { checkParams } from "../../protocol/requests.js";
import type { ConversationSnapshot } from "../../protocol/snapshot.js";
import type { Arguments } from "../link/connection.js";
import { FaultError, LinkLost } from "../link/errors.js";
import { nodeConnector } from "../link/node.js";
import { type ConversationWatch, type Link, openLink } from "../link.js";
import { faultFailure, notAccepted, ToolFailure } from "./guidance.js";

/** Where the service is and as whom to speak, or why neither is known. */
export type Address =
  | { readonly kind: "known"; readonly url: string; readonly token: string }
  | { readonly kind: "unknown"; readonly problem: string; readonly remedy: string };

/** Milliseconds to wait for a connection before a call says that there is none. */
const CONNECT_MS = 5_000;

/**
 * The agent's place at the service: one link, opened with the first call and kept, and one watch of the conversation
 * while somebody waits. Everything that fails comes out as a `ToolFailure`.
 */
export class Desk {
  readonly #address: Address;
  readonly #log: (text: string) => void;
  readonly #lookers = new Set<() => void>();
  #conversation: string | undefined;
  #link: Link | undefined;
  #watch: ConversationWatch | undefined;
  #failed = false;

  constructor(address: Address, conversationId: string | undefined, log: (text: string) => void) {
    this.#address = address;
    this.#conversation = conversationId;
    this.#log = log;
  }

  /** The conversation: the one it was given, or else the one that the agent's token is bound to. */
  async conversation(): Promise<string> {
    if (this.#conversation !== undefined) return this.#conversation;
    if (this.#address.kind === "unknown") throw unknownAddress(this.#address);
    const { principal } = await this.call("authenticate", { token: this.#address.token });
    if (principal.kind !== "agent")
      throw new ToolFailure(
        "no_conversation",
        "This server was not told which conversation it serves.",
        "Tell your user to start it as `clankie mcp --conversation ID`, or with CLANKIE_CONVERSATION.",
      );
    this.#conversation = principal.conversationId;
    return principal.conversationId;
  }

  /**
   * Calls a method once; it is never sent again. Where it was sent and no reply came, `uncertain` says what to tell; for a
   * method that only reads there is nothing to be uncertain of.
   */
  async call<M extends Method>(method: M, args: Arguments<M>, uncertain?: () => ToolFailure): Promise<Result<M>> {
    const checked = checkParams(method, { schemaVersion: 1, ...args });
    if (!checked.ok)
      throw faultFailure(
        new FaultError(
          "invalid_params",
          "These arguments cannot be right.",
          { code: "invalid_params", errors: checked.errors },
          0,
        ),
      );
    const link = await this.#ready();
    try {
      return await link.call(method, args);
    } catch (error) {
      if (error instanceof LinkLost && !error.sent) throw this.#unreachable(error.message);
      if (uncertain !== undefined && !(error instanceof FaultError && error.code !== "internal_error"))
        throw uncertain();
      if (error instanceof FaultError) throw faultFailure(error);
      throw this.#unreachable(error instanceof Error ? error.message : String(error));
    }
  }

  /** Reads a question; without an id the pending one. */
  async question(requestId: string | undefined): Promise<QuestionResult> {
    const conversationId = await this.conversation();
    return this.call("input_get", requestId === undefined ? { conversationId } : { conversationId, requestId });
  }

  /**
   * Waits until a snapshot of the conversation is as wanted, or `signal` is aborted. The snapshot is one that was read on
   * the present connection; while there is none, it goes on waiting.
   */
  async until(wanted: (snapshot: ConversationSnapshot) => boolean, signal: AbortSignal): Promise<boolean> {
    const conversationId = await this.conversation();
    const link = await this.#ready();
    return new Promise((resolve) => {
      const end = (seen: boolean): void => {
        this.#lookers.delete(lookAgain);
        signal.removeEventListener("abort", abort);
        if (this.#lookers.size === 0) this.#stopWatching();
        resolve(seen);
      };
      const abort = (): void => end(false);
      const lookAgain = (): void => {
        const snapshot = this.#watch?.snapshot;
        // what is wrong with a closed link or a refused watch, the read that follows says
        if (this.#failed || link.state.kind === "closed" || (snapshot !== undefined && wanted(snapshot))) end(true);
      };
      if (signal.aborted) return resolve(false);
      signal.addEventListener("abort", abort);
      this.#lookers.add(lookAgain);
      if (this.#watch === undefined) this.#failed = false;
      this.#watch ??= link.watchConversation(conversationId, {}, ({ kind }) => {
        this.#failed = kind === "failed";
        if (kind !== "stale") this.#lookAgain();
      });
      lookAgain();
    });
  }

  close(): void {
    this.#link?.close();
  }

  #lookAgain(): void {
    for (const look of [...this.#lookers]) look();
  }

  #stopWatching(): void {
    this.#watch?.close();
    this.#watch = undefined;
  }

  /** The link, connected. */
  async #ready(): Promise<Link> {
    const address = this.#address;
    if (address.kind === "unknown") throw unknownAddress(address);
    if (this.#link === undefined) {
      this.#link = openLink({ url: address.url, token: address.token, connector: nodeConnector, onOddity: this.#log });
      this.#link.onState(({ kind }) => {
        if (kind === "closed") this.#lookAgain();
      });
    }
    const link = this.#link;
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<"late">((resolve) => {
      timer = setTimeout(resolve, CONNECT_MS, "late" as const);
    });
    const connected = link.ready().then(
      () => "connected" as const,
      () => "closed" as const,
    );
    link.nudge();
    const outcome = await Promise.race([connected, late]);
    clearTimeout(timer);
    switch (outcome) {
      case "connected":
        return link;
      case "late":
        throw this.#unreachable(link.state.kind === "reconnecting" ? link.state.detail : "no connection in time");
      case "closed":
        throw this.#refused(link);
      default:
        return outcome satisfies never;
    }
  }

  #refused({ state }: Link): ToolFailure {
    if (state.kind !== "closed" || state.reason === "unauthenticated") return notAccepted();
    return new ToolFailure(
      state.reason,
      state.reason === "forbidden" ? "The service does not know itself by this address." : "This server is ending.",
      "Nothing was done. Tell your user to look at CLANKIE_URL.",
    );
  }

  #unreachable(detail: string): ToolFailure {
    if (this.#link?.state.kind === "closed") return this.#refused(this.#link);
    return new ToolFailure(
      "unreachable",
      `The service cannot be reached${this.#address.kind === "known" ? ` at ${this.#address.url}` : ""} (${detail}).`,
      "Nothing was done by this call. Try once more; if it stays so, go on without asking and tell your user to start it with `clankie serve`.",
    );
  }
}

const unknownAddress = ({ problem, remedy }: Extract<Address, { kind: "unknown" }>): ToolFailure =>
  new ToolFailure("not_configured", problem, remedy);
