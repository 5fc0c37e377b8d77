import { writeFile } from "node:fs/promises";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import type { ConversationEvent } from "../../protocol/events.js";
import { OpencodeProject, QUESTION } from "./opencode.js";

const test = suite("opencode");

test("[10] opencode asks, its turn ends, the owner answers elsewhere, and opencode goes on in its session and acts on it", async () => {
  const project = await OpencodeProject.make();
  const { service, model, conversationId } = project;
  try {
    const asked = await project.ask("Improve the greeting in notes.md");
    assert.is(asked.end.phase, "completed");
    const { question } = asked.result;
    assert.is(question?.status, "pending");
    assert.is(question?.prompt, QUESTION.prompt);
    assert.is(question?.originRunId, asked.runId);
    assert.equal(
      question?.options.map(({ label, description }) => ({ label, description })),
      QUESTION.options,
    );
    assert.is(await project.notes, "Hello, reader.\n", "nothing is done before the answer");

    const answered = await service.answer(conversationId, { label: "Good evening" });
    assert.is(answered.status, "resolved");
    const runId = answered.question?.continuation?.runId ?? "";
    assert.is((await service.turnEnd(conversationId, runId)).phase, "completed");
    assert.is(await project.notes, "Good evening, reader.\n");

    const last = model.turns.at(-1)?.turn;
    assert.equal(last?.said.length, 2, "the same session: the first message is part of it");
    assert.match(last?.said[0] ?? "", /Improve the greeting/);
    assert.match(last?.last ?? "", /not an approval/);
    const receipt = (await service.read(conversationId, question?.requestId)).question;
    assert.equal(receipt?.continuation, { runId, state: "completed" });
    assert.is(project.begun.length, 2);
    await saveTranscript(project);
  } finally {
    await project.end();
  }
});

/** Where `OPENCODE_TRANSCRIPT` names a file, what happened goes there, for people. */
async function saveTranscript({ service, model, conversationId, notes }: OpencodeProject): Promise<void> {
  const file = process.env["OPENCODE_TRANSCRIPT"];
  if (file === undefined) return;
  const { events } = await service.operator.call("conversation_tail", { conversationId, limit: 500 });
  const lines = [
    "== what the service recorded",
    ...events.map(eventInWords),
    "",
    "== what the model was told and said",
    ...model.turns.flatMap(({ turn, reply }) => [
      turn.results.length === 0 ? `user: ${turn.last.trim()}` : `tool result: ${turn.results.at(-1)}`,
      reply.kind === "text" ? `model: ${reply.text}` : `model calls ${reply.name} ${JSON.stringify(reply.given)}`,
    ]),
    "",
    "== notes.md afterwards",
    await notes,
  ];
  await writeFile(file, lines.join("\n"));
}

function eventInWords(event: ConversationEvent): string {
  const known = ["schemaVersion", "conversationId", "cursor", "revision", "occurredAt", "type"];
  const rest = Object.entries(event).filter(([name]) => !known.includes(name));
  return `${event.occurredAt} r${event.revision} ${event.type} ${JSON.stringify(Object.fromEntries(rest))}`;
}

test.run();
