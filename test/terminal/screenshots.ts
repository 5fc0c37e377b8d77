import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { QuestionDraft } from "../../protocol/question.js";
import { svgOf } from "./svg.js";
import { ask, type Screen, ServedWorld } from "./world.js";

const DRAFT: QuestionDraft = {
  kind: "choice",
  prompt: "I found three documents in this directory. Which one should I describe first?",
  options: [
    { label: "README.md", description: "what the project is for, in two pages" },
    { label: "docs/operations.md", description: "how it is run, backed up and restored" },
    { label: "CHANGELOG.md" },
  ],
  allowFreeform: true,
};

/** Takes the pictures of docs/tui.md from the real program in a pseudo-terminal. */
const directory = process.argv[2] ?? "docs/images";
const world = await ServedWorld.start();
try {
  await mkdir(directory, { recursive: true });
  const link = await world.link();
  const website = await world.conversation(link, "Website");
  const backup = await world.conversation(link, "Backup scripts");
  await link.call("conversation_send", {
    conversationId: website,
    message: "Please look around and describe what is here.",
  });
  await ask(link, backup, { kind: "text", prompt: "What should the nightly backup leave out?" });
  await ask(link, website, DRAFT);
  const take = (name: string, screen: Screen, label: string): Promise<void> =>
    writeFile(join(directory, `${name}.svg`), svgOf(screen.emulator, label));

  const screen = world.tui();
  await screen.shows(/Website[\s\S]*waits for an answer/);
  await screen.shows("2 waiting");
  await take("tui-list", screen, "The list of conversations: two wait for an answer");

  await screen.line("/open Website");
  await screen.read();
  screen.send("/question answer 2");
  await screen.shows("› /question answer 2");
  await take("tui-question", screen, "A question with three options, and the answer being typed");

  await screen.submit();
  await screen.shows("Sent and stored");
  await take("tui-receipt", screen, "The receipt: the answer is stored and a run continues with it");

  const narrow = world.tui(["Backup"], { columns: 40, rows: 16 });
  await narrow.read();
  await take("tui-narrow", narrow, "A question in a window of 40 columns");
} finally {
  await world.end();
}
