import { readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { startServiceProcess } from "../service-process.js";
import { CHOICE, inWorld, TEXT, targetOf, type World } from "../world.js";

const text = (value: string) => ({ kind: "text", text: value }) as const;

test(
  "[8.1, 8.2, 8.3, 7 service_restarted] kill -9, then start: nothing pending, every receipt, no run ever again",
  inWorld(
    async (world) => {
      const pending = await world.pending();
      const cancelled = await world.pending();
      await world.operator.ok("input_cancel", cancelled.target);
      const submitted = await world.pending(TEXT);
      const answered = await world.operator.ok("input_answer", { ...submitted.target, answer: text("yes") });
      const continuation = answered.question!.continuation!.runId;
      const started = join(world.root, "started");
      const running = await world.conversation(["sh", "-c", `echo $$ >> ${started}; echo on; exec sleep 600`]);
      const first = await world.send(running.conversationId, "go");
      await world.event(running.conversationId, "message", ({ role }) => role === "agent");
      const waiting = await world.send(running.conversationId, "and then");

      await world.kill();
      await world.start();

      assert.is((await world.operator.ok("service_status", {})).counts.pendingQuestions, 0);
      const { question, receipts } = await world.show(pending.conversationId);
      assert.is(question, null);
      assert.is(receipts[pending.target.requestId]?.reason, "service_restarted");
      const late = await world.operator.ok("input_answer", {
        ...pending.target,
        answer: { kind: "choice", optionId: pending.optionIds[0]! },
      });
      assert.is(late.reason, "question_cancelled");
      assert.is(
        (await world.show(cancelled.conversationId)).receipts[cancelled.target.requestId]?.reason,
        "cancelled_by_owner",
      );
      const receipt = (await world.show(submitted.conversationId)).receipts[submitted.target.requestId];
      assert.equal(receipt, {
        ...answered.question,
        continuation: { runId: continuation, state: "failed", reasonCode: "service_restarted" },
      });
      for (const { runId } of [first, waiting]) {
        const end = await world.turnEnd(running.conversationId, runId);
        assert.equal([end.phase, end.reasonCode], ["failed", "service_restarted"]);
      }
      const agent = await world.agent(submitted.conversationId);
      assert.is(await agent.client.fault("run_claim", { runId: continuation }), "forbidden");
      // The next message starts the command a second time, and no more often.
      const next = await world.send(running.conversationId, "afresh");
      await world.event(running.conversationId, "message", ({ role, cursor, text: said }) => {
        return role === "agent" && said === "on" && cursor > "0000000000000006";
      });
      assert.is((await readFile(started, "utf8")).trim().split("\n").length, 2);
      await world.operator.ok("run_cancel", { runId: next.runId });
    },
    { service: "process" },
  ),
);

test(
  "[8] kill -9 leaves agents running; the next start ends them and what they started before it accepts a connection",
  inWorld(
    async (world) => {
      const { conversationId } = await world.conversation([
        "sh",
        "-c",
        "trap '' TERM; sleep 600 & echo \"$$ $!\"; while :; do sleep 600; done",
      ]);
      await world.send(conversationId, "go");
      const { text: pids } = await world.event(conversationId, "message", ({ role }) => role === "agent");
      const left = pids.split(" ").map(Number);
      await world.kill();
      assert.equal(await Promise.all(left.map(isAlive)), [true, true]);
      await world.start();
      assert.equal(await Promise.all(left.map(isAlive)), [false, false]);
    },
    { service: "process" },
  ),
);

test(
  "[8.3, 6.9] kill -9 in the middle of answers: each that was acknowledged is there with its run, and only once",
  inWorld(
    async (world) => {
      for (const acknowledged of [1, 7, 13]) {
        const asked = await Promise.all(Array.from({ length: 16 }, () => world.pending(TEXT)));
        const told = new Map<string, string>();
        await new Promise<void>((resolve) => {
          for (const { target } of asked) {
            void world.operator.ok("input_answer", { ...target, answer: text("mine") }).then(
              ({ question }) => {
                told.set(target.requestId, question!.continuation!.runId);
                if (told.size === acknowledged) resolve();
              },
              () => undefined, // killed before it was told
            );
          }
        });
        await world.kill();
        await world.start();
        for (const { conversationId, target } of asked) {
          const { question, receipts, activeRun, queuedRuns } = await world.show(conversationId);
          assert.equal([question, activeRun, queuedRuns], [null, null, 0]);
          const receipt = receipts[target.requestId];
          if (told.has(target.requestId)) assert.is(receipt?.status, "submitted");
          if (receipt?.status === "submitted") {
            assert.is(receipt.continuation?.runId, told.get(target.requestId) ?? receipt.continuation?.runId);
            assert.is(receipt.continuation?.state, "failed");
            assert.is(receipt.continuation?.reasonCode, "service_restarted");
          } else assert.is(receipt?.reason, "service_restarted");
          const resolved = world.events(conversationId).filter(({ type }) => type === "input_resolved");
          assert.is(resolved.length, 1);
        }
      }
    },
    { service: "process" },
  ),
);

test(
  "[9] a second serve on the same data directory says so and ends, and the first goes on",
  inWorld(
    async (world) => {
      const { conversationId, target } = await world.pending();
      const refused = await startServiceProcess(world.data).then(
        async (second) => {
          await second.stop();
          return "it started";
        },
        (error: unknown) => String(error),
      );
      assert.match(refused, /ended with [1-9]/);
      assert.match(refused, /in use|another|already/i);
      const shown = await world.show(conversationId);
      assert.is(shown.question?.requestId, target.requestId);
      assert.is((await world.operator.ok("input_cancel", target)).status, "resolved");
    },
    { service: "process" },
  ),
);

test(
  "[2] token files are for their owner alone, and hold tokens that are stored nowhere else",
  inWorld(
    async (world) => {
      for (const credential of ["operator", "captain"] as const) {
        const { mode } = await stat(join(world.data, `${credential}.token`));
        assert.is(mode & 0o777, 0o600);
        assert.is(Buffer.from(await world.token(credential), "base64url").length, 32);
      }
      await asksAndAnswers(world);
    },
    { service: "process" },
  ),
);

async function asksAndAnswers(world: World): Promise<void> {
  const { conversationId, agent } = await world.pending();
  const again = await agent.client.ok("request_user_input", { conversationId, ...CHOICE });
  assert.is((await world.operator.ok("input_cancel", targetOf(again))).status, "resolved");
}

/** A process that has ended may wait for a parent that never looks. */
async function isAlive(pid: number): Promise<boolean> {
  const text = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => "");
  const [state] = text.slice(text.lastIndexOf(")") + 2).split(" ");
  return text !== "" && state !== "Z" && state !== "X";
}

test.run();
