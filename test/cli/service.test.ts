import { mkdirSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { nodeConnector } from "../../clients/link/node.js";
import { openLink } from "../../clients/link.js";
import type { QuestionResult } from "../../protocol/question.js";
import type { ConversationSnapshot } from "../../protocol/snapshot.js";
import { realEnvironment } from "../../server/environment.js";
import { type RunningService, serve } from "../../server/main.js";
import { BIN, emptyDirectory, type Ran, type RunOptions, runCli, startProcess } from "./run.js";

/** A real service, and the command line as the operator, the captain, an agent and a device of it. */
class World {
  readonly data = emptyDirectory();
  /** Milliseconds that the service's clock is ahead. */
  ahead = 0;
  #service: RunningService | undefined;

  async start(): Promise<void> {
    const environment = { ...realEnvironment, now: () => realEnvironment.now() + this.ahead };
    this.#service = await serve(
      { dataDirectory: this.data, host: "127.0.0.1", port: 0, logLevel: "silent" },
      environment,
    );
  }

  async stop(): Promise<void> {
    await this.#service?.stop();
    this.#service = undefined;
  }

  get url(): string {
    return this.#service?.url ?? "";
  }

  /** Runs a command as the operator, or with this token. */
  run(args: readonly string[], token?: string, options: RunOptions = {}): Promise<Ran> {
    const env = { CLANKIE_DATA: this.data, ...(token !== undefined && { CLANKIE_TOKEN: token }) };
    return runCli(args, { env, ...options });
  }

  /** The JSON document a command prints; the command has to end with this status. */
  async json<T>(args: readonly string[], status = 0, token?: string): Promise<T> {
    const ran = await this.run([...args, "--json"], token);
    assert.is(ran.code, status, `${args.join(" ")}: ${ran.stderr}`);
    return JSON.parse(ran.stdout) as T;
  }

  captain(): readonly string[] {
    return ["--token-file", join(this.data, "captain.token")];
  }

  async conversation(directory = emptyDirectory(), ...command: string[]): Promise<string> {
    const agent = command.length === 0 ? [] : ["--", ...command];
    const ran = await this.run(["conversations", "create", "--directory", directory, "--json", ...agent]);
    assert.is(ran.code, 0, ran.stderr);
    return (JSON.parse(ran.stdout) as { conversation: ConversationSnapshot }).conversation.conversationId;
  }

  /** An agent's token and its credential's id. */
  async agent(conversationId: string): Promise<{ token: string; credentialId: string }> {
    return this.json(["credentials", "issue", "agent", "--conversation", conversationId]);
  }

  /** A conversation with a waiting question. */
  async asked(...options: string[]): Promise<Asked> {
    const directory = emptyDirectory();
    const id = await this.conversation(directory);
    const { token, credentialId } = await this.agent(id);
    const choices = options.length > 0 ? options : ["--option", "tests", "--option", "docs"];
    const result = await this.json<QuestionResult>(["ask", id, "--prompt", "Which first?", ...choices], 0, token);
    return { id, directory, token, credentialId, result };
  }
}

interface Asked {
  readonly id: string;
  readonly directory: string;
  readonly token: string;
  readonly credentialId: string;
  readonly result: QuestionResult;
}

const target = ({ id, result }: Asked): readonly string[] => [
  id,
  result.question!.requestId,
  "--incarnation",
  result.incarnationId!,
  "--revision",
  String(result.revision),
];
const answer = (asked: Asked, ...words: string[]): readonly string[] => [
  "conversations",
  "answer",
  ...target(asked),
  ...words,
];
const option = (asked: Asked, at: number): readonly string[] =>
  answer(asked, "--option", asked.result.question!.options[at]!.optionId);
const cancel = (asked: Asked): readonly string[] => ["conversations", "cancel-question", ...target(asked)];
const read = ({ id, result }: Asked): readonly string[] => [
  "conversations",
  "questions",
  id,
  "--request",
  result.question!.requestId,
];

const test = suite<{ world: World }>("command line and service", { world: undefined as never });
test.before.each(async (context) => {
  context.world = new World();
  await context.world.start();
});
test.after.each(({ world }) => world.stop());

