import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Peer, type PeerConnection } from "../link/peer.js";
import { INCARNATION, OPTION, OTHER_OPTION, question, REQUEST, snapshot, submitted } from "../link/samples.js";
import { emptyDirectory, type Ran, type RunOptions, runCli, startProcess } from "./run.js";

const test = suite<{ peer: Peer }>("command line", { peer: undefined as never });
test.before.each(async (context) => {
  context.peer = await Peer.start();
});
test.after.each(({ peer }) => peer.stop());

const asOperator = (peer: Peer) => ({ CLANKIE_URL: peer.url, CLANKIE_TOKEN: "secret" });

/** Runs the binary while the test plays the service. */
async function served(
  peer: Peer,
  args: readonly string[],
  play: (service: PeerConnection) => Promise<void>,
  options: RunOptions = {},
): Promise<Ran> {
  const ended = runCli(args, { env: asOperator(peer), ...options });
  await play(await peer.connection());
  return ended;
}

/** The service gives this result to the only request. */
const reply = (result: unknown) => async (service: PeerConnection) => {
  service.reply((await service.request()).id, result);
};

const fault = (code: string, number: number) => async (service: PeerConnection) => {
  service.fault((await service.request()).id, code, number);
};

const TARGET = ["c1", REQUEST, "--incarnation", INCARNATION, "--revision", "3"];
const ANSWER = ["conversations", "answer", ...TARGET];

// ---- usage

test("[9] what cannot be meant is a usage error, before anything is connected", async () => {
  for (const args of [
    [],
    ["conversatoins"],
    ["conversations"],
    ["conversations", "lst"],
    ["status", "--jason"],
    ["status", "extra"],
    ["conversations", "show"],
    ["conversations", "reset", "c1", "--revision", "1x"],
    ["conversations", "reset", "c1", "--revision", "-1"],
    ["conversations", "reset", "c1", "--revision", "4294967296"],
    ["conversations", "reset", "c1"],
    [...ANSWER],
    [...ANSWER, "--option", OPTION, "--text", "x"],
    [...ANSWER, "--option", OPTION.toUpperCase()],
    [...ANSWER, "--text", "  "],
    [...ANSWER, "--text", "x".repeat(4_001)],
    [...ANSWER, "--text", "\u001b[2J"],
    ["conversations", "answer", "c1", "not-a-uuid", "--incarnation", INCARNATION, "--revision", "3", "--text", "x"],
    ["conversations", "send", "c1"],
    ["conversations", "send", "c1", "text", "--stdin"],
    ["conversations", "native", "c1"],
    ["conversations", "questions", "--request", REQUEST],
    ["conversations", "questions", "--status", "open"],
    ["conversations", "create", "--kind", "castle"],
    ["ask", "c1", "--prompt", "p", "--option", "only one"],
    ["ask", "c1", "--prompt", "p", "--option", "a", "--option", " a "],
    ["credentials", "issue", "agent"],
    ["credentials", "issue", "operator"],
    ["devices", "mode", "d1", "writable"],
  ]) {
    const ran = await runCli(args, { env: { CLANKIE_URL: "http://127.0.0.1:9", CLANKIE_TOKEN: "secret" } });
    assert.is(ran.code, 2, `${args.join(" ")}: ${ran.stderr}`);
    assert.is(ran.stdout, "", args.join(" "));
    assert.ok(ran.stderr.length > 0);
  }
});

test("[9] a mistyped command gets a suggestion, and with --json an error document", async () => {
  assert.match((await runCli(["conversations", "anwser"])).stderr, /Did you mean answer\?/);
  const ran = await runCli(["status", "--jsom", "--json"]);
  assert.is(ran.code, 2);
  assert.is(JSON.parse(ran.stdout).error.code, "usage");
});

test("[9] every command explains itself with its exit statuses", async () => {
  const commands = [
    ["status"],
    ...["create", "list", "show", "send", "reset", "tail", "questions", "answer", "cancel-question", "native"].map(
      (name) => ["conversations", name],
    ),
    ["ask"],
    ["runs", "cancel"],
    ...["pair", "list", "mode", "revoke"].map((name) => ["devices", name]),
    ...["list", "rotate", "revoke", "issue"].map((name) => ["credentials", name]),
    ...["add", "list", "remove", "membership"].map((name) => ["projects", name]),
  ];
  for (const command of commands) {
    const ran = await runCli([...command, "--help"]);
    assert.is(ran.code, 0);
    for (const words of ["Usage:", "--url", "--token-file", "--data", "--json", "8 not authenticated"])
      assert.ok(ran.stdout.includes(words), `${command.join(" ")}: ${words}`);
  }
});

