import { existsSync } from "node:fs";
import { join } from "node:path";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Client, Lost, Refused } from "../crash/tools/client.js";
import { ServiceProcess, until, withDirectory } from "../crash/tools/process.js";

const test = suite("a stop");

for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"] as const) {
  test(`${signal} ends runs and their processes, says goodbye, and leaves nothing behind`, () =>
    withDirectory(async (directory) => {
      const service = await ServiceProcess.start({ data: join(directory, "data") });
      const client = await Client.open(service.url, service.operatorToken);
      const { conversation } = await client.call("conversation_create", {
        scope: { kind: "workspace", workspaceId: directory },
        runner: { kind: "command", command: ["sh", "-c", "echo $$ > pid; trap '' TERM; sleep 60 & wait; sleep 60"] },
      });
      const { conversationId } = conversation;
      await client.call("conversation_send", { conversationId, message: "go" });
      await until("the agent runs", () => existsSync(join(directory, "pid")));
      const began = performance.now();
      assert.is(await service.stop(signal), 0);
      assert.ok(performance.now() - began < 15_000);
      assert.is(await client.closed, 1001);
      assert.not.ok(existsSync(join(directory, "data", "service.json")));

      const again = await ServiceProcess.start({ data: join(directory, "data") });
      assert.equal(again.damage, []);
      const reader = await Client.open(again.url, again.operatorToken);
      const { events } = await reader.call("conversation_tail", { conversationId });
      const end = events.find((event) => event.type === "turn" && event.phase === "failed");
      assert.is(end?.type === "turn" ? end.reasonCode : undefined, "service_restarted");
      await reader.close();
      await again.stop();
    }));
}

test("every request that was let in before a stop is answered, and what comes later is told that it stops", () =>
  withDirectory(async (directory) => {
    const service = await ServiceProcess.start({ data: join(directory, "data") });
    const client = await Client.open(service.url, service.operatorToken);
    const ids: string[] = [];
    const sent = Array.from({ length: 500 }, () =>
      client.call("conversation_create", { scope: { kind: "global" } }).then(
        ({ conversation }) => ids.push(conversation.conversationId),
        (error: unknown) => error,
      ),
    );
    await sent[0];
    const stopped = service.stop();
    const outcomes = await Promise.all(sent);
    await stopped;
    for (const outcome of outcomes) {
      if (typeof outcome === "number" || outcome instanceof Lost) continue;
      assert.is(outcome instanceof Refused ? outcome.code : outcome, "shutting_down");
    }
    const again = await ServiceProcess.start({ data: join(directory, "data") });
    const reader = await Client.open(again.url, again.operatorToken);
    for (const conversationId of ids) await reader.call("conversation_show", { conversationId });
    await reader.close();
    await again.stop();
  }));

test.run();
