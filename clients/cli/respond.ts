import type { QuestionResult, Target } from "../../protocol/question.js";
import type { Recovered, ResponseOutcome } from "../link/outcome.js";
import { EXIT, type Exit, exitOfResult, Failure } from "./exit.js";
import { questionCard, REFUSED, receiptLines } from "./render.js";
import type { Session } from "./session.js";

/** How long a receipt is looked for after the connection was lost, in milliseconds. */
const RECEIPT_WAIT_MS = 20_000;

interface Response {
  readonly target: Target;
  readonly method: "input_answer" | "input_cancel";
  /** Sends it, once. */
  readonly send: () => Promise<ResponseOutcome>;
  /** What a receipt says of it. */
  readonly recovered: (result: QuestionResult) => Recovered;
}

/** Sends an answer or a cancellation once, and says what became of it. Contract sections 6, 8 and 9. */
export async function respond(session: Session, response: Response, waitMs = RECEIPT_WAIT_MS): Promise<Exit> {
  const outcome = await response.send();
  switch (outcome.kind) {
    case "settled":
      return report(session, outcome.result, exitOfResult(outcome.result));
    case "fault":
    case "not_sent":
      throw session.failureOf(response.method, outcome.error);
    case "uncertain":
      session.console.note(`${outcome.detail}; looking for the receipt, nothing is sent again`);
      return recover(session, response, outcome, waitMs);
    default:
      return outcome satisfies never;
  }
}

async function recover(
  session: Session,
  { target, recovered }: Response,
  { detail, receipt }: Extract<ResponseOutcome, { kind: "uncertain" }>,
  waitMs: number,
): Promise<Exit> {
  const look = `look with: ${session.commands.question(target.conversationId, target.requestId)}`;
  const uncertain = (message: string, result?: QuestionResult): Failure =>
    new Failure(EXIT.uncertain, "outcome_uncertain", message, [look], { target, ...(result && { result }) });
  const result = await within(waitMs, receipt());
  if (result === undefined) throw uncertain(`${detail}; whether it is stored is not known`);
  switch (recovered(result)) {
    case "stored":
      return report(session, result, EXIT.done);
    case "otherwise":
      return report(session, result, EXIT.refused);
    case "pending":
      throw uncertain(
        `${detail}; it was not stored when the question was read just now, and was not sent again`,
        result,
      );
    case "unknown":
      throw uncertain(`${detail}; the service does not know the request any more`, result);
  }
}

/** What `promise` gives in time; nothing when it takes longer or the link is lost for good. */
async function within<T>(ms: number, promise: Promise<T>): Promise<T | undefined> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<undefined>((resolve) => {
    timer = setTimeout(() => resolve(undefined), ms);
  });
  const known = promise.catch((error: unknown) => {
    if (error instanceof Error) return undefined;
    throw error;
  });
  try {
    return await Promise.race([known, late]);
  } finally {
    clearTimeout(timer);
  }
}

function report(session: Session, result: QuestionResult, exit: Exit): Exit {
  const { console, commands } = session;
  const { question, reason, conversationId } = result;
  switch (exit) {
    case EXIT.done:
      console.result(result, (style) =>
        question?.answer === undefined ? "Cancelled." : `Stored.\n${receiptLines(question, style)}`,
      );
      return exit;
    case EXIT.conflict:
      console.result(result, () => "");
      console.note(
        [
          "clankie: the conversation has changed since this question was read; nothing was stored",
          `  read it again: ${commands.question(conversationId)}`,
        ].join("\n"),
      );
      return exit;
    default:
      console.result(result, (style) =>
        question === undefined || question.status === "pending" ? "" : questionCard(result, commands, style),
      );
      console.note(
        [
          `clankie: ${reason === undefined ? "the question ended otherwise" : `refused: ${REFUSED[reason]} (${reason})`}`,
          ...next(result, session),
        ].join("\n"),
      );
      return exit;
  }
}

function next({ reason, conversationId }: QuestionResult, { commands }: Session): readonly string[] {
  switch (reason) {
    case "stale_request":
    case "unknown_request":
    case "unknown_option":
    case "text_not_allowed":
      return [`  read the question again: ${commands.question(conversationId)}`];
    case "not_permitted":
    case "device_read_only":
    case "device_revoked":
    case "credential_expired":
      return ["  use the operator's token: --token-file FILE or CLANKIE_TOKEN"];
    default:
      return [];
  }
}