// ---- where the service is

test("[9] without a service the message says how to start one", async () => {
  const data = emptyDirectory();
  const ran = await runCli(["status", "--data", data]);
  assert.is(ran.code, 7);
  assert.match(ran.stderr, /clankie serve/);
  const nobody = await runCli(["status", "--url", "http://127.0.0.1:9"], { env: { CLANKIE_TOKEN: "secret" } });
  assert.is(nobody.code, 7);
  assert.match(nobody.stderr, /ECONNREFUSED/);
});

test("[9] url and token come from what serve left in the data directory", async ({ peer }) => {
  for (const place of ["flag", "CLANKIE_DATA", "XDG_STATE_HOME", "HOME"]) {
    const root = emptyDirectory();
    const data = { XDG_STATE_HOME: join(root, "clankie"), HOME: join(root, ".local/state/clankie") }[place] ?? root;
    mkdirSync(data, { recursive: true });
    writeFileSync(join(data, "service.json"), JSON.stringify({ url: peer.url, pid: 1 }));
    writeFileSync(join(data, "operator.token"), "from-the-file\n");
    const ran = await served(
      peer,
      ["conversations", "list", "--json", ...(place === "flag" ? ["--data", root] : [])],
      async (service) => {
        assert.is(service.headers.authorization, "Bearer from-the-file");
        await reply({ conversations: [] })(service);
      },
      { env: place === "flag" ? {} : { [place]: root } },
    );
    assert.equal([ran.code, JSON.parse(ran.stdout)], [0, { conversations: [] }], place);
  }
});

test("[9] flags come before the environment, and the environment before the data directory", async ({ peer }) => {
  const data = emptyDirectory();
  writeFileSync(join(data, "operator.token"), "of-the-directory");
  writeFileSync(join(data, "token"), "of-the-flag");
  const env = { CLANKIE_URL: peer.url, CLANKIE_TOKEN: "of-the-environment", CLANKIE_DATA: data };
  const flagged = await served(
    peer,
    ["conversations", "list", "--token-file", join(data, "token")],
    async (service) => {
      assert.is(service.headers.authorization, "Bearer of-the-flag");
      await reply({ conversations: [] })(service);
    },
    { env },
  );
  assert.is(flagged.code, 0);
  await served(
    peer,
    ["conversations", "list"],
    async (service) => {
      assert.is(service.headers.authorization, "Bearer of-the-environment");
      await reply({ conversations: [] })(service);
    },
    { env },
  );
});

test("[9] no token, an unreadable one and a refused one are exit status 8", async ({ peer }) => {
  const env = { CLANKIE_URL: peer.url, CLANKIE_DATA: emptyDirectory() };
  assert.is((await runCli(["status"], { env })).code, 8);
  assert.is((await runCli(["status", "--token-file", "/nowhere/token"], { env })).code, 8);
  peer.refuse = 401;
  const refused = await runCli(["status", "--json"], { env: asOperator(peer) });
  assert.is(refused.code, 8);
  assert.is(JSON.parse(refused.stdout).error.code, "unauthenticated");
  peer.refuse = 403;
  assert.is((await runCli(["status"], { env: asOperator(peer) })).code, 8);
});

test("[5] never a token in a URL", async () => {
  assert.is(
    (await runCli(["status", "--url", "http://x:secret@127.0.0.1:9"], { env: { CLANKIE_TOKEN: "s" } })).code,
    2,
  );
});

// ---- answering

const result = (over: object = {}) => ({
  status: "ready",
  conversationId: "c1",
  incarnationId: INCARNATION,
  revision: 3,
  safeCursor: "c0003",
  ...over,
});

