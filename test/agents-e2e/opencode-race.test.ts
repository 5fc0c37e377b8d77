import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { nodeConnector } from "../../clients/link/node.js";
import { openLink } from "../../clients/link.js";
import { OpencodeProject } from "./opencode.js";

const test = suite("opencode and its owner in two places");

test("[6.9] two clients answer opencode's question at once: one is stored, one continuation runs; [7 native_takeover] a takeover cancels the next", async () => {
  const project = await OpencodeProject.make();
  const { service, conversationId } = project;
  const { code } = await service.operator.call("device_pair_begin", { mode: "active" });
  const { token } = await service.operator.call("device_pair_complete", { code, name: "phone" });
  const phone = openLink({ url: service.url, token, connector: nodeConnector });
  try {
    const { result } = await project.ask("Improve the greeting in notes.md");
    const { question, incarnationId = "", revision = 0 } = result;
    const requestId = question?.requestId ?? "";
    const target = { conversationId, incarnationId, requestId, expectedRevision: revision };
    const [morning = "", evening = ""] = question?.options.map(({ optionId }) => optionId) ?? [];
    await phone.ready();
    const outcomes = await Promise.all([
      service.operator.call("input_answer", { ...target, answer: { kind: "choice", optionId: morning } }),
      phone.call("input_answer", { ...target, answer: { kind: "choice", optionId: evening } }),
    ]);
    assert.equal(outcomes.map(({ status, reason }) => reason ?? status).sort(), ["answer_conflict", "resolved"]);
    const receipt = (await service.read(conversationId, requestId)).question;
    for (const outcome of outcomes) assert.equal(outcome.question?.answer, receipt?.answer);
    const runId = receipt?.continuation?.runId ?? "";
    assert.is((await service.turnEnd(conversationId, runId)).phase, "completed");
    const chosen = receipt?.answer?.kind === "choice" && receipt.answer.optionId === morning ? "morning" : "evening";
    assert.is(await project.notes, `Good ${chosen}, reader.\n`);
    assert.is(project.begun.length, 2);

    const { result: next } = await project.ask("And once more");
    assert.is(next.question?.status, "pending");
    const before = project.begun.length;
    const { conversation } = await service.operator.call("native_claim", { conversationId, harness: "opencode" });
    assert.is(conversation.question, null);
    const late = await phone.call("input_answer", {
      ...target,
      requestId: next.question?.requestId ?? "",
      expectedRevision: next.revision ?? 0,
      answer: { kind: "choice", optionId: next.question?.options[0]?.optionId ?? "" },
    });
    assert.equal([late.status, late.reason], ["refused", "question_cancelled"]);
    assert.is(late.question?.reason, "native_takeover");
    await service.operator.call("native_release", { conversationId });
    const { activeRun, queuedRuns } = await service.show(conversationId);
    assert.equal({ activeRun, queuedRuns }, { activeRun: null, queuedRuns: 0 });
    assert.is(project.begun.length, before, "nothing was started by it");
    assert.is(await readFile(join(project.directory, "notes.md"), "utf8"), `Good ${chosen}, reader.\n`);
  } finally {
    phone.close();
    await project.end();
  }
});

test.run();
