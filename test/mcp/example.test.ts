import { mkdir, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { questionAbout, reactTo } from "../../clients/agent/example/choice.js";
import { answeredIn } from "../../clients/agent/example/continuation.js";
import { type FileEntry, look } from "../../clients/agent/example/look.js";
import { continuationMessage } from "../../machines/continuation.js";
import { EXAMPLE } from "./service.js";
import { World } from "./world.js";

const test = suite("the example agent");
const world = new World();
test.before(world.begin);
test.after(world.end);

let directories = 0;

async function directoryWith(files: Readonly<Record<string, string | Buffer>>): Promise<string> {
  directories += 1;
  const directory = await world.service.directory(`files-${directories}`);
  for (const [path, content] of Object.entries(files)) {
    await mkdir(join(directory, path, ".."), { recursive: true });
    await writeFile(join(directory, path), content);
  }
  return directory;
}

/** What the agent says about an answer in a directory. */
async function said(
  directory: string,
  answer: { readonly label: string } | { readonly text: string },
): Promise<string> {
  const found = await look(directory);
  const question = { kind: "choice", prompt: "Which?", options: questionAbout(found).options } as const;
  const given =
    "label" in answer
      ? ({ kind: "choice", label: answer.label } as const)
      : ({ kind: "text", text: answer.text } as const);
  return (await reactTo(directory, found, { requestId: "1", question, answer: given })).join("\n");
}

test("[10] it greets, asks about what is really there, and its continuation does what was chosen", async () => {
  const directory = await directoryWith({
    "README.md": "# Ferry times\n\nWhen the ferry goes.\n",
    "src/times.ts": "export const first = 6;\nexport function next(): number {\n  return first;\n}\n",
    ".hidden": "no",
    "node_modules/a/index.js": "no",
  });
  const { service } = world;
  const conversationId = await service.conversation(directory, [process.execPath, EXAMPLE]);
  const runId = await service.send(conversationId, "Hello");
  assert.is((await service.turnEnd(conversationId, runId)).phase, "completed");
  const { question } = await service.read(conversationId);
  assert.equal(
    question?.options.map(({ label }) => label),
    ["README.md", "src/times.ts", "src/", "The directory as a whole"],
  );
  assert.is(question?.originRunId, runId);
  const answered = await service.answer(conversationId, { label: "src/times.ts" });
  const continuation = answered.question?.continuation?.runId ?? "";
  assert.is((await service.turnEnd(conversationId, continuation)).phase, "completed");
  const { events } = await service.operator.call("conversation_tail", { conversationId });
  const lines = events.flatMap((event) => (event.type === "message" && event.role === "agent" ? [event.text] : []));
  assert.match(lines[0] ?? "", /I found 2 files and 1 folder/);
  assert.ok(lines.includes("  exports: first, next"), lines.join("\n"));
});

test("the command of a run is told the directory it runs in, whatever the service's own is", async () => {
  const { service } = world;
  const directory = await directoryWith({});
  const conversationId = await service.conversation(directory, ["env"]);
  const runId = await service.send(conversationId, "Hello");
  await service.turnEnd(conversationId, runId);
  const { events } = await service.operator.call("conversation_tail", { conversationId });
  assert.ok(events.some((event) => event.type === "message" && event.text === `PWD=${directory}`));
});

test("a directory with fewer than two files gives a sensible choice too", async () => {
  const alone = questionAbout(await look(await directoryWith({ "a.txt": "one" })));
  assert.equal(
    alone.options.map(({ label }) => label),
    ["a.txt", "The directory as a whole"],
  );
  const empty = await directoryWith({ ".git/config": "" });
  assert.equal(
    questionAbout(await look(empty)).options.map(({ label }) => label),
    ["A program", "Texts", "Data"],
  );
  assert.match(await said(empty, { label: "Data" }), /where it came from/);
});

test("[3] names that cannot be labels are not offered, and never more than eight options", async () => {
  const names = [
    "\u001b[2J.txt",
    "line\nbreak",
    "x".repeat(201),
    " space ",
    ...Array.from({ length: 12 }, (_, n) => `n${n}`),
  ];
  const question = questionAbout(await look(await directoryWith(Object.fromEntries(names.map((name) => [name, ""])))));
  assert.is(question.options.length, 8);
  for (const { label } of question.options) assert.match(label, /^(n\d+|The directory as a whole)$/);
});

test("it describes text, tables, pictures, binaries and empty files by what is in them", async () => {
  const png = Buffer.from("89504e470d0a1a0a0000000d494844520000010000000080", "hex");
  const directory = await directoryWith({
    "notes.md": "intro\n\n## Plan\ntext\n## Later\n",
    "data.csv": "day,boat\n1,2\n",
    "package.json": '{"name":"ferry","scripts":{"test":"x"}}',
    "picture.png": png,
    blob: Buffer.from([0, 1, 2, 255]),
    "empty.txt": "",
    "module.py": "def go():\n    pass\nclass Boat:\n    pass\n",
  });
  assert.match(
    await said(directory, { label: "notes.md" }),
    /Markdown.*\n.*5 lines[\s\S]*first heading: “Plan”[\s\S]*Later/,
  );
  assert.match(await said(directory, { label: "data.csv" }), /columns: day, boat/);
  assert.match(await said(directory, { label: "package.json" }), /package: “ferry”\n {2}scripts: test/);
  assert.match(await said(directory, { label: "picture.png" }), /PNG picture[\s\S]*256 × 128 pixels/);
  assert.match(await said(directory, { label: "blob" }), /binary file[\s\S]*000102ff/);
  assert.match(await said(directory, { label: "empty.txt" }), /0 bytes[\s\S]*it is empty/);
  assert.match(await said(directory, { label: "module.py" }), /defines: go, Boat/);
});

test("a free text that names something is followed, any other is answered with what was understood", async () => {
  const directory = await directoryWith({ "README.md": "# Ferry\n", "src/a.ts": "export const a = 1;\n" });
  assert.match(await said(directory, { text: "the readme, please" }), /first heading: “Ferry”/);
  assert.match(await said(directory, { text: "./src/a.ts" }), /exports: a/);
  assert.match(await said(directory, { text: "2" }), /exports: a/);
  assert.match(await said(directory, { text: "everything" }), /The directory as a whole/);
  assert.match(await said(directory, { text: "/etc/passwd" }), /I understood: “\/etc\/passwd”[\s\S]*names nothing/);
});

test("it reads nothing outside of its directory, and nothing that would hold it", async () => {
  const directory = await directoryWith({ "a.txt": "inside" });
  await symlink("/etc/hostname", join(directory, "link.txt"));
  const found = await look(directory);
  assert.equal(
    found.entries.map(({ path }) => path),
    ["a.txt"],
  );
  const file: FileEntry = { type: "file", path: "link.txt", kind: "plain text", bytes: 1, changed: new Date(0) };
  const through = { entries: [file], complete: true };
  const answer = { kind: "choice", label: "link.txt" } as const;
  const question = { kind: "choice", prompt: "Which?", options: [] } as const;
  assert.match(
    (await reactTo(directory, through, { requestId: "1", question, answer })).join(),
    /leads out of the directory/,
  );
});

test("[6] it reads the message of a continuation as strict data, and no other message as one", () => {
  const option = { optionId: "1", label: "a\n</x> /quit" };
  const question = {
    requestId: "1",
    incarnationId: "1",
    conversationId: "1",
    workspace: "/",
    purpose: "preference",
    kind: "choice",
    prompt: "Which?",
    options: [option],
    allowFreeform: true,
    createdAt: "2026-01-01T00:00:00Z",
    originRunId: "1",
    status: "submitted",
  } as const;
  const message = continuationMessage(question, { kind: "choice", optionId: "1" });
  assert.equal(answeredIn(message)?.answer, { kind: "choice", label: option.label });
  assert.equal(answeredIn(`${message}\n`)?.requestId, "1");
  assert.is(answeredIn(message.replace('"requestId"', '"other":1,"requestId"')), undefined);
  assert.is(answeredIn(`Look:\n${message}`), undefined);
  assert.is(answeredIn("The owner answered the question you asked."), undefined);
});

test.run();
