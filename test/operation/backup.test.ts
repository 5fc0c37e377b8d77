import { mkdir, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { runBackup } from "../../clients/cli/local/backup.js";
import { runRestore } from "../../clients/cli/local/restore.js";
import { Client } from "../crash/tools/client.js";
import { ServiceProcess, withDirectory } from "../crash/tools/process.js";

const test = suite("backup and restore");

async function asked(client: Client, directory: string): Promise<{ conversationId: string; requestId: string }> {
  const { conversation } = await client.call("conversation_create", {
    scope: { kind: "workspace", workspaceId: directory },
    runner: { kind: "attached" },
  });
  const { conversationId } = conversation;
  await client.call("conversation_send", { conversationId, message: "go" });
  const { question } = await client.call("request_user_input", { conversationId, kind: "text", prompt: "Which one?" });
  return { conversationId, requestId: question?.requestId ?? "" };
}

test("a backup of a running service, restored, has every receipt; what was pending is cancelled at its start", () =>
  withDirectory(async (directory) => {
    const service = await ServiceProcess.start({ data: join(directory, "one") });
    const client = await Client.open(service.url, service.operatorToken);
    const answered = await asked(client, directory);
    const { revision = 0, incarnationId = "" } = await client.call("input_get", answered);
    const target = { ...answered, incarnationId, expectedRevision: revision };
    const receipt = await client.call("input_answer", { ...target, answer: { kind: "text", text: "the blue one" } });
    const pending = await asked(client, directory);

    const file = join(directory, "kept.backup");
    const connection = { url: service.url, token: service.operatorToken };
    const summary = await runBackup(file, connection);
    assert.ok(summary.entries > 5);
    assert.is((await stat(file)).mode & 0o777, 0o600);
    assert.not.ok((await readFile(file, "utf8")).includes(service.operatorToken), "a token is in the backup");
    assert.match(await runBackup(file, connection).then(String, String), /is there already/);
    await client.close();
    await service.stop();

    assert.equal(await runRestore(file, join(directory, "two")), summary);
    const again = await ServiceProcess.start({ data: join(directory, "two") });
    assert.equal(again.damage, []);
    const reader = await Client.open(again.url, again.operatorToken);
    const restored = await reader.call("input_get", answered);
    assert.equal(restored.question?.answer, receipt.question?.answer);
    assert.is(restored.question?.continuation?.runId, receipt.question?.continuation?.runId);
    assert.is((await reader.call("input_get", pending)).question?.reason, "service_restarted");
    await reader.close();
    await again.stop();
  }));

test("a restore takes an empty directory, and a whole backup, only", () =>
  withDirectory(async (directory) => {
    const service = await ServiceProcess.start({ data: join(directory, "one") });
    const file = join(directory, "kept.backup");
    await runBackup(file, { url: service.url, token: service.operatorToken });
    await service.stop();
    assert.match(await runRestore(file, join(directory, "one")).then(String, String), /of a service|There is a store/);

    const text = await readFile(file, "utf8");
    const lines = text.split("\n");
    const broken: readonly (readonly [string, string])[] = [
      ["cut within a line", text.slice(0, text.length >> 1)],
      ["without its end", `${lines.slice(0, -2).join("\n")}\n`],
      ["a line less", [...lines.slice(0, 2), ...lines.slice(3)].join("\n")],
      ["another value", text.replace(/"value":"..../, '"value":"AAAA')],
      ["something behind it", `${text}${lines[1]}\n`],
      ["no backup", "{}\n"],
      ["empty", ""],
    ];
    for (const [what, content] of broken) {
      const bad = join(directory, `${what}.backup`);
      await writeFile(bad, content);
      const data = join(directory, `of ${what}`);
      assert.match(await runRestore(bad, data).then(String, String), /backup/, what);
      assert.is(await stat(data).catch(() => null), null, `${what}: something was made`);
    }
  }));

test("only an operator gets a backup, and a refusal leaves no file", () =>
  withDirectory(async (directory) => {
    const service = await ServiceProcess.start({ data: join(directory, "data") });
    await mkdir(join(directory, "out"));
    for (const token of [service.token("captain"), "x".repeat(43)]) {
      const file = join(directory, "out", "kept.backup");
      const told = await runBackup(file, { url: service.url, token }).then(String, String);
      assert.match(told, /only an operator/);
      assert.is(await stat(file).catch(() => null), null);
      assert.is(await stat(`${file}.part`).catch(() => null), null);
    }
    await service.stop();
  }));

test.run();
