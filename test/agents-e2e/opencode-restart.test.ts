import { suite } from "uvu";
import * as assert from "uvu/assert";
import { OpencodeProject } from "./opencode.js";

const test = suite("opencode and a killed service");

test("[8] killed while opencode's question waits: it is cancelled, nothing starts again, and a new message asks anew in the same session", async () => {
  const project = await OpencodeProject.make();
  const { service, model, conversationId } = project;
  try {
    const { result } = await project.ask("Improve the greeting in notes.md");
    const { question: lost, incarnationId = "", revision = 0 } = result;
    await service.kill();
    await service.start();

    const receipt = (await service.read(conversationId, lost?.requestId)).question;
    assert.is(receipt?.status, "cancelled");
    assert.is(receipt?.reason, "service_restarted");
    const late = await service.operator.call("input_answer", {
      conversationId,
      incarnationId,
      requestId: lost?.requestId ?? "",
      expectedRevision: revision,
      answer: { kind: "choice", optionId: lost?.options[0]?.optionId ?? "" },
    });
    assert.is(late.status, "refused");
    assert.is(late.reason, "question_cancelled");
    const { activeRun, queuedRuns } = await service.show(conversationId);
    assert.equal({ activeRun, queuedRuns }, { activeRun: null, queuedRuns: 0 });

    const { result: anew } = await project.ask("Go on");
    assert.is(anew.question?.status, "pending");
    assert.is.not(anew.question?.requestId, lost?.requestId);
    const answered = await service.answer(conversationId, { label: "Good morning" });
    const runId = answered.question?.continuation?.runId ?? "";
    assert.is((await service.turnEnd(conversationId, runId)).phase, "completed");
    assert.is(await project.notes, "Good morning, reader.\n");
    assert.is(project.begun.length, 3);
    assert.is(model.turns.at(-1)?.turn.said.length, 3, "one session through it all");
  } finally {
    await project.end();
  }
});

test.run();