test("[9] an answer that is stored is exit status 0, and goes out exactly as it was given", async ({ peer }) => {
  const ran = await served(peer, [...ANSWER, "--option", OPTION], async (service) => {
    const request = await service.request();
    assert.is(request.method, "input_answer");
    assert.equal(request.params, {
      schemaVersion: 1,
      conversationId: "c1",
      requestId: REQUEST,
      incarnationId: INCARNATION,
      expectedRevision: 3,
      answer: { kind: "choice", optionId: OPTION },
    });
    service.reply(request.id, result({ status: "resolved", revision: 4, question: submitted() }));
  });
  assert.is(ran.code, 0, ran.stderr);
  assert.match(ran.stdout, /^Stored\.\n {2}Answer:\n {4}one\n {2}Continuation: accepted, run run-2\n$/);
});

test("[9] each outcome of an answer has its exit status, and --json prints the result as it came", async ({ peer }) => {
  const receipt = submitted({ answer: { kind: "choice", optionId: OTHER_OPTION } });
  for (const [status, over] of [
    [0, { status: "resolved", question: submitted() }],
    [4, { status: "revision_conflict", revision: 9, question: question() }],
    [3, { status: "refused", reason: "stale_request" }],
    [3, { status: "refused", reason: "unknown_request" }],
    [3, { status: "refused", reason: "answer_conflict", question: receipt }],
    [3, { status: "refused", reason: "question_cancelled" }],
    [3, { status: "refused", reason: "unknown_option", question: question() }],
    [3, { status: "refused", reason: "text_not_allowed", question: question() }],
    [8, { status: "refused", reason: "not_permitted" }],
    [8, { status: "refused", reason: "device_read_only" }],
    [8, { status: "refused", reason: "device_revoked" }],
    [8, { status: "refused", reason: "credential_expired" }],
  ] as const) {
    const ran = await served(peer, [...ANSWER, "--option", OPTION, "--json"], reply(result(over)));
    assert.is(ran.code, status, JSON.stringify(over));
    assert.equal(JSON.parse(ran.stdout), result(over));
  }
});

test("[9] a conflict says to read the question again, with the command for it", async ({ peer }) => {
  const ran = await served(
    peer,
    [...ANSWER, "--option", OPTION, "--url", peer.url],
    reply(result({ status: "revision_conflict", revision: 9 })),
  );
  assert.is(ran.code, 4);
  assert.is(ran.stdout, "");
  assert.ok(ran.stderr.includes(`clankie conversations questions c1 --url ${peer.url}`), ran.stderr);
});

test("[9] each fault has its exit status", async ({ peer }) => {
  for (const [status, code, number] of [
    [2, "invalid_params", -32602],
    [8, "unauthenticated", -32000],
    [8, "forbidden", -32001],
    [6, "unknown_conversation", -32002],
    [3, "ineligible_conversation", -32003],
    [3, "question_pending", -32004],
    [1, "question_state_unavailable", -32005],
    [1, "storage_unavailable", -32006],
    [3, "queue_full", -32007],
    [3, "rate_limited", -32008],
    [7, "shutting_down", -32010],
  ] as const) {
    const ran = await served(peer, ["conversations", "send", "c1", "hello", "--json"], fault(code, number));
    assert.is(ran.code, status, code);
    assert.equal(JSON.parse(ran.stdout), { error: { code, message: `it is ${code}`, data: { code } } });
    assert.match(ran.stderr, /^clankie: /);
  }
});

test("[9] an answer from standard input: three lines are one answer, one line feed at the end is dropped", async ({
  peer,
}) => {
  const ran = await served(
    peer,
    [...ANSWER, "--stdin"],
    async (service) => {
      const request = await service.request();
      assert.equal(request.params["answer"], { kind: "text", text: "one\n/question cancel\n--option x\n" });
      service.reply(
        request.id,
        result({
          status: "resolved",
          question: submitted({ answer: { kind: "text", text: "one\n/question cancel\n--option x" } }),
        }),
      );
    },
    { input: "one\r\n/question cancel\n--option x\n\n" },
  );
  assert.is(ran.code, 0, ran.stderr);
});

test("[9] standard input that is no UTF-8, or too much, is a usage error", async () => {
  const env = { CLANKIE_URL: "http://127.0.0.1:9", CLANKIE_TOKEN: "secret" };
  for (const input of [Buffer.from([0x61, 0xff]), Buffer.alloc(65_537, 0x61), Buffer.from([0xed, 0xa0, 0x80]), ""]) {
    const ran = await runCli([...ANSWER, "--stdin"], { env, input });
    assert.is(ran.code, 2, ran.stderr);
  }
});

