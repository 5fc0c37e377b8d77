import typia, { type tags } from "typia";
import type { MessageText, Reason, RunId, Uuid } from "../../protocol/bounds.js";
import { type Checked, checked } from "../../protocol/checked.js";
import type { Result } from "../../protocol/operations.js";
import type { Question, QuestionDraft, QuestionResult } from "../../protocol/question.js";
import { FaultError } from "../link/errors.js";
import type { Desk } from "./desk.js";
import { type AgentKind, askedGuidance, faultFailure, statusGuidance, ToolFailure } from "./guidance.js";
import type { ToolName } from "./tools.js";

/** How far a held call is, in seconds. */
export type Report = (progress: { readonly progress: number; readonly total: number }) => void;

/** One call of a tool. */
export interface Call {
  readonly name: string;
  readonly given: Readonly<Record<string, unknown>>;
  /** The client gave the call up, or is gone. */
  readonly signal: AbortSignal;
  readonly report: Report;
  readonly reportEveryMs: number;
}

type WaitSeconds = number & tags.Type<"uint32"> & tags.Maximum<50>;

interface StatusArguments {
  readonly requestId?: Uuid;
  readonly waitSeconds?: WaitSeconds;
}

interface ClaimArguments {
  readonly runId?: RunId;
  readonly waitSeconds?: WaitSeconds;
}

interface SettleArguments {
  readonly runId: RunId;
  readonly state: "completed" | "failed";
  readonly reasonCode?: Reason;
  readonly summary?: MessageText;
}

const checkDraft = typia.createValidateEquals<QuestionDraft>();
const checkStatus = typia.createValidateEquals<StatusArguments>();
const checkClaim = typia.createValidateEquals<ClaimArguments>();
const checkSettle = typia.createValidateEquals<SettleArguments>();

/** A tool's result, with what it means in words. */
export type Told = Readonly<Record<string, unknown>> & { readonly guidance: string };

type Claimed = Result<"run_claim">;

/** What the tools of `clankie mcp` do. Contract section 10. */
export class Toolbox {
  readonly #desk: Desk;
  readonly #agent: AgentKind;

  constructor(desk: Desk, agent: AgentKind) {
    this.#desk = desk;
    this.#agent = agent;
  }

  /** Throws a `ToolFailure` where the call failed in a way the agent is to hear of. */
  async call(call: Call): Promise<Told> {
    const given = await this.#ownConversation(withoutNulls(call.given));
    const name = call.name as ToolName; // the caller has found it among the tools
    switch (name) {
      case "request_user_input":
        return this.#ask(good(checked(checkDraft, given)));
      case "question_status":
        return this.#status(good(checked(checkStatus, given)), call);
      case "claim_run":
        return this.#claim(good(checked(checkClaim, given)), call);
      case "settle_run":
        return this.#settle(good(checked(checkSettle, given)));
      default:
        return name satisfies never;
    }
  }

