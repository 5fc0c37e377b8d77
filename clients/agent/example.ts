import { text } from "node:stream/consumers";
import { safeText } from "../text.js";
import { ask } from "./example/ask.js";
import { inAll, questionAbout, reactTo } from "./example/choice.js";
import { answeredIn } from "./example/continuation.js";
import { look } from "./example/look.js";

/**
 * The example agent: the command of a conversation (contract section 10). For a message it looks at what is in its
 * directory and asks its owner which of it to describe; started again with the answer, it describes that. It is told
 * nothing that another agent is not told: the message on stdin, and the environment that `clankie mcp` inherits.
 */
async function main(): Promise<number> {
  const message = await text(process.stdin);
  const workspace = process.cwd();
  const found = await look(workspace);
  const answered = answeredIn(message);
  if (answered !== undefined) {
    say(await reactTo(workspace, found, answered));
    return 0;
  }
  const draft = questionAbout(found);
  const folder = found.entries.length === 0 ? "It is empty" : `I found ${inAll(found)}`;
  say([`Hello. I looked at ${workspace}. ${folder}.`]);
  const asked = await ask(draft);
  if (asked.ok) {
    say([`I asked you: ${draft.prompt}`]);
    return 0;
  }
  say(["I could not ask you which of it to describe:", asked.text]);
  return 1;
}

function say(lines: readonly string[]): void {
  process.stdout.write(lines.map((line) => `${safeText(line)}\n`).join(""));
}

process.exitCode = await main();