test("[9] ask, look, answer, look again: by the commands that are printed", async ({ world }) => {
  const asked = await world.asked();
  const shown = await world.run(["conversations", "questions", asked.id]);
  const line = shown.stdout.split("\n").find((text) => text.includes("--option"))!;
  const words = line.trim().split(" ");
  assert.is(words[0], "clankie");
  const stored = await world.run(words.slice(1));
  assert.is(stored.code, 0, stored.stderr);
  assert.match(stored.stdout, /Stored\.\n {2}Answer:\n {4}tests\n {2}Continuation: accepted/);
  const again = await world.json<QuestionResult>(words.slice(1));
  const receipt = await world.json<QuestionResult>(read(asked));
  assert.equal(again.question, receipt.question);
  assert.is(receipt.question?.resolvedBy?.kind, "operator");
});

test("[9] an answer of three lines from standard input is stored as one", async ({ world }) => {
  const asked = await world.asked("--option", "a", "--option", "b", "--allow-text");
  const { ended } = startProcess(answer(asked, "--stdin"), {
    env: { CLANKIE_DATA: world.data },
    input: "one\r\ntwo\nthree\n",
  });
  assert.is((await ended).code, 0);
  const receipt = await world.json<QuestionResult>(read(asked));
  assert.equal(receipt.question?.answer, { kind: "text", text: "one\ntwo\nthree" });
});

test("[6.1] captain, agent and read-only device may not answer: exit status 8", async ({ world }) => {
  const asked = await world.asked();
  const refused = async (args: readonly string[], token?: string) =>
    (await world.json<QuestionResult>(args, 8, token)).reason;
  assert.is(await refused([...option(asked, 0), ...world.captain()]), "not_permitted");
  assert.is(await refused(option(asked, 0), asked.token), "not_permitted");
  assert.is(await refused([...cancel(asked), ...world.captain()]), "not_permitted");
  const device = await paired(world);
  await world.json(["devices", "mode", device.deviceId, "read-only"]);
  assert.is(await refused(option(asked, 0), device.token), "device_read_only");
  await world.json(["devices", "mode", device.deviceId, "active"]);
  assert.is((await world.run(option(asked, 0), device.token)).code, 0);
  await world.json(["devices", "revoke", device.deviceId]);
  assert.is((await world.run(option(asked, 0), device.token)).code, 8);
});

async function paired(world: World): Promise<{ deviceId: string; token: string }> {
  const { code } = await world.json<{ code: string }>(["devices", "pair"]);
  const link = openLink({ url: world.url, connector: nodeConnector });
  await link.ready();
  const device = await link.call("device_pair_complete", { code, name: "phone" });
  link.close();
  return device;
}

test("[6.2, 6.3, 6.4, 6.5, 6.7, 6.8] each refusal of an answer is seen, with its exit status", async ({ world }) => {
  const asked = await world.asked();
  const reason = async (args: readonly string[], status = 3) => (await world.json<QuestionResult>(args, status)).reason;
  const [id, request, ...rest] = target(asked);
  const other = "00000000-0000-4000-8000-000000000000";
  assert.is(await reason(["conversations", "answer", id!, other, ...rest, "--text", "x"]), "unknown_request");
  const stale = ["--incarnation", other, "--revision", "1", "--text", "x"];
  assert.is(await reason(["conversations", "answer", id!, request!, ...stale]), "stale_request");
  assert.is(await reason(answer(asked, "--text", "x")), "text_not_allowed");
  assert.is(await reason(answer(asked, "--option", other)), "unknown_option");
  const late = [...target(asked).slice(0, -1), "9"];
  const conflict = await world.json<QuestionResult>(["conversations", "answer", ...late, "--text", "x"], 4);
  assert.equal([conflict.status, conflict.revision], ["revision_conflict", asked.result.revision]);
  assert.is((await world.run(option(asked, 0))).code, 0);
  assert.is(await reason(option(asked, 1)), "answer_conflict");
  assert.is(await reason(cancel(asked)), "already_submitted");
  const second = await world.asked();
  assert.is((await world.run(cancel(second))).stdout, "Cancelled.\n");
  assert.is((await world.run(cancel(second))).code, 0);
  assert.is(await reason(option(second, 0)), "question_cancelled");
  assert.is((await world.run(["conversations", "questions", id!, "--request", other])).code, 6);
});

