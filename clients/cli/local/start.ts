import { basename } from "node:path";
import { fileURLToPath } from "node:url";
import type { Command } from "commander";
import type { ConversationEvent } from "../../../protocol/events.js";
import type { ConversationSnapshot } from "../../../protocol/snapshot.js";
import type { RunningService } from "../../../server/main.js";
import { nodeConnector } from "../../link/node.js";
import { type Link, openLink } from "../../link.js";
import { runTui } from "../../tui/main.js";
import type { Cli } from "../cli.js";
import { CommandLines, shellWord } from "../command-line.js";
import type { Console } from "../console.js";
import { EXIT, EXIT_HELP, Failure } from "../exit.js";
import { eventLine, questionCard } from "../render.js";
import { connectionOf, dataDirectory } from "../settings.js";
import { wholeNumber } from "../values.js";
import { noteRecovery, recoveryProgress } from "./serve.js";
import { endAsked, startService } from "./service.js";

interface StartFlags {
  readonly port: number;
  readonly tui: boolean;
}

const compiled = (path: string): string => fileURLToPath(new URL(`../../../${path}`, import.meta.url));

/** `clankie start`, which `npm start` runs: the main job as one command. */
export function addStart(program: Command, cli: Cli): void {
  program
    .command("start")
    .summary("try it: the service with an example agent that asks about this directory")
    .description(
      "start the service and an owner conversation in the current directory with the example agent, which looks at what is there and asks a question; on a terminal, answer it right there",
    )
    .option("--data <dir>", "where everything is kept (CLANKIE_DATA)")
    .option("--port <number>", "the port; another one is taken where it is not free", wholeNumber(0, 65_535), 7420)
    .option("--no-tui", "print the question and how to answer it, also on a terminal")
    .addHelpText("after", `\n${EXIT_HELP}`)
    .action(async (flags: StartFlags, command: Command) => {
      const { data }: { data?: string } = command.optsWithGlobals();
      await runStart(flags, dataDirectory(data, cli.surroundings.env), cli);
    });
}

async function runStart(flags: StartFlags, data: string, cli: Cli): Promise<void> {
  const { env, stdin, stdout } = cli.surroundings;
  const console = cli.console();
  const ended = endAsked();
  const onTerminal = flags.tui && stdin.isTTY === true && stdout.isTTY === true && env["TERM"] !== "dumb";
  const service = await startOnAnyPort(flags.port, data, onTerminal, console);
  try {
    noteRecovery(service, console);
    // The service of this process, as its operator, whatever the environment names.
    const { token } = connectionOf({ url: service.url, data }, {});
    const link = openLink({ url: service.url, token, connector: nodeConnector });
    try {
      await link.ready();
      const conversation = await exampleConversation(link, cli.surroundings.cwd());
      const { conversationId } = conversation;
      if (onTerminal) {
        await ask(link, conversationId);
        const left = await runTui({ url: service.url, token, conversation: conversationId });
        cli.exitWith(left === 0 ? EXIT.done : EXIT.failed);
        return;
      }
      const flagsOfData = data === dataDirectory(undefined, env) ? {} : { data };
      const commands = new CommandLines(flagsOfData, `node ${shellWord(compiled("clients/cli/bin.js"))}`);
      console.note(`The service is at ${service.url}, its data in ${service.dataDirectory}.`);
      console.note(`The conversation ${conversationId} is about ${conversation.scope.workspaceId}.`);
      console.note("The example agent looks around and asks. Ctrl-C ends everything.\n");
      follow(link, conversation, commands, console);
      await ask(link, conversationId);
      await ended;
      console.note("\nstopping: what runs is ended; what is pending is cancelled at the next start");
    } finally {
      link.close();
    }
  } finally {
    await service.stop();
  }
}

const ask = (link: Link, conversationId: string): Promise<unknown> =>
  link.call("conversation_send", {
    conversationId,
    message: "Look at this directory and ask me what you should describe first.",
  });

/** The usual port where it is free, another one where it is not. */
async function startOnAnyPort(port: number, data: string, quiet: boolean, console: Console): Promise<RunningService> {
  const options = {
    dataDirectory: data,
    host: "127.0.0.1",
    // On a terminal the screen is the TUI's.
    logLevel: quiet ? "silent" : "warn",
    progress: recoveryProgress(console),
  };
  try {
    return await startService({ ...options, port });
  } catch (error) {
    if (port === 0 || !(error instanceof Failure && error.code === "port_taken")) throw error;
    console.note(`port ${port} is taken; another one is used`);
    return await startService({ ...options, port: 0 });
  }
}

/** The conversation of an earlier start in this directory, or a new one. */
async function exampleConversation(link: Link, directory: string): Promise<ConversationSnapshot> {
  const title = `Example agent in ${basename(directory) || directory}`.slice(0, 256);
  let after: string | undefined;
  do {
    const page = await link.call("conversation_list", { ...(after !== undefined && { after }) });
    const known = page.conversations.find(
      (each) => each.title === title && each.scope.workspaceId === directory && each.eligible,
    );
    if (known !== undefined) return known;
    after = page.next;
  } while (after !== undefined);
  const { conversation } = await link.call("conversation_create", {
    scope: { kind: "workspace", workspaceId: directory },
    title,
    runner: { kind: "command", command: [process.execPath, compiled("clients/agent/example.js")] },
  });
  return conversation;
}

/** Prints what happens, and each question with the exact commands that answer it. */
function follow(link: Link, conversation: ConversationSnapshot, commands: CommandLines, console: Console): void {
  const { conversationId } = conversation;
  const show = async (event: ConversationEvent): Promise<void> => {
    if (event.type !== "input_requested") {
      console.item(event, (style) => eventLine(event, style));
      return;
    }
    const result = await link.call("input_get", { conversationId, requestId: event.requestId });
    console.item(result, (style) => `\n${questionCard(result, commands, style)}\n`);
    console.note("Answer it from another terminal with one of these commands.\n");
  };
  let shown: Promise<void> = Promise.resolve();
  link.watchConversation(conversationId, { events: true, after: conversation.safeCursor }, (update) => {
    if (update.kind !== "event") return;
    const { event } = update;
    shown = shown.then(() => show(event)).catch((error: unknown) => console.note(String(error)));
  });
}