test("[9] a text that looks like a flag stays data", async ({ peer }) => {
  for (const text of ["--json", "--url", "/question cancel", "-- x"]) {
    const ran = await served(peer, [...ANSWER, "--text", text], async (service) => {
      const request = await service.request();
      assert.equal(request.params["answer"], { kind: "text", text });
      service.reply(
        request.id,
        result({ status: "resolved", question: submitted({ answer: { kind: "text", text } }) }),
      );
    });
    assert.is(ran.code, 0, ran.stderr);
  }
});

test("[9] the binary itself: standard input, standard output, the exit status", async ({ peer }) => {
  const { ended } = startProcess([...ANSWER, "--stdin", "--json"], {
    env: asOperator(peer),
    input: "one\ntwo\nthree\n",
  });
  const service = await peer.connection();
  const request = await service.request();
  assert.equal(request.params["answer"], { kind: "text", text: "one\ntwo\nthree" });
  service.reply(request.id, result({ status: "refused", reason: "text_not_allowed", question: question() }));
  const ran = await ended;
  assert.is(ran.code, 3);
  assert.is(JSON.parse(ran.stdout).reason, "text_not_allowed");
  assert.match(ran.stderr, /text_not_allowed/);
});

// ---- uncertain outcomes

const cutAfterRequest = async (peer: Peer, service: PeerConnection): Promise<PeerConnection> => {
  await service.request();
  service.cut();
  return peer.connection();
};

test("[8.10] the connection is lost after the answer was sent: the receipt is read, nothing is sent again", async ({
  peer,
}) => {
  const receipt = result({ status: "resolved", question: submitted() });
  const ran = await served(peer, [...ANSWER, "--option", OPTION, "--json"], async (service) => {
    const again = await cutAfterRequest(peer, service);
    const read = await again.request();
    assert.equal([read.method, read.params["requestId"]], ["input_get", REQUEST]);
    again.reply(read.id, receipt);
    await new Promise((resolve) => again.socket.once("close", resolve));
    assert.equal(again.unread, []);
  });
  assert.is(ran.code, 0, ran.stderr);
  assert.equal(JSON.parse(ran.stdout), receipt);
});

test("[8.10] a receipt of another answer is exit status 3, a question that still waits is 5 with the command to look", async ({
  peer,
}) => {
  for (const [status, found] of [
    [3, submitted({ answer: { kind: "choice", optionId: OTHER_OPTION } })],
    [3, question({ status: "cancelled", reason: "expired", resolvedAt: "2026-01-02T03:05:05.000Z" })],
    [5, question()],
  ] as const) {
    const ran = await served(peer, [...ANSWER, "--option", OPTION], async (service) => {
      const again = await cutAfterRequest(peer, service);
      again.reply((await again.request()).id, result({ question: found }));
    });
    assert.is(ran.code, status, ran.stderr);
    if (status === 5)
      assert.ok(ran.stderr.includes(`clankie conversations questions c1 --request ${REQUEST}`), ran.stderr);
  }
});

test("[8.10] a cancellation whose reply was lost is read back likewise", async ({ peer }) => {
  const cancelled = question({
    status: "cancelled",
    reason: "cancelled_by_owner",
    resolvedAt: "2026-01-02T03:05:05.000Z",
  });
  const ran = await served(peer, ["conversations", "cancel-question", ...TARGET], async (service) => {
    const again = await cutAfterRequest(peer, service);
    again.reply((await again.request()).id, result({ status: "resolved", question: cancelled }));
  });
  assert.is(ran.code, 0, ran.stderr);
  assert.is(ran.stdout, "Cancelled.\n");
});

test("[8.10] where the token is refused on the way back, the outcome stays uncertain", async ({ peer }) => {
  const ended = runCli([...ANSWER, "--option", OPTION, "--json"], { env: asOperator(peer) });
  const service = await peer.connection();
  await service.request();
  peer.refuse = 401;
  service.cut();
  const ran = await ended;
  assert.is(ran.code, 5, ran.stderr);
  assert.is(JSON.parse(ran.stdout).error.code, "outcome_uncertain");
});

