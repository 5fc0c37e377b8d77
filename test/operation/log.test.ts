import { spawn } from "node:child_process";
import { join } from "node:path";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { LogOutput } from "../../server/log-output.js";
import { AgentStderr } from "../../server/runs/stderr.js";
import { Client } from "../crash/tools/client.js";
import { ServiceProcess, until, withDirectory } from "../crash/tools/process.js";

const test = suite("logs");

const token = "Zm9vYmFyYmF6cXV1eGZvb2JhcmJhenF1dXhmb29iYXI";

function logged(secrets: readonly string[], chunks: readonly string[]): readonly string[] {
  const lines: string[] = [];
  const stderr = new AgentStderr(secrets, (line) => lines.push(line));
  for (const chunk of chunks) stderr.push(chunk);
  stderr.end();
  return lines;
}

test("a token and the answer are masked in an agent's stderr, however it is cut and quoted", () => {
  const answer = 'the "blue"\none';
  const text = `a ${token} b\nTOKEN=${token}\n{"text":"the \\"blue\\""}\n+ echo the "blue"\n`;
  for (const chunks of [[text], [...text]]) {
    assert.equal(logged([token, answer], chunks), [
      "a [masked] b",
      "TOKEN=[masked]",
      '{"text":"[masked]"}',
      "+ echo [masked]",
    ]);
  }
  assert.equal(logged([], [`other ${token}`]), ["other [token]"]);
  const [cut = ""] = logged([], [`${"x".repeat(1_980)} ${token} y`]);
  assert.not.ok(cut.includes(token.slice(0, 10)), "a part of a token across the cut was logged");
});

test("an agent that floods stderr fills no log, and it is said how much is missing", () => {
  const lines = logged(
    [],
    Array.from({ length: 5_000 }, () => `${"x".repeat(999)}\n`),
  );
  assert.ok(lines.join("").length < 100_000);
  assert.match(lines.at(-1) ?? "", /\d+ characters of stderr were left out/);
  const long = logged(
    [],
    Array.from({ length: 5_000 }, () => "x".repeat(1_000)),
  );
  assert.ok(long.join("").length < 5_000);
  assert.equal(logged([], ["\u001b]0;title\u0007red\u001b[31m\n\n"]), ["red"]);
});

test("lines that nobody reads are dropped beyond a bound, and then it is said how many", () => {
  const written: string[] = [];
  let finish = (): void => undefined;
  const output = new LogOutput(-1, 1_000, (_fd, bytes, done) => {
    finish = () => {
      finish = () => undefined;
      written.push(Buffer.from(bytes).toString());
      done(null, bytes.length);
    };
  });
  for (let count = 0; count < 100; count += 1) output.write(`${"x".repeat(99)}\n`);
  for (let count = 0; count < 12; count += 1) finish();
  output.write("after\n");
  for (let count = 0; count < 3; count += 1) finish();
  const text = written.join("");
  assert.is(text.match(/x{99}\n/g)?.length, 10);
  assert.match(text, /"dropped":90.*\nafter\n$/s);
});

test("[10] a run's log has its ids, its agent's stderr without token or answer, and nothing that was said", () =>
  withDirectory(async (directory) => {
    const service = await ServiceProcess.start({ data: join(directory, "data"), logLevel: "trace" });
    const client = await Client.open(service.url, service.operatorToken);
    const script = 'cat >&2; echo >&2; echo "$CLANKIE_TOKEN" >&2; echo said by the agent; sleep 0.5';
    const { conversation } = await client.call("conversation_create", {
      scope: { kind: "workspace", workspaceId: directory },
      runner: { kind: "command", command: ["sh", "-c", script] },
    });
    const { conversationId } = conversation;
    await client.call("conversation_send", { conversationId, message: "secret message" });
    const ready = await client.call("request_user_input", { conversationId, kind: "text", prompt: "secret prompt" });
    const { requestId = "", incarnationId = "" } = ready.question ?? {};
    const result = await client.call("input_answer", {
      conversationId,
      requestId,
      incarnationId,
      expectedRevision: ready.revision ?? 0,
      answer: { kind: "text", text: "secret answer" },
    });
    const runId = result.question?.continuation?.runId;
    await until("the continuation has ended", () =>
      service.log.some((line) => line["runId"] === runId && line["phase"] === "completed"),
    );
    await client.close();
    await service.stop();
    const has = (fields: object): boolean =>
      service.log.some((line) => Object.entries(fields).every(([name, value]) => line[name] === value));
    assert.ok(has({ conversationId, requestId, msg: "question asked" }));
    assert.ok(has({ conversationId, requestId, runId, outcome: "submitted" }));
    assert.ok(has({ conversationId, runId, msg: "agent stderr", text: "[masked]" }), "stderr is not in the log");
    for (const secret of [service.operatorToken, service.token("captain"), "secret answer", "said by the agent"]) {
      assert.not.ok(service.stderr.includes(secret), `${secret} is in the log`);
    }
    // What a message says is an agent's to repeat; the service's own lines never have it.
    const own = service.log.filter(({ msg }) => msg !== "agent stderr");
    assert.not.match(JSON.stringify(own), /secret/);
    assert.not.match(service.stderr, /[\w-]{43}/);
  }));

test("a service whose stderr nobody reads goes on, and stops when it is asked to", () =>
  withDirectory(async (directory) => {
    const service = await ServiceProcess.start({ data: join(directory, "data"), logLevel: "trace" });
    service.child.stderr?.pause();
    const client = await Client.open(service.url, service.operatorToken);
    // More than a pipe and everything before it holds.
    for (let count = 0; count < 2_000; count += 1) {
      await client.call("credential_issue", { kind: "captain" });
    }
    await client.call("service_status", {});
    await client.close();
    const exited = new Promise((resolve) => service.child.once("exit", resolve));
    service.child.kill("SIGTERM");
    assert.is(await exited, 0);
    service.child.stderr?.resume();
    await service.ended;
  }));

test("a full disk under the log ends nothing", () =>
  withDirectory(async (directory) => {
    const script = `
      import { openLog } from ${JSON.stringify(new URL("../../server/log.js", import.meta.url).href)};
      const log = openLog("info");
      for (let count = 0; count < 100; count += 1) log.info({ count }, "x".repeat(1000));
      setTimeout(() => process.exit(7), 300);`;
    const child = spawn("sh", ["-c", 'exec "$0" --input-type=module -e "$1" 2>/dev/full', process.execPath, script], {
      cwd: directory,
      stdio: "ignore",
    });
    assert.is(await new Promise((resolve) => child.once("exit", resolve)), 7);
  }));

test.run();
