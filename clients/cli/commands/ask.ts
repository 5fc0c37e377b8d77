import type { Command } from "commander";
import type { OptionDraft, QuestionDraft } from "../../../protocol/question.js";
import { type Cli, leaf } from "../cli.js";
import { exitOfResult } from "../exit.js";
import { questionCard } from "../render.js";
import { collect, wholeNumber } from "../values.js";

interface AskOptions {
  readonly prompt: string;
  readonly option?: readonly OptionDraft[];
  readonly allowText?: boolean;
  readonly expiresIn?: number;
}

/** `clankie ask`: the agent's side, for scripts. */
export function addAsk(program: Command, cli: Cli): void {
  leaf(program, "ask", "ask the owner one question as the agent of a conversation (CLANKIE_TOKEN); returns at once", [
    'ask CONVERSATION --prompt "Which first?" --option tests="what is covered" --option docs',
    'ask CONVERSATION --prompt "What is it called?" --expires-in 3600',
  ])
    .argument("<conversation>", "its id")
    .requiredOption("--prompt <text>", "the question")
    .option(
      "--option <label[=description]>",
      "an option, 2 to 8 of them; without any it is a text question",
      collect(draft),
    )
    .option("--allow-text", "a text may be answered instead of an option")
    .option("--expires-in <seconds>", "after so long it cannot be answered any more", wholeNumber(1))
    .action((conversationId: string, options: AskOptions, command: Command) =>
      cli.remote(command, async (session) => {
        const result = await session.call("request_user_input", { conversationId, ...draftOf(options) });
        session.console.result(result, (style) => questionCard(result, session.commands, style));
        return exitOfResult(result);
      }),
    );
}

/** `LABEL` or `LABEL=DESCRIPTION`; the first `=` divides. */
function draft(text: string): OptionDraft {
  const at = text.indexOf("=");
  return at < 0 ? { label: text } : { label: text.slice(0, at), description: text.slice(at + 1) };
}

function draftOf({ prompt, option, allowText, expiresIn }: AskOptions): QuestionDraft {
  const expiry = expiresIn === undefined ? {} : { expiresInSeconds: expiresIn };
  if (option === undefined) return { kind: "text", prompt, ...expiry };
  return { kind: "choice", prompt, options: option, allowFreeform: allowText ?? false, ...expiry };
}