test("a message whose reply was lost is uncertain; a list is merely unreachable", async ({ peer }) => {
  const cut = async (service: PeerConnection) => {
    await service.request();
    service.cut();
  };
  assert.is((await served(peer, ["conversations", "send", "c1", "x"], cut)).code, 5);
  assert.is((await served(peer, ["conversations", "list"], cut)).code, 7);
});

// ---- reading

test("[9] a question is shown with the exact command for each option", async ({ peer }) => {
  const ran = await served(peer, ["conversations", "questions", "c1"], reply(result({ question: question() })));
  assert.is(ran.code, 0);
  const target = `c1 ${REQUEST} --incarnation ${INCARNATION} --revision 3`;
  for (const line of [
    "Which first?",
    `  1) one  ${OPTION}`,
    `     clankie conversations answer ${target} --option ${OPTION}`,
    `  2) two  ${OTHER_OPTION}`,
    "     the second",
    `     clankie conversations answer ${target} --option ${OTHER_OPTION}`,
    `     clankie conversations answer ${target} --stdin`,
    `     clankie conversations cancel-question ${target}`,
  ])
    assert.ok(ran.stdout.split("\n").includes(line), `${line}\n---\n${ran.stdout}`);
});

test("[9] a request that is not known is exit status 6 when it is read", async ({ peer }) => {
  const ran = await served(
    peer,
    ["conversations", "questions", "c1", "--request", REQUEST],
    reply(result({ status: "refused", reason: "unknown_request" })),
  );
  assert.is(ran.code, 6);
});

test("[9] without a conversation the questions of all are listed, over every page", async ({ peer }) => {
  const ran = await served(peer, ["conversations", "questions", "--json"], async (service) => {
    const first = await service.request();
    assert.equal([first.method, first.params], ["input_list", { schemaVersion: 1, status: "pending" }]);
    service.reply(first.id, { questions: [result({ question: question() })], next: "n1" });
    const second = await service.request();
    assert.is(second.params["after"], "n1");
    service.reply(second.id, { questions: [] });
  });
  assert.is(ran.code, 0);
  assert.equal(JSON.parse(ran.stdout), { questions: [result({ question: question() })] });
});

test("[3] text from the service cannot act on the terminal, not even as JSON", async ({ peer }) => {
  const bad = snapshot({ title: "\u009b2J\u202egnp" });
  const human = await served(
    peer,
    ["conversations", "show", "c1"],
    reply({ conversation: { ...bad, title: "a\u202egnp" } }),
  );
  assert.match(human.stdout, /a\\u\{202e\}gnp/);
  const json = await served(
    peer,
    ["conversations", "show", "c1", "--json"],
    reply({ conversation: { ...bad, title: "a\u202egnp" } }),
  );
  assert.not.match(json.stdout, /\u202e/);
  assert.is(JSON.parse(json.stdout).conversation.title, "a\u202egnp");
});

const event = (cursor: string, over: object = {}) => ({
  schemaVersion: 1,
  conversationId: "c1",
  cursor,
  revision: 3,
  occurredAt: "2026-01-02T03:04:05.000Z",
  type: "message",
  role: "agent",
  text: `text ${cursor}`,
  streaming: false,
  ...over,
});

test("[9] a tail prints what is retained; with --follow one JSON document a line, also what comes later", async ({
  peer,
}) => {
  const page = { events: [event("c1"), event("c2")], next: "c2", retainedFrom: "c0", gap: false };
  // a page may be cut short by its size: only an empty one is the end
  const both = async (service: PeerConnection) => {
    await reply(page)(service);
    await reply({ ...page, events: [] })(service);
  };
  const once = await served(peer, ["conversations", "tail", "c1", "--json"], both);
  assert.equal(JSON.parse(once.stdout), page);
  const { child, ended } = startProcess(["conversations", "tail", "c1", "--follow", "--json"], {
    env: asOperator(peer),
  });
  const service = await peer.connection();
  await both(service);
  const subscribe = await service.request();
  assert.equal(subscribe.params, { schemaVersion: 1, conversationId: "c1", events: true, after: "c2" });
  service.reply(subscribe.id, { snapshot: snapshot(), version: 1 });
  service.notify("conversation_event", { event: event("c3") });
  service.notify("conversation_gap", { conversationId: "c1", retainedFrom: "c9" });
  await new Promise<void>((resolve) => {
    let seen = "";
    child.stdout.on("data", (text: string) => {
      seen += text;
      if (seen.includes('"gap"')) resolve();
    });
  });
  // nobody reads any more
  child.stdout.destroy();
  service.notify("conversation_event", { event: event("c91", { text: "x".repeat(10_000) }) });
  service.notify("conversation_event", { event: event("c92", { text: "x".repeat(10_000) }) });
  const ran = await ended;
  assert.is(ran.code, 0, ran.stderr);
  const lines = ran.stdout
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as Record<string, unknown>);
  assert.equal(
    lines.map((line) => line["cursor"] ?? line),
    ["c1", "c2", "c3", { gap: true, retainedFrom: "c9" }],
  );
});

