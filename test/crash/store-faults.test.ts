import { execFileSync } from "node:child_process";
import { mkdir, open, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Client, Refused } from "./tools/client.js";
import { DidNotStart, ServiceProcess, until, withDirectory } from "./tools/process.js";

const test = suite("faults of the disk");

interface Asked {
  readonly conversationId: string;
  readonly requestId: string;
  readonly incarnationId: string;
  readonly expectedRevision: number;
}

async function ask(client: Client, workspaceId: string, known?: string): Promise<Asked> {
  const conversationId =
    known ??
    (await client.call("conversation_create", { scope: { kind: "workspace", workspaceId } })).conversation
      .conversationId;
  const result = await client.call("request_user_input", { conversationId, kind: "text", prompt: "Which one?" });
  return {
    conversationId,
    requestId: result.question?.requestId ?? "",
    incarnationId: result.incarnationId ?? "",
    expectedRevision: result.revision ?? 0,
  };
}

const give = (client: Client, asked: Asked, text: string) =>
  client.call("input_answer", { ...asked, answer: { kind: "text", text } });

async function refused(promise: Promise<unknown>): Promise<string> {
  return promise.then(
    () => "accepted",
    (error: unknown) => (error instanceof Refused ? error.code : String(error)),
  );
}

/** A small file system of its own; null where this machine lets nobody mount one. */
async function withTmpfs(megabytes: number, task: (directory: string) => Promise<void>): Promise<void> {
  await withDirectory(async (directory) => {
    const mounted = join(directory, "tmpfs");
    await mkdir(mounted);
    execFileSync("mount", ["-t", "tmpfs", "-o", `size=${megabytes}m,mode=0700`, "none", mounted]);
    try {
      await task(mounted);
    } finally {
      execFileSync("umount", ["-l", mounted]);
    }
  });
}

test("[8.2, 8.3] a full disk takes no answer, and once it is freed everything acknowledged is there and answers are taken", () =>
  withTmpfs(24, async (directory) => {
    const data = join(directory, "data");
    const service = await ServiceProcess.start({ data });
    const client = await Client.open(service.url, service.operatorToken);
    const acknowledged = new Map<string, Asked>();
    const first = await ask(client, "/tmp");
    await give(client, first, "kept");
    acknowledged.set("kept", first);
    const pending = await ask(client, "/tmp");

    const filler = await open(join(directory, "filler"), "w");
    await fill(filler, 64 * 1_024);
    await fill(filler, 256);
    let outcome = "accepted";
    for (let count = 0; count < 400 && outcome === "accepted"; count += 1) {
      const text = `filling ${count} ${"x".repeat(3_000)}`;
      const each = await ask(client, "/tmp").catch(() => undefined);
      if (each === undefined) break;
      outcome = await refused(give(client, each, text));
      if (outcome === "accepted") acknowledged.set(text.trim(), each);
      else assert.is(outcome, "storage_unavailable");
    }
    assert.is(await refused(give(client, pending, "not now")), "storage_unavailable");

    await filler.truncate(0);
    await filler.close();
    await until("the store is back", async () => (await refused(give(client, pending, "now"))) === "accepted");
    acknowledged.set("now", pending);
    await client.close();
    // Acknowledged after the fault: that is what a store that only went on would lose.
    await service.kill();
    const again = await ServiceProcess.start({ data });
    assert.equal(again.damage, []);
    const reader = await Client.open(again.url, again.operatorToken);
    for (const [text, { conversationId, requestId }] of acknowledged) {
      const { question } = await reader.call("input_get", { conversationId, requestId });
      assert.equal(question?.answer, { kind: "text", text });
    }
    await reader.close();
    await again.stop();
  }));

test("[8.4] an answer whose sync failed is read back: stored and not run, or pending as before", () =>
  withDirectory(async (directory) => {
    const data = join(directory, "data");
    const inject = ["trace=fdatasync", "inject=fdatasync:error=EIO:when=20+15"].flatMap((what) => ["-e", what]);
    const service = await ServiceProcess.start({ data, under: ["strace", "-f", "-qq", "-o", "/dev/null", ...inject] });
    const client = await Client.open(service.url, service.operatorToken);
    const stored: (readonly [Asked, string])[] = [];
    let failures = 0;
    for (let count = 0; count < 40; count += 1) {
      const asked = await ask(client, directory).catch(() => undefined);
      if (asked === undefined) {
        failures += 1;
        continue;
      }
      const text = `answer ${count}`;
      const outcome = await give(client, asked, text).catch((error: unknown) => error);
      if (outcome instanceof Refused) {
        failures += 1;
        assert.is(outcome.code, "storage_unavailable");
      }
      const { conversationId, requestId } = asked;
      let now = await client.call("input_get", { conversationId, requestId }).catch(() => undefined);
      await until("the store says what there is", async () => {
        now = await client.call("input_get", { conversationId, requestId }).catch(() => undefined);
        return now !== undefined;
      });
      if (outcome instanceof Refused && now?.question?.status === "submitted") {
        assert.is(now.question.continuation?.reasonCode, "acceptance_interrupted");
        assert.is(now.question.continuation?.state, "failed");
      }
      if (!(outcome instanceof Refused)) assert.is(now?.question?.status, "submitted");
      if (now?.question?.status === "submitted") stored.push([asked, text]);
    }
    assert.ok(failures > 0, "no sync failed");
    await client.close();
    await service.kill();
    const again = await ServiceProcess.start({ data });
    assert.equal(again.damage, []);
    const reader = await Client.open(again.url, again.operatorToken);
    for (const [{ conversationId, requestId }, text] of stored) {
      const { question } = await reader.call("input_get", { conversationId, requestId });
      assert.equal(question?.answer, { kind: "text", text });
    }
    await reader.close();
    await again.stop();
  }));