/** Why the question is cancelled by now. */
async function cancelledBecause(world: World, asked: Asked): Promise<unknown> {
  const { question } = await world.json<QuestionResult>(read(asked));
  assert.is(question?.status, "cancelled");
  return question?.reason;
}

test("[7 cancelled_by_owner, 7 conversation_reset, 7 native_takeover, 7 owner_revoked] as the commands cause it", async ({
  world,
}) => {
  const byOwner = await world.asked();
  await world.json(cancel(byOwner));
  assert.is(await cancelledBecause(world, byOwner), "cancelled_by_owner");
  const native = await world.asked();
  await world.json(["conversations", "native", native.id, "--claim", "terminal", ...world.captain()]);
  assert.is(await cancelledBecause(world, native), "native_takeover");
  const again = await world.run(["ask", native.id, "--prompt", "p"], native.token);
  assert.is(again.code, 3);
  assert.match(again.stderr, /native_driver/);
  await world.json(["conversations", "native", native.id, "--release"]);
  const revoked = await world.asked();
  await world.json(["credentials", "revoke", revoked.credentialId]);
  assert.is(await cancelledBecause(world, revoked), "owner_revoked");
  const reset = await world.asked();
  const late = await world.json(["conversations", "reset", reset.id, "--revision", "0"], 4);
  assert.equal(late, { status: "revision_conflict", revision: 1 });
  await world.json(["conversations", "reset", reset.id, "--revision", "1"]);
  const stale = await world.json<QuestionResult>(option(reset, 0), 3);
  assert.is(stale.reason, "stale_request");
});

test("[7 workspace_replaced, 7 expired, 7 owner_context_lost, 7 service_restarted] as they are noticed", async ({
  world,
}) => {
  const replaced = await world.asked();
  renameSync(replaced.directory, `${replaced.directory}.old`);
  mkdirSync(replaced.directory);
  assert.is((await world.json<QuestionResult>(option(replaced, 0), 3)).reason, "question_cancelled");
  assert.is(await cancelledBecause(world, replaced), "workspace_replaced");
  const expired = await world.asked("--expires-in", "60");
  world.ahead += 61_000;
  assert.is(await cancelledBecause(world, expired), "expired");
  const rotated = await world.asked();
  await world.json(["credentials", "rotate", "operator"]);
  assert.is(await cancelledBecause(world, rotated), "owner_context_lost");
  const restarted = await world.asked();
  await world.stop();
  assert.is((await world.run(["status"])).code, 7);
  await world.start();
  assert.is(await cancelledBecause(world, restarted), "service_restarted");
});

test("[7 run_cancelled] a run that asks is cancelled by its id", async ({ world }) => {
  const directory = emptyDirectory();
  const agent = join(directory, "agent.sh");
  writeFileSync(
    agent,
    `"${process.execPath}" "${BIN}" ask "$CLANKIE_CONVERSATION" --prompt p || exit 1\necho asked\nsleep 60\n`,
  );
  const id = await world.conversation(directory, "/bin/sh", agent);
  const { child, ended } = startProcess(["conversations", "tail", id, "--follow", "--json"], {
    env: { CLANKIE_DATA: world.data },
  });
  const sawTheEnd = printed(child.stdout, '"input_resolved"');
  const sent = await world.json<{ runId: string }>(["conversations", "send", id, "go"]);
  const result = await waitFor(async () => {
    const found = await world.json<QuestionResult>(["conversations", "questions", id]);
    return found.question === undefined ? undefined : found;
  });
  assert.is(result.question?.originRunId, sent.runId);
  await world.json(["runs", "cancel", sent.runId]);
  const asked = { id, directory, token: "", credentialId: "", result };
  assert.is(await cancelledBecause(world, asked), "run_cancelled");
  await sawTheEnd;
  // a view that lives on a token ends with it
  await world.json(["credentials", "rotate", "operator"]);
  const followed = await ended;
  assert.is(followed.code, 8, followed.stderr);
  const types = followed.stdout
    .trim()
    .split("\n")
    .map((line) => /"type":"(\w+)"/.exec(line)?.[1]);
  for (const type of ["message", "turn", "input_requested", "input_resolved"]) assert.ok(types.includes(type), type);
});

