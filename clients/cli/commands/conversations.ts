import { resolve } from "node:path";
import type { Command } from "commander";
import type { Runner } from "../../../protocol/operations.js";
import type { ConversationSnapshot, ScopeKind } from "../../../protocol/snapshot.js";
import { type Cli, group, leaf } from "../cli.js";
import { EXIT, Failure, usage } from "../exit.js";
import { everyPage } from "../pages.js";
import { conversationCard, runWords, table } from "../render.js";
import type { Session } from "../session.js";
import { readText } from "../stdin.js";
import { oneOf, wholeNumber } from "../values.js";
import { addQuestions } from "./questions.js";
import { addTail } from "./tail.js";

/** `clankie conversations …`. */
export function addConversations(program: Command, cli: Cli): void {
  const conversations = group(program, "conversations", "make, list, show and steer conversations, and answer in them");
  addCreate(conversations, cli);
  addList(conversations, cli);
  addShow(conversations, cli);
  addSend(conversations, cli);
  addReset(conversations, cli);
  addTail(conversations, cli);
  addQuestions(conversations, cli);
  addNative(conversations, cli);
}

const card = (session: Session, conversation: ConversationSnapshot): void =>
  session.console.result({ conversation }, (style) => conversationCard(conversation, style));

function addCreate(parent: Command, cli: Cli): void {
  const KINDS = ["workspace", "global", "room", "side", "seat"] as const satisfies readonly ScopeKind[];
  leaf(parent, "create", "make a conversation in an existing directory", [
    "conversations create",
    "conversations create --directory ~/code/site --title Site -- node agent.js --verbose",
  ])
    .argument("[command...]", "after --: the agent's command; without one an attached agent takes the turns")
    .option("--directory <dir>", "the directory it works in (default: the current one)")
    .option("--kind <kind>", `one of ${KINDS.join(", ")}`, oneOf(...KINDS), "workspace")
    .option("--title <title>", "its title (default: the directory's name)")
    .action(
      (
        words: readonly string[],
        options: { readonly directory?: string; readonly kind: ScopeKind; readonly title?: string },
        command: Command,
      ) =>
        cli.remote(command, async (session) => {
          const { directory, kind, title } = options;
          const hasPlace = kind === "workspace" || directory !== undefined;
          const runner: Runner = words.length === 0 ? { kind: "attached" } : { kind: "command", command: words };
          const { conversation } = await session.call("conversation_create", {
            scope: hasPlace ? { kind, workspaceId: resolve(currentDirectory(cli), directory ?? ".") } : { kind },
            ...(title !== undefined && { title }),
            runner,
          });
          card(session, conversation);
          return undefined;
        }),
    );
}

function currentDirectory(cli: Cli): string {
  try {
    return cli.surroundings.cwd();
  } catch {
    throw usage("the current directory is gone", "give another one with --directory DIR");
  }
}

function addList(parent: Command, cli: Cli): void {
  leaf(parent, "list", "list every conversation").action((_options: unknown, command: Command) =>
    cli.remote(command, async (session) => {
      const pages = await everyPage<"conversation_list">((after) => session.call("conversation_list", after));
      const conversations = pages.flatMap((page) => page.conversations);
      session.console.result({ conversations }, (style) =>
        conversations.length === 0
          ? `There is no conversation yet. Make one with: ${session.commands.of("conversations", "create")}`
          : table(
              ["CONVERSATION", "TITLE", "QUESTION", "RUN", "DRIVER", "REVISION", "DIRECTORY"],
              conversations.map((one) => [
                one.conversationId,
                one.title,
                one.question === null ? "-" : "waiting",
                runWords(one),
                one.driver.kind,
                String(one.revision),
                one.scope.workspaceId ?? "-",
              ]),
              style,
            ),
      );
      return undefined;
    }),
  );
}

function addShow(parent: Command, cli: Cli): void {
  leaf(parent, "show", "show one conversation")
    .argument("<conversation>", "its id")
    .action((conversationId: string, _options: unknown, command: Command) =>
      cli.remote(command, async (session) => {
        const { conversation } = await session.call("conversation_show", { conversationId });
        card(session, conversation);
        return undefined;
      }),
    );
}

/** A message is at most 16 384 characters, of at most three bytes each. */
const MESSAGE_BYTES = 3 * 16_384;

function addSend(parent: Command, cli: Cli): void {
  leaf(parent, "send", "send a message to the agent; it is chat, never the answer to a question", [
    'conversations send CONVERSATION "Describe the tests"',
    "conversations send CONVERSATION --stdin < message.txt",
  ])
    .argument("<conversation>", "its id")
    .argument("[text]", "the message; after -- when it begins with a dash")
    .option("--stdin", "read the message from standard input")
    .option("--revision <n>", "only while the conversation is at this revision", wholeNumber())
    .action(
      (
        conversationId: string,
        text: string | undefined,
        options: { readonly stdin?: boolean; readonly revision?: number },
        command: Command,
      ) =>
        cli.remote(command, async (session) => {
          if ((text === undefined) === (options.stdin === undefined))
            throw usage("give the message as TEXT or with --stdin, one of the two");
          const message = text ?? (await readText(cli.surroundings.stdin, MESSAGE_BYTES));
          const result = await session.call("conversation_send", {
            conversationId,
            message,
            ...(options.revision !== undefined && { expectedRevision: options.revision }),
          });
          if (result.status === "revision_conflict") return conflict(session, conversationId, result);
          session.console.result(
            result,
            (style) => `Accepted as run ${style.plain(result.runId)} at revision ${result.revision}.`,
          );
          return undefined;
        }),
    );
}

function conflict(session: Session, conversationId: string, result: { readonly revision: number }) {
  session.console.result(result, () => "");
  session.console.note(
    [
      `clankie: the conversation is at revision ${result.revision} by now; nothing was done`,
      `  look at it again: ${session.commands.of("conversations", "show", conversationId)}`,
    ].join("\n"),
  );
  return EXIT.conflict;
}

function addReset(parent: Command, cli: Cli): void {
  leaf(parent, "reset", "begin a new life of the conversation: its question is cancelled, its runs end")
    .argument("<conversation>", "its id")
    .requiredOption("--revision <n>", "the revision that you have seen", wholeNumber())
    .action((conversationId: string, options: { readonly revision: number }, command: Command) =>
      cli.remote(command, async (session) => {
        const result = await session.call("conversation_reset", { conversationId, expectedRevision: options.revision });
        if ("status" in result) return conflict(session, conversationId, result);
        card(session, result.conversation);
        return undefined;
      }),
    );
}

function addNative(parent: Command, cli: Cli): void {
  leaf(parent, "native", "let a harness you sit in take the turns, or give them back to the service", [
    "conversations native CONVERSATION --claim my-terminal",
    "conversations native CONVERSATION --release",
  ])
    .argument("<conversation>", "its id")
    .option("--claim <harness>", "the harness's name; a pending question is cancelled")
    .option("--release", "the service starts runs again")
    .action(
      (conversationId: string, options: { readonly claim?: string; readonly release?: boolean }, command: Command) =>
        cli.remote(command, async (session) => {
          const { claim, release } = options;
          if ((claim === undefined) === (release === undefined))
            throw new Failure(EXIT.usage, "usage", "give --claim HARNESS or --release, one of the two");
          const { conversation } =
            claim === undefined
              ? await session.call("native_release", { conversationId })
              : await session.call("native_claim", { conversationId, harness: claim });
          card(session, conversation);
          return undefined;
        }),
    );
}