test("[8.2] a disk that became read-only takes nothing, and a service on one does not start", () =>
  withTmpfs(24, async (directory) => {
    const data = join(directory, "data");
    const service = await ServiceProcess.start({ data });
    const client = await Client.open(service.url, service.operatorToken);
    const asked = await ask(client, "/tmp");
    // What is open for writing keeps a file system from becoming read-only; a store that has to begin a file meets it.
    await service.stop();
    execFileSync("mount", ["-o", "remount,ro", directory]);
    const failed = await ServiceProcess.start({ data }).catch((error: unknown) => error);
    execFileSync("mount", ["-o", "remount,rw", directory]);
    assert.ok(failed instanceof DidNotStart, "it started on a read-only disk");
    assert.match(failed.stderr, /cannot be (written|used|made)|EROFS|UNWRITABLE/);
    const again = await ServiceProcess.start({ data });
    const reader = await Client.open(again.url, again.operatorToken);
    const { conversationId, requestId } = asked;
    const { question } = await reader.call("input_get", { conversationId, requestId });
    assert.is(question?.reason, "service_restarted");
    await reader.close();
    await again.stop();
  }));

test("[8.3, 8.5] a cut log or a flipped byte is named at the start, what it touched is refused, and the rest works", () =>
  withDirectory(async (directory) => {
    for (const harm of ["cut", "flip"] as const) {
      const data = join(directory, harm);
      const service = await ServiceProcess.start({ data });
      const client = await Client.open(service.url, service.operatorToken);
      const asked: Asked[] = [];
      for (let count = 0; count < 12; count += 1) asked.push(await ask(client, directory));
      for (const each of asked) await give(client, each, "yes");
      await client.close();
      await service.kill();
      const database = join(data, "store", "db");
      const log = join(database, (await readdir(database)).find((name) => name.endsWith(".log")) ?? "");
      const bytes = await readFile(log);
      const place = Math.floor(bytes.length * 0.8);
      bytes.writeUInt8(bytes.readUInt8(place) ^ 0x10, place);
      await writeFile(log, harm === "cut" ? bytes.subarray(0, place) : bytes);

      const again = await ServiceProcess.start({ data });
      assert.ok(again.damage.length > 0, `${harm}: nothing was noticed`);
      const reader = await Client.open(again.url, again.operatorToken);
      const outcomes = await Promise.all(
        asked.map(({ conversationId, requestId }) =>
          reader.call("input_get", { conversationId, requestId }).then(
            ({ question }) => question?.status ?? "gone",
            (error: unknown) => (error instanceof Refused ? error.code : String(error)),
          ),
        ),
      );
      assert.ok(outcomes.includes("question_state_unavailable"), `${harm}: ${outcomes}`);
      assert.ok(outcomes.includes("submitted"), `${harm}: ${outcomes}`);
      // A lost answer is refused or there: it is never shown as if it had not been given.
      for (const outcome of outcomes) {
        assert.ok(outcome === "submitted" || outcome === "question_state_unavailable", `${harm}: ${outcomes}`);
      }
      const fresh = await ask(reader, directory);
      assert.is((await give(reader, fresh, "yes")).status, "resolved");
      await reader.close();
      await again.stop();
    }
  }));

test("a store that has lost its CURRENT file is refused with what to do, and nothing of it is removed", () =>
  withDirectory(async (directory) => {
    const data = join(directory, "data");
    const service = await ServiceProcess.start({ data });
    const client = await Client.open(service.url, service.operatorToken);
    await ask(client, directory);
    await client.close();
    await service.stop();
    const database = join(data, "store", "db");
    await rm(join(database, "CURRENT"));
    const before = (await readdir(database)).sort();
    const failed = await ServiceProcess.start({ data }).catch((error: unknown) => error);
    assert.ok(failed instanceof DidNotStart);
    assert.match(failed.stderr, /restore a backup/);
    assert.equal((await readdir(database)).sort(), before);
  }));

/** Writes until nothing more fits. */
async function fill(file: { write(bytes: Uint8Array): Promise<unknown> }, step: number): Promise<void> {
  for (;;) {
    try {
      await file.write(Buffer.alloc(step, 1));
    } catch {
      return;
    }
  }
}

test.run();
