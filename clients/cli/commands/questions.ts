import type { Command } from "commander";
import type { Answer, QuestionResult, Target } from "../../../protocol/question.js";
import { recoveredAnswer, recoveredCancel } from "../../link/outcome.js";
import { type Cli, leaf } from "../cli.js";
import { EXIT, type Exit, exitOfResult, usage } from "../exit.js";
import { everyPage } from "../pages.js";
import { questionCard, REFUSED } from "../render.js";
import { respond } from "../respond.js";
import { checkArguments, type Session } from "../session.js";
import { readText } from "../stdin.js";
import { oneOf, wholeNumber } from "../values.js";

type Status = "pending" | "submitted" | "cancelled";

/** `clankie conversations questions`, `answer` and `cancel-question`. */
export function addQuestions(parent: Command, cli: Cli): void {
  addList(parent, cli);
  addAnswer(parent, cli);
  addCancel(parent, cli);
}

function addList(parent: Command, cli: Cli): void {
  leaf(parent, "questions", "show the question that waits, one by its request id, or those of every conversation", [
    "conversations questions",
    "conversations questions CONVERSATION",
    "conversations questions CONVERSATION --request REQUEST_UUID",
    "conversations questions --status submitted --json",
  ])
    .argument("[conversation]", "its id (default: all conversations)")
    .option("--request <uuid>", "this question, pending or a receipt that is kept")
    .option("--status <status>", "pending, submitted or cancelled", oneOf("pending", "submitted", "cancelled"))
    .action(
      (
        conversationId: string | undefined,
        options: { readonly request?: string; readonly status?: Status },
        command: Command,
      ) =>
        cli.remote(command, async (session) => {
          const { request, status } = options;
          if (request !== undefined && (conversationId === undefined || status !== undefined))
            throw usage("--request needs a CONVERSATION, and no --status");
          if (conversationId === undefined) return everywhere(session, status ?? "pending");
          if (status === "pending") return pending(session, conversationId);
          if (status !== undefined) return receipts(session, conversationId, status);
          return one(session, conversationId, request);
        }),
    );
}

async function one(session: Session, conversationId: string, requestId: string | undefined): Promise<Exit> {
  const result = await session.call("input_get", { conversationId, ...(requestId !== undefined && { requestId }) });
  const { console, commands } = session;
  const { status, reason } = result;
  if (status === "refused" && reason !== undefined && result.question === undefined) {
    console.result(result, () => "");
    console.note(`clankie: ${REFUSED[reason]} (${reason})`);
    return reason === "unknown_request" ? EXIT.notFound : exitOfResult(result);
  }
  console.result(result, (style) => questionCard(result, commands, style));
  return EXIT.done;
}

async function everywhere(session: Session, status: Status): Promise<undefined> {
  const pages = await everyPage<"input_list">((after) => session.call("input_list", { ...after, status }));
  show(
    session,
    pages.flatMap(({ questions }) => questions),
    status,
  );
}

/** The list of `--status`, with the one question that can be pending: it was read, so it was pending at that moment. */
async function pending(session: Session, conversationId: string): Promise<undefined> {
  const result = await session.call("input_get", { conversationId });
  show(session, result.question?.status === "pending" ? [result] : [], "pending");
}

async function receipts(session: Session, conversationId: string, status: Status): Promise<undefined> {
  const { conversation } = await session.call("conversation_show", { conversationId });
  const { incarnationId, revision, safeCursor } = conversation;
  const kept = Object.values(conversation.receipts).filter((receipt) => receipt.status === status);
  const results = kept.map(
    (question): QuestionResult => ({
      status: "resolved",
      conversationId,
      incarnationId,
      revision,
      safeCursor,
      question,
    }),
  );
  show(session, results, status);
}

function show({ console, commands }: Session, questions: readonly QuestionResult[], status: Status): undefined {
  console.result({ questions }, (style) =>
    questions.length === 0
      ? `No question is ${status}.`
      : questions.map((result) => questionCard(result, commands, style)).join("\n\n"),
  );
}

interface TargetOptions {
  readonly incarnation: string;
  readonly revision: number;
}

function responding(parent: Command, name: string, summary: string, examples: readonly string[]): Command {
  return leaf(parent, name, summary, examples)
    .argument("<conversation>", "its id")
    .argument("<request>", "the question's request id")
    .requiredOption("--incarnation <uuid>", "the incarnation that you have seen")
    .requiredOption("--revision <n>", "the revision that you have seen", wholeNumber());
}

const targetOf = (conversationId: string, requestId: string, options: TargetOptions): Target => ({
  conversationId,
  requestId,
  incarnationId: options.incarnation,
  expectedRevision: options.revision,
});

/** An answer is at most 4 000 characters; white space around it may be longer. */
const ANSWER_BYTES = 65_536;

function addAnswer(parent: Command, cli: Cli): void {
  responding(
    parent,
    "answer",
    "answer the question that you have read; exit status 0 means that the answer is stored",
    [
      "conversations answer CONVERSATION REQUEST_UUID --incarnation UUID --revision N --option UUID",
      'conversations answer CONVERSATION REQUEST_UUID --incarnation UUID --revision N --text "the tests"',
      "conversations answer CONVERSATION REQUEST_UUID --incarnation UUID --revision N --stdin < answer.txt",
    ],
  )
    .option("--option <uuid>", "one of the question's options")
    .option("--text <text>", "a text, where the question allows one")
    .option("--stdin", "a text from standard input: UTF-8, all lines are one answer")
    .action(
      (
        conversationId: string,
        requestId: string,
        options: TargetOptions & { readonly option?: string; readonly text?: string; readonly stdin?: boolean },
        command: Command,
      ) =>
        cli.remote(command, async (session) => {
          const target = targetOf(conversationId, requestId, options);
          const answer = await answerOf(options, cli);
          checkArguments("input_answer", { ...target, answer });
          const link = await session.link();
          return respond(session, {
            target,
            method: "input_answer",
            send: () => link.answer(target, answer),
            recovered: (result) => recoveredAnswer(result, answer),
          });
        }),
    );
}

async function answerOf(
  options: { readonly option?: string; readonly text?: string; readonly stdin?: boolean },
  cli: Cli,
): Promise<Answer> {
  const { option, text, stdin } = options;
  if ([option, text, stdin].filter((given) => given !== undefined).length !== 1)
    throw usage("give the answer with --option UUID, --text TEXT or --stdin, one of the three");
  if (option !== undefined) return { kind: "choice", optionId: option };
  return { kind: "text", text: text ?? (await readText(cli.surroundings.stdin, ANSWER_BYTES)) };
}

function addCancel(parent: Command, cli: Cli): void {
  responding(parent, "cancel-question", "cancel the question that you have read; nothing is answered", [
    "conversations cancel-question CONVERSATION REQUEST_UUID --incarnation UUID --revision N",
  ]).action((conversationId: string, requestId: string, options: TargetOptions, command: Command) =>
    cli.remote(command, async (session) => {
      const target = targetOf(conversationId, requestId, options);
      checkArguments("input_cancel", target);
      const link = await session.link();
      return respond(session, {
        target,
        method: "input_cancel",
        send: () => link.cancelQuestion(target),
        recovered: recoveredCancel,
      });
    }),
  );
}
