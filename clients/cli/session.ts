import type { Method, Result } from "../../protocol/operations.js";
import { checkParams } from "../../protocol/requests.js";
import type { Arguments } from "../link/connection.js";
import { BadReply, FaultError, LinkLost } from "../link/errors.js";
import { nodeConnector } from "../link/node.js";
import { type Link, openLink } from "../link.js";
import { safeLine } from "../text.js";
import { CommandLines } from "./command-line.js";
import type { Console } from "./console.js";
import { EXIT, exitOfFault, Failure } from "./exit.js";
import { type ConnectionFlags, connectionOf, unreachable } from "./settings.js";

/** Requests that can be lost without harm: nothing but reading. */
const READING: readonly Method[] = [
  "conversation_list",
  "conversation_show",
  "conversation_tail",
  "input_get",
  "input_list",
  "device_list",
  "credential_list",
  "project_list",
  "project_membership",
  "service_status",
];

/** One command's talk with the service. The link is opened at the first call, after its parameters were checked. */
export class Session {
  readonly commands: CommandLines;
  #link: Link | undefined;
  #url = "";

  constructor(
    readonly console: Console,
    private readonly flags: ConnectionFlags,
    private readonly env: NodeJS.ProcessEnv,
  ) {
    this.commands = new CommandLines(flags);
  }

  /** Calls a method once. Throws a `Failure` that says what to do next. */
  async call<M extends Method>(method: M, args: Arguments<M>): Promise<Result<M>> {
    checkArguments(method, args);
    const link = await this.link();
    try {
      return await link.call(method, args);
    } catch (error) {
      throw this.failureOf(method, error);
    }
  }

  /** The link, connected. Throws a `Failure` when the service is not there or refuses the token. */
  async link(): Promise<Link> {
    if (this.#link !== undefined) return this.#link;
    const { url, token } = connectionOf(this.flags, this.env);
    this.#url = url;
    const link = openLink({ url, token, connector: nodeConnector });
    this.#link = link;
    await new Promise<void>((resolve, reject) => {
      const stop = link.onState((state) => {
        stop();
        if (state.kind === "connected") resolve();
        else if (state.kind === "closed") reject(this.refused(state.reason));
        else
          reject(
            unreachable(
              `the service at ${url} cannot be reached${state.kind === "reconnecting" ? `: ${state.detail}` : ""}`,
            ),
          );
      });
    });
    return link;
  }

  /** What to tell about an error of a call. */
  failureOf(method: Method, error: unknown): unknown {
    if (error instanceof FaultError) return this.#fault(error);
    if (error instanceof BadReply)
      return new Failure(
        READING.includes(method) ? EXIT.failed : EXIT.uncertain,
        "bad_reply",
        `${error.message}: is the service of another version?`,
        ["see: clankie status"],
      );
    if (!(error instanceof LinkLost)) return error;
    const state = this.#link?.state;
    if (state?.kind === "closed" && state.reason !== "by_client") return this.refused(state.reason);
    if (!error.sent || READING.includes(method))
      return unreachable(`the service at ${this.#url} went away: ${error.message}`);
    return new Failure(
      EXIT.uncertain,
      "outcome_uncertain",
      `${error.message}: whether it was done is not known, and it was not sent again`,
      [`look before you repeat it: ${this.commands.of("conversations", "list")}`],
    );
  }

  close(): void {
    this.#link?.close();
  }

  #fault({ code, message, data }: FaultError): Failure {
    const exit = namesNothing(data) ? EXIT.notFound : exitOfFault(code);
    return new Failure(exit, code, safeLine(message), this.#hints(code, data), data);
  }

  #hints(code: FaultError["code"], data: FaultError["data"]): readonly string[] {
    switch (code) {
      case "invalid_params":
      case "frame_too_large":
        return (data?.errors ?? []).map(({ path, expected }) => `${path}: ${expected}`);
      case "unauthenticated":
        return this.refused("unauthenticated").hints;
      case "forbidden":
        return ["this needs another token: --token-file FILE or CLANKIE_TOKEN"];
      case "unknown_conversation":
        return [`list the conversations: ${this.commands.of("conversations", "list")}`];
      case "question_pending":
        return ["a question is never replaced: wait for its answer, or let its owner cancel it"];
      case "ineligible_conversation":
        return data?.reason === undefined ? [] : [`reason: ${data.reason}`];
      case "queue_full":
        return ["wait until the runs that wait are done, or cancel one: clankie runs cancel RUN_ID"];
      case "rate_limited":
        return data?.retryAfterMs === undefined ? [] : [`try again in ${Math.ceil(data.retryAfterMs / 1000)} s`];
      case "question_state_unavailable":
      case "storage_unavailable":
        return [`nothing was stored; see: ${this.commands.of("doctor")}`];
      case "shutting_down":
        return ["the service is stopping; start it with: clankie serve"];
      case "internal_error":
      case "protocol":
        return ["see the service's log"];
      default:
        return code satisfies never;
    }
  }

  /** What to tell about a link that is closed for good. */
  refused(reason: "by_client" | "unauthenticated" | "forbidden"): Failure {
    if (reason === "forbidden")
      return new Failure(
        EXIT.notPermitted,
        "forbidden",
        `the service at ${this.#url} is not told that it has this name`,
        ["start it with --allow-host NAME, or use the address it prints"],
      );
    return new Failure(EXIT.notPermitted, "unauthenticated", `the service at ${this.#url} refused the token`, [
      "it may have been rotated, revoked or have expired, or belong to another service",
      "give another one with --token-file FILE or CLANKIE_TOKEN",
    ]);
  }
}

/** The values had the right form when they were sent: the service knows nothing with this id. */
function namesNothing(data: FaultError["data"]): boolean {
  const ids = ["deviceId", "credentialId", "projectId", "runId"];
  return data?.code === "invalid_params" && (data.errors ?? []).some(({ path }) => ids.includes(path));
}

/** A request that cannot be right is a usage error before anything is sent. */
export function checkArguments<M extends Method>(method: M, args: Arguments<M>): void {
  const checked = checkParams(method, { schemaVersion: 1, ...args });
  if (checked.ok) return;
  const faults = checked.errors.map(({ path, expected }) => `${path}: ${expected}`);
  throw new Failure(EXIT.usage, "invalid_params", "these values cannot be right", faults, { errors: checked.errors });
}
