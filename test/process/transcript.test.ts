import { spawn } from "node:child_process";
import { mkdir, rename } from "node:fs/promises";
import { test } from "uvu";
import * as assert from "uvu/assert";
import type { QuestionResult } from "../../protocol/question.js";
import type { CancelReason } from "../../protocol/refusals.js";
import { BINARY } from "../service-process.js";
import { inWorld, type World } from "../world.js";

/** Two terminals on one machine: what was typed into them, with the tokens of an operator, a captain and an agent. */
interface Ran {
  readonly status: number | null;
  readonly document: unknown;
  readonly stderr: string;
}

async function clankie(world: World, args: readonly string[], token?: string): Promise<Ran> {
  const child = spawn(process.execPath, [BINARY, ...args, "--json"], {
    env: {
      PATH: process.env["PATH"] ?? "",
      HOME: world.root,
      CLANKIE_DATA: world.data,
      ...(token !== undefined && { CLANKIE_TOKEN: token }),
    },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let stdout = "";
  let stderr = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    stdout += text;
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    stderr += text;
  });
  const status = await new Promise<number | null>((resolve) => child.once("close", resolve));
  return { status, document: stdout === "" ? undefined : (JSON.parse(stdout) as unknown), stderr };
}

/** A conversation with its agent's token and the question that agent asked with `clankie ask`. */
async function asked(world: World, more: readonly string[] = []) {
  const { conversationId } = await world.conversation();
  const { credentialId, token } = await world.operator.ok("credential_issue", { kind: "agent", conversationId });
  const options = ["--option", "one", "--option", "two=the second"];
  const ask = await clankie(world, ["ask", conversationId, "--prompt", "Which?", ...options, ...more], token);
  assert.is(ask.status, 0, ask.stderr);
  const { question, incarnationId, revision } = ask.document as QuestionResult;
  const { requestId } = question!;
  return {
    conversationId,
    credentialId,
    token,
    requestId,
    incarnationId: incarnationId!,
    revision: revision!,
    answer: (option: number) => [
      ...["conversations", "answer", conversationId, requestId, "--incarnation", incarnationId!],
      ...["--revision", String(revision), "--option", question!.options[option]!.optionId],
    ],
    cancel: [
      ...["conversations", "cancel-question", conversationId, requestId],
      ...["--incarnation", incarnationId!, "--revision", String(revision)],
    ],
  };
}

type Asked = Awaited<ReturnType<typeof asked>>;

test(
  "[6.1, 6.4, 6.7, 6.9] two terminals: the agent asks, the captain may not answer, the owner answers once",
  inWorld(
    async (world) => {
      const question = await asked(world);
      const captain = await clankie(world, question.answer(0), await world.token("captain"));
      assert.is(captain.status, 8, captain.stderr);
      const agent = await clankie(world, question.answer(0), question.token);
      assert.is(agent.status, 8, agent.stderr);
      const late = question.answer(0).map((each) => (each === String(question.revision) ? "99" : each));
      assert.is((await clankie(world, late)).status, 4);
      const first = await clankie(world, question.answer(0));
      assert.is(first.status, 0, first.stderr);
      assert.is((first.document as QuestionResult).status, "resolved");
      const again = await clankie(world, question.answer(0));
      assert.is(again.status, 0, again.stderr);
      assert.equal((again.document as QuestionResult).question, (first.document as QuestionResult).question);
      assert.is((await clankie(world, question.answer(1))).status, 3);
      assert.is((await clankie(world, question.cancel)).status, 3);
    },
    { service: "process" },
  ),
);

const CAUSES: readonly {
  readonly reason: CancelReason;
  readonly ask?: readonly string[];
  readonly cause: (world: World, question: Asked) => Promise<unknown>;
}[] = [
  { reason: "cancelled_by_owner", cause: (world, { cancel }) => clankie(world, cancel) },
  {
    reason: "conversation_reset",
    cause: (world, { conversationId, revision }) =>
      clankie(world, ["conversations", "reset", conversationId, "--revision", String(revision)]),
  },
  {
    reason: "native_takeover",
    cause: async (world, { conversationId }) =>
      clankie(world, ["conversations", "native", conversationId, "--claim", "terminal"], await world.token("captain")),
  },
  {
    reason: "owner_revoked",
    cause: (world, { credentialId }) => clankie(world, ["credentials", "revoke", credentialId]),
  },
  {
    reason: "workspace_replaced",
    cause: async (world, { conversationId }) => {
      const { scope } = await world.show(conversationId);
      await rename(scope.workspaceId!, `${scope.workspaceId}-moved`);
      await mkdir(scope.workspaceId!);
    },
  },
  {
    reason: "expired",
    ask: ["--expires-in", "1"],
    // It was asked before now: a second from now it has expired.
    cause: () => new Promise((resolve) => setTimeout(resolve, 1_000)),
  },
  { reason: "owner_context_lost", cause: (world) => clankie(world, ["credentials", "rotate", "operator"]) },
  {
    reason: "service_restarted",
    cause: async (world) => {
      await world.kill();
      await world.start();
    },
  },
];

test(
  "[7 cancelled_by_owner, 7 conversation_reset, 7 native_takeover, 7 owner_revoked, 7 workspace_replaced, 7 expired, 7 owner_context_lost, 7 service_restarted] each was seen on the real binary",
  inWorld(
    async (world) => {
      for (const { reason, ask, cause } of CAUSES) {
        const question = await asked(world, ask);
        await cause(world, question);
        const { conversationId, requestId } = question;
        const read = await clankie(world, ["conversations", "questions", conversationId, "--request", requestId]);
        assert.is(read.status, 0, read.stderr);
        const receipt = (read.document as QuestionResult).question;
        assert.is(receipt?.status, "cancelled", reason);
        assert.is(receipt?.reason, reason);
        if (reason === "owner_context_lost") await world.reconnect();
      }
    },
    { service: "process" },
  ),
);

test(
  "[7 run_cancelled, 7 owner_revoked] on the real binary: the run that asked, and the device that started it",
  inWorld(
    async (world) => {
      const command = [
        "sh",
        "-c",
        `"$0" "$1" ask "$CLANKIE_CONVERSATION" --prompt "Go on?" --allow-text --json; exec sleep 600`,
      ];
      const agent = [...command, process.execPath, BINARY];
      const phone = await world.device("active");
      for (const reason of ["run_cancelled", "owner_revoked"] as const) {
        const { conversationId } = await world.conversation(agent);
        const { runId } = await world.send(conversationId, "go", phone.client);
        const { requestId } = await world.event(conversationId, "input_requested");
        const cancelled = await clankie(
          world,
          reason === "run_cancelled" ? ["runs", "cancel", runId] : ["devices", "revoke", phone.deviceId],
        );
        assert.is(cancelled.status, 0, cancelled.stderr);
        assert.is((await world.show(conversationId)).receipts[requestId]?.reason, reason);
      }
    },
    { service: "process" },
  ),
);

test.run();