/** Resolves once the stream has said these words. */
function printed(stream: Readable, words: string): Promise<void> {
  return new Promise((resolve) => {
    let text = "";
    stream.on("data", (chunk: string) => {
      text += chunk;
      if (text.includes(words)) resolve();
    });
  });
}

/** Asks again until there is something; the service's own time decides when. */
async function waitFor<T>(look: () => Promise<T | undefined>): Promise<T> {
  for (;;) {
    const found = await look();
    if (found !== undefined) return found;
  }
}

test("[2] a captain manages conversations and nothing else", async ({ world }) => {
  const id = await world.conversation();
  assert.is((await world.run(["conversations", "send", id, "hello", ...world.captain()])).code, 0);
  assert.is((await world.run(["conversations", "list", ...world.captain()])).code, 0);
  for (const args of [
    ["credentials", "list"],
    ["devices", "list"],
    ["conversations", "reset", id, "--revision", "1"],
  ])
    assert.is((await world.run([...args, ...world.captain()])).code, 8, args.join(" "));
});

test("[9] what is not there is exit status 6", async ({ world }) => {
  for (const args of [
    ["conversations", "show", "nope"],
    ["conversations", "send", "nope", "x"],
    ["conversations", "questions", "nope"],
    ["runs", "cancel", "nope"],
    ["devices", "revoke", "nope"],
    ["credentials", "revoke", "nope"],
    ["credentials", "rotate", "nope"],
    ["projects", "remove", "nope"],
  ])
    assert.is((await world.run(args)).code, 6, args.join(" "));
});

test("[10] projects are added, listed, found and removed", async ({ world }) => {
  const directory = emptyDirectory();
  mkdirSync(join(directory, "inner"));
  const { project } = await world.json<{ project: { projectId: string } }>([
    "projects",
    "add",
    directory,
    "--name",
    "site",
  ]);
  const fact = await world.json<{ project: string }>(["projects", "membership", join(directory, "inner")]);
  assert.is(fact.project, project.projectId);
  assert.match((await world.run(["projects", "list"])).stdout, /site/);
  await world.json(["projects", "remove", project.projectId]);
  assert.is((await world.run(["projects", "list"])).stdout, "No project is registered.\n");
});

test("[9] every list and card can be read by people", async ({ world }) => {
  const asked = await world.asked();
  for (const args of [
    ["status"],
    ["conversations", "list"],
    ["conversations", "show", asked.id],
    ["conversations", "tail", asked.id],
    ["conversations", "questions"],
    ["credentials", "list"],
    ["devices", "list"],
  ]) {
    const ran = await world.run(args);
    assert.is(ran.code, 0, ran.stderr);
    assert.not.match(ran.stdout, /undefined|\[object|NaN/, args.join(" "));
    assert.ok(ran.stdout.trim().length > 0);
  }
});

test("[9] questions CONVERSATION --status prints a list whatever the status", async ({ world }) => {
  const asked = await world.asked();
  const listed = (status: string) =>
    world.json<{ questions: readonly QuestionResult[] }>(["conversations", "questions", asked.id, "--status", status]);
  assert.equal(
    (await listed("pending")).questions.map(({ question }) => question?.requestId),
    [asked.result.question?.requestId],
  );
  assert.equal((await listed("submitted")).questions, []);
  await world.json(cancel(asked));
  assert.equal((await listed("pending")).questions, []);
  assert.equal(
    (await listed("cancelled")).questions.map(({ question }) => question?.reason),
    ["cancelled_by_owner"],
  );
});

test.run();
