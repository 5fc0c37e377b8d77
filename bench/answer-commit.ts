import { randomUUID } from "node:crypto";
import { BEGINNING } from "../machines/context.js";
import { decide, openConversation } from "../machines/decide.js";
import type { Caller } from "../machines/facts.js";
import { commitOf } from "../server/conversations/record.js";
import type { Commit } from "../server/store/port.js";

/** The commit that an accepted answer makes: what the raw batches write has exactly these bytes. */
export function answerCommit(): Commit {
  const at = new Date().toISOString();
  const caller: Caller = { stamp: { kind: "operator", id: "operator", generation: 1 }, standing: "good" };
  const facts = { workspaceIsSame: true, owner: "good", asker: "good", turn: "good" } as const;
  const incarnationId = randomUUID();
  const requestId = randomUUID();
  const optionIds = [randomUUID(), randomUUID()];
  const opened = openConversation({
    conversationId: randomUUID(),
    title: "bench 0",
    scope: { kind: "workspace", workspaceId: "/tmp/clankie-bench-000000/workspace" },
    binding: { path: "/tmp/clankie-bench-000000/workspace", device: "65024", inode: "1234567" },
    runner: { kind: "attached" },
    ...BEGINNING,
    version: 1,
    serviceId: randomUUID(),
    incarnationId,
  });
  const made = commitOf({ previous: null, next: opened, effects: [], fence: [], retainEvents: 1_000 });
  const asked = decide(opened, {
    type: "question.ask",
    at,
    caller,
    draft: {
      kind: "choice",
      prompt: "Which of these should I describe first?",
      options: [{ label: "README.md" }, { label: "LICENSE", description: "the short one" }],
    },
    requestId,
    optionIds,
    facts,
  });
  const open = commitOf({
    previous: made.reached,
    next: asked.next,
    effects: asked.effects,
    fence: [],
    retainEvents: 1_000,
  });
  const answered = decide(asked.next, {
    type: "question.answer",
    at,
    caller,
    incarnationId,
    requestId,
    expectedRevision: asked.next.context.revision,
    facts,
    answer: { kind: "choice", optionId: optionIds[0] ?? "" },
    runId: randomUUID(),
  });
  return commitOf({
    previous: open.reached,
    next: answered.next,
    effects: answered.effects,
    fence: [],
    retainEvents: 1_000,
  }).commit;
}