  /** The methods of the socket carry a `conversationId`: a client that gives it here too must mean this conversation. */
  async #ownConversation({ conversationId, ...rest }: Call["given"]): Promise<Call["given"]> {
    if (conversationId === undefined || conversationId === (await this.#desk.conversation())) return rest;
    throw invalid([{ path: "conversationId", expected: "nothing; these tools serve one conversation" }]);
  }

  async #ask(draft: QuestionDraft): Promise<Told> {
    const conversationId = await this.#desk.conversation();
    const uncertain = (): ToolFailure =>
      new ToolFailure(
        "uncertain",
        "The connection to the service was lost before its reply: whether the owner has been asked is not known.",
        "Do not ask again. Call question_status without requestId: if it shows your question, the owner has been asked; if none is pending, go on without asking and say in your last message what you wanted to ask.",
      );
    try {
      const result = await this.#desk.call("request_user_input", { conversationId, ...draft }, uncertain);
      return { guidance: askedGuidance(result, this.#agent), ...result };
    } catch (error) {
      if (!(error instanceof ToolFailure) || error.code !== "uncertain") throw error;
      const result = await this.#askedAfterAll(draft);
      if (result === undefined) throw error;
      return { guidance: askedGuidance(result, this.#agent), ...result };
    }
  }

  /** The reply was lost: reads whether this question is pending, and sends nothing again. */
  async #askedAfterAll(draft: QuestionDraft): Promise<QuestionResult | undefined> {
    try {
      const result = await this.#desk.question(undefined);
      return result.question !== undefined && isOf(draft, result.question) ? result : undefined;
    } catch (error) {
      if (error instanceof ToolFailure) return undefined;
      throw error;
    }
  }

  async #status({ requestId, waitSeconds = 0 }: StatusArguments, call: Call): Promise<Told> {
    const hold = new Hold(waitSeconds, call);
    try {
      let result = await this.#desk.question(requestId);
      const asked = result.question;
      if (asked?.status === "pending" && waitSeconds > 0) {
        await this.#desk.until(({ question }) => question?.requestId !== asked.requestId, hold.signal);
        result = await this.#desk.question(asked.requestId);
      }
      return { guidance: statusGuidance(result, this.#agent, hold.isOver), ...result };
    } finally {
      hold.end();
    }
  }

  async #claim({ runId, waitSeconds = 0 }: ClaimArguments, call: Call): Promise<Told> {
    const conversationId = await this.#desk.conversation();
    const hold = new Hold(waitSeconds, call);
    try {
      for (;;) {
        const { conversation } = await this.#desk.call("conversation_show", { conversationId });
        const active = conversation.activeRun;
        const waiting = runId ?? (active?.state === "accepted" ? active.runId : undefined);
        if (waiting !== undefined)
          return claimed(await this.#desk.call("run_claim", { runId: waiting }, lostClaim(waiting)));
        if (waitSeconds === 0 || hold.signal.aborted) return notClaimed(active?.runId, hold.isOver);
        await this.#desk.until(({ activeRun }) => activeRun?.state === "accepted", hold.signal);
      }
    } finally {
      hold.end();
    }
  }

  async #settle(args: SettleArguments): Promise<Told> {
    await this.#desk.call(
      "run_settle",
      args,
      () =>
        new ToolFailure(
          "uncertain",
          "The connection to the service was lost before its reply: whether the turn is settled is not known.",
          "Repeat this call exactly as it was; that is safe.",
        ),
    );
    const guidance = "The turn is over. The next one, if there is one, can be taken with claim_run.";
    return { guidance, runId: args.runId, state: args.state };
  }
}

const lostClaim = (runId: string) => (): ToolFailure =>
  new ToolFailure(
    "uncertain",
    `The connection to the service was lost before its reply: whether the run ${JSON.stringify(runId)} was handed over is not known.`,
    "Call claim_run again. If no run waits or it is forbidden, it was handed over and its message is lost: call settle_run with this runId and state failed, so that the conversation goes on.",
  );

function claimed({ runId, message, context, workspace }: Claimed): Told {
  return {
    guidance: "Do what the message asks, then call settle_run with this runId.",
    claimed: true,
    runId,
    message,
    ...(context === null ? {} : { context }),
    ...(workspace === null ? {} : { workspace }),
  };
}

function notClaimed(activeRun: string | undefined, waited: boolean): Told {
  const guidance =
    activeRun === undefined
      ? `No turn waits${waited ? "; time ran out" : ""}. Call again with waitSeconds to wait for one.`
      : `No turn waits to be taken: the run ${JSON.stringify(activeRun)} is going on. If you took it, settle it first.`;
  return { guidance, claimed: false };
}

/** A call that is held: until its time is over or its client is gone, with signs of life in between. */
class Hold {
  readonly signal: AbortSignal;
  readonly #time: AbortSignal;
  readonly #timer: NodeJS.Timeout | undefined;

  constructor(seconds: number, { signal, report, reportEveryMs }: Call) {
    this.#time = AbortSignal.timeout(seconds * 1_000);
    this.signal = AbortSignal.any([signal, this.#time]);
    const start = performance.now();
    if (seconds > 0)
      this.#timer = setInterval(() => {
        report({ progress: Math.round((performance.now() - start) / 1_000), total: seconds });
      }, reportEveryMs);
  }

  /** Whether the time that was given has passed. */
  get isOver(): boolean {
    return this.#timer !== undefined && this.#time.aborted;
  }

  end(): void {
    clearInterval(this.#timer);
  }
}

/** Whether a question is the one that a draft asks; texts are compared as they are stored, trimmed. */
function isOf(draft: QuestionDraft, question: Question): boolean {
  const labels = (options: readonly { readonly label: string }[] | undefined): string =>
    JSON.stringify((options ?? []).map(({ label }) => label.trim()));
  return (
    draft.kind === question.kind &&
    draft.prompt.trim() === question.prompt.trim() &&
    labels(draft.options) === labels(question.options)
  );
}

/** Models write null for what is absent, and the contract says that this is the same. Contract section 5. */
function withoutNulls(given: Call["given"]): Call["given"] {
  const { options, ...rest } = given;
  const kept = Object.entries(rest).filter(([, value]) => value !== null);
  return Object.fromEntries(
    options === undefined || options === null
      ? kept
      : [...kept, ["options", Array.isArray(options) ? options.map(optionWithoutNulls) : options]],
  );
}

function optionWithoutNulls(option: unknown): unknown {
  if (typeof option !== "object" || option === null || Array.isArray(option)) return option;
  return Object.fromEntries(Object.entries(option).filter(([, value]) => value !== null));
}

function good<T>(outcome: Checked<T>): T {
  if (outcome.ok) return outcome.value;
  throw invalid(outcome.errors);
}

const invalid = (errors: readonly { readonly path: string; readonly expected: string }[]): ToolFailure =>
  faultFailure(
    new FaultError("invalid_params", "These arguments cannot be right.", { code: "invalid_params", errors }, 0),
  );