// ---- the others

test("[9] create takes the directory it stands in, and everything after -- is the agent's command", async ({
  peer,
}) => {
  const cwd = emptyDirectory();
  const ran = await served(
    peer,
    ["conversations", "create", "--title", "T", "--", "node", "agent.js", "--json", "--title", "x"],
    async (service) => {
      const request = await service.request();
      assert.equal(request.params, {
        schemaVersion: 1,
        scope: { kind: "workspace", workspaceId: cwd },
        title: "T",
        runner: { kind: "command", command: ["node", "agent.js", "--json", "--title", "x"] },
      });
      service.reply(request.id, { conversation: snapshot() });
    },
    { env: asOperator(peer), cwd },
  );
  assert.is(ran.code, 0, ran.stderr);
});

test("[9] ask: options are labels with descriptions, and without any it is a text question", async ({ peer }) => {
  const choice = await served(
    peer,
    [
      "ask",
      "c1",
      "--prompt",
      "P",
      "--option",
      "a=the first = one",
      "--option",
      "b",
      "--allow-text",
      "--expires-in",
      "60",
      "--json",
    ],
    async (service) => {
      const request = await service.request();
      assert.equal(request.params, {
        schemaVersion: 1,
        conversationId: "c1",
        kind: "choice",
        prompt: "P",
        options: [{ label: "a", description: "the first = one" }, { label: "b" }],
        allowFreeform: true,
        expiresInSeconds: 60,
      });
      service.reply(request.id, result({ question: question() }));
    },
  );
  assert.is(choice.code, 0, choice.stderr);
  const text = await served(peer, ["ask", "c1", "--prompt", "P"], async (service) => {
    const request = await service.request();
    assert.equal(request.params, { schemaVersion: 1, conversationId: "c1", kind: "text", prompt: "P" });
    service.reply(request.id, result({ question: question({ kind: "text", options: [] }) }));
  });
  assert.is(text.code, 0, text.stderr);
});

test("[9] a revision conflict of send and of reset is exit status 4", async ({ peer }) => {
  const conflict = { status: "revision_conflict", revision: 9 };
  for (const args of [
    ["send", "c1", "x", "--revision", "3"],
    ["reset", "c1", "--revision", "3"],
  ]) {
    const ran = await served(peer, ["conversations", ...args, "--json"], reply(conflict));
    assert.equal([ran.code, JSON.parse(ran.stdout)], [4, conflict]);
  }
});

test("[9] a token that was issued is alone on standard output", async ({ peer }) => {
  const ran = await served(
    peer,
    ["credentials", "issue", "captain"],
    reply({ credentialId: "x", kind: "captain", token: "t0" }),
  );
  assert.equal([ran.code, ran.stdout], [0, "t0\n"]);
});

test("[9] pairing shows code, expiry and a QR code", async ({ peer }) => {
  const pairing = { code: "ABCD-EFGH", expiresAt: "2026-01-02T03:04:05.000Z", url: "http://127.0.0.1:7420/" };
  const ran = await served(peer, ["devices", "pair", "--read-only"], async (service) => {
    const request = await service.request();
    assert.is(request.params["mode"], "read-only");
    service.reply(request.id, pairing);
  });
  for (const words of [pairing.code, pairing.expiresAt, pairing.url, "█"]) assert.ok(ran.stdout.includes(words), words);
});

test.run();
