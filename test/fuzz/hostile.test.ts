import { execFileSync, spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { lstat, mkdir, symlink, writeFile } from "node:fs/promises";
import { connect, type Socket } from "node:net";
import { join } from "node:path";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Client, Refused } from "../crash/tools/client.js";
import { DidNotStart, ServiceProcess, until, withDirectory } from "../crash/tools/process.js";

const test = suite("hostile clients");

/** A service, the operator's own client that has to go on working, and what is left of the service afterwards. */
async function besieged(
  attack: (service: ServiceProcess, operator: Client, directory: string) => Promise<void>,
  growthMiB = 200,
): Promise<void> {
  await withDirectory(async (directory) => {
    const service = await ServiceProcess.start({ data: join(directory, "data"), logLevel: "warn" });
    try {
      const operator = await Client.open(service.url, service.operatorToken);
      await operator.call("service_status", {});
      const before = service.residentBytes;
      await attack(service, operator, directory);
      await operator.call("service_status", {});
      const grown = (service.residentBytes - before) / 1_048_576;
      assert.ok(grown < growthMiB, `the service grew by ${grown.toFixed(0)} MiB`);
      assert.equal(
        service.log.filter(({ level }) => level === "error"),
        [],
      );
      await operator.close();
      assert.is(await service.stop(), 0);
    } finally {
      await service.kill();
    }
  });
}

/** A connection that says these bytes and then nothing; what it is told. */
function raw(url: string, bytes: string | Uint8Array): { socket: Socket; told: () => string; ended: Promise<void> } {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  let told = "";
  socket.on("error", () => undefined);
  socket.on("data", (chunk) => {
    told = (told + chunk.toString("latin1")).slice(-65_536);
  });
  socket.write(bytes);
  return { socket, told: () => told, ended: new Promise((resolve) => socket.once("close", () => resolve())) };
}

const handshake = (token?: string): string =>
  [
    "GET /v1/socket HTTP/1.1",
    "Host: 127.0.0.1",
    "Upgrade: websocket",
    "Connection: Upgrade",
    `Sec-WebSocket-Key: ${randomBytes(16).toString("base64")}`,
    "Sec-WebSocket-Version: 13",
    "Sec-WebSocket-Protocol: clankie.v1",
    "Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits",
    ...(token === undefined ? [] : [`Authorization: Bearer ${token}`]),
    "\r\n",
  ].join("\r\n");

/** A masked frame as RFC 6455 has it. */
function frame(
  opcode: number,
  payload: Uint8Array,
  { fin = true, rsv1 = false, length = payload.length } = {},
): Buffer {
  const head = Buffer.alloc(14);
  head.writeUInt8((fin ? 0x80 : 0) | (rsv1 ? 0x40 : 0) | opcode, 0);
  head.writeUInt8(0x80 | 127, 1);
  head.writeBigUInt64BE(BigInt(length), 2);
  return Buffer.concat([head, payload]);
}

test("thousands of half-open connections and slow upgrades keep nobody out", () =>
  besieged(async (service, operator) => {
    const half: Socket[] = [];
    // In portions, as the system takes only so many at a time that were not accepted yet.
    while (half.length < 3_000) {
      const portion = ["", "GET /v1/socket HT", handshake()].flatMap((bytes) =>
        Array.from({ length: 50 }, () => raw(service.url, bytes).socket),
      );
      await until("they are connected", () => portion.every(({ connecting }) => !connecting));
      half.push(...portion);
    }
    await operator.call("service_status", {});
    const late = await Client.open(service.url);
    const { principal } = await late.call("authenticate", { token: service.operatorToken });
    assert.is(principal.kind, "operator");
    await late.close();
    for (const socket of half) socket.destroy();
  }));

test("[5] who says nothing, or says it byte by byte, is gone after a while", () =>
  besieged(async (service) => {
    const silent = raw(service.url, "");
    const slow = raw(service.url, "GET / HTTP/1.1\r\nX: ");
    const drip = setInterval(() => slow.socket.write("a"), 200);
    const nobody = raw(service.url, handshake());
    await Promise.all([silent.ended, slow.ended, nobody.ended]);
    clearInterval(drip);
  }));

test("[3] frames that are too large, endless in pieces, compressed, or that lie about their length end only their own connection", () =>
  besieged(async (service, operator) => {
    const token = service.operatorToken;
    const pieces = Buffer.alloc(1_024, 0x20);
    const attacks: readonly (readonly [string, readonly Buffer[]])[] = [
      ["one large frame", [frame(1, Buffer.alloc(8 * 1_048_576, 0x20))]],
      ["a length of exabytes", [frame(1, Buffer.alloc(64), { length: 2 ** 53 - 1 })]],
      [
        "a message in endless pieces",
        [frame(1, pieces, { fin: false }), ...Array.from({ length: 2_000 }, () => frame(0, pieces, { fin: false }))],
      ],
      ["a compressed frame though compression was not agreed", [frame(1, Buffer.alloc(64), { rsv1: true })]],
      ["a reserved opcode", [frame(7, Buffer.alloc(4))]],
      ["a piece that continues nothing", [frame(0, Buffer.alloc(4))]],
      ["a long ping", [frame(9, Buffer.alloc(126))]],
      ["text that is no UTF-8", [frame(1, Buffer.from([0xff, 0xfe, 0x80]))]],
    ];
    for (const [what, frames] of attacks) {
      const attacker = raw(service.url, handshake(token));
      await until(`${what}: the upgrade`, () => attacker.told().includes("101 Switching"));
      assert.not.ok(attacker.told().toLowerCase().includes("permessage-deflate"), "compression was agreed");
      for (const bytes of frames) attacker.socket.write(bytes);
      await attacker.ended;
      await operator.call("service_status", {});
    }
    const large = await Client.open(service.url, token);
    large.socket.send("x".repeat(65_537));
    await until("it is told", () => large.strays.length > 0);
    assert.is(large.strays[0]?.data.code, "frame_too_large");
    await large.call("service_status", {});
    await large.close();
  }));

test("[5] a flood is limited by its principal, and neither others nor the owner's answer are kept out by it", () =>
  besieged(async (service, operator, directory) => {
    const { conversation } = await operator.call("conversation_create", {
      scope: { kind: "workspace", workspaceId: directory },
    });
    const { conversationId } = conversation;
    const asked = await operator.call("request_user_input", { conversationId, kind: "text", prompt: "Which one?" });
    const { code } = await operator.call("device_pair_begin", { mode: "active" });
    const nobody = await Client.open(service.url);
    const { token } = await nobody.call("device_pair_complete", { code, name: "phone" });
    const device = await Client.open(service.url, token);
    const flood = await Client.open(service.url, token);
    const outcomes = Array.from({ length: 8_000 }, () =>
      flood.call("conversation_show", { conversationId }).then(
        () => "ok",
        (error: unknown) => error,
      ),
    );
    const limited = (await Promise.all(outcomes)).find((outcome) => outcome instanceof Refused);
    assert.ok(limited instanceof Refused, "nothing was refused");
    assert.is(limited.code, "rate_limited");
    assert.ok((limited.data.retryAfterMs ?? 0) > 0);
    const again = Array.from({ length: 3_000 }, () =>
      flood.call("conversation_show", { conversationId }).catch(() => null),
    );
    const result = await device.call("input_answer", {
      conversationId,
      incarnationId: asked.incarnationId ?? "",
      requestId: asked.question?.requestId ?? "",
      expectedRevision: asked.revision ?? 0,
      answer: { kind: "text", text: "this one" },
    });
    assert.is(result.status, "resolved");
    await Promise.all(again);
    await Promise.all([nobody.close(), device.close(), flood.close()]);
  }));

test("[5] clients that ask for much and never read cost bounded memory", () =>
  besieged(async (service, operator) => {
    for (let count = 0; count < 600; count += 1) {
      await operator.call("conversation_create", { scope: { kind: "global" }, title: "t".repeat(256) });
    }
    const attackers = await Promise.all(
      Array.from({ length: 20 }, () => Client.open(service.url, service.operatorToken)),
    );
    for (const attacker of attackers) {
      attacker.socket.pause();
      for (let count = 0; count < 200; count += 1) void attacker.call("conversation_list", {}).catch(() => undefined);
    }
    await operator.call("conversation_list", {});
    const began = performance.now();
    while (performance.now() - began < 3_000) await operator.call("service_status", {});
    for (const attacker of attackers) attacker.drop();
  }, 250));

test("[2] an agent can neither read another conversation nor answer its own question, whatever it claims", () =>
  besieged(async (service, operator, directory) => {
    const create = () => operator.call("conversation_create", { scope: { kind: "workspace", workspaceId: directory } });
    const own = (await create()).conversation.conversationId;
    const other = (await create()).conversation.conversationId;
    const { token } = await operator.call("credential_issue", { kind: "agent", conversationId: own });
    const agent = await Client.open(service.url, token);
    const asked = await agent.call("request_user_input", { conversationId: own, kind: "text", prompt: "Which one?" });
    const target = {
      conversationId: own,
      incarnationId: asked.incarnationId ?? "",
      requestId: asked.question?.requestId ?? "",
      expectedRevision: asked.revision ?? 0,
    };
    const answered = await agent.call("input_answer", { ...target, answer: { kind: "text", text: "mine" } });
    assert.equal([answered.status, answered.reason, answered.question], ["refused", "not_permitted", undefined]);
    assert.is((await agent.call("input_cancel", target)).reason, "not_permitted");
    const attempts = [
      ["conversation_show", { conversationId: other }],
      ["conversation_tail", { conversationId: other }],
      ["conversation_subscribe", { conversationId: other, events: true }],
      ["input_get", { conversationId: other }],
      ["request_user_input", { conversationId: other, kind: "text", prompt: "p" }],
      ["input_list", {}],
      ["inbox_subscribe", {}],
      ["conversation_send", { conversationId: own, message: "yes" }],
      ["device_pair_begin", { mode: "active" }],
      ["credential_issue", { kind: "captain" }],
      ["credential_rotate", { credentialId: "operator" }],
      ["conversation_reset", { conversationId: own, expectedRevision: 1 }],
      ["native_claim", { conversationId: own, harness: "x" }],
      ["project_add", { path: directory }],
    ] as const;
    for (const [method, params] of attempts) {
      const outcome = await agent.send(method, { schemaVersion: 1, ...params }).catch((error: unknown) => error);
      assert.is(outcome instanceof Refused ? outcome.code : outcome, "forbidden", method);
    }
    for (const path of ["/metrics", "/v1/backup"]) {
      const response = await fetch(`${service.url}${path}`, { headers: { authorization: `Bearer ${token}` } });
      assert.is(response.status, 403, path);
    }
    const listed = (await agent.call("conversation_list", {})).conversations.map(
      ({ conversationId }) => conversationId,
    );
    assert.equal(listed, [own]);
    await agent.close();
  }));

test("everything written is for its owner alone, and no token is in a list of processes", () =>
  besieged(async (service, operator, directory) => {
    const { conversation } = await operator.call("conversation_create", {
      scope: { kind: "workspace", workspaceId: directory },
      runner: { kind: "command", command: ["sh", "-c", 'echo "$CLANKIE_TOKEN" > token; exec sleep 20'] },
    });
    await operator.call("conversation_send", { conversationId: conversation.conversationId, message: "go" });
    await until("the agent runs", () => readdirSync(directory).includes("token"));
    await until("it has its token", () => readFileSync(join(directory, "token"), "utf8").length > 40);
    const secrets = [
      service.operatorToken,
      service.token("captain"),
      readFileSync(join(directory, "token"), "utf8").trim(),
    ];
    const processes = execFileSync("ps", ["-eo", "args"], { encoding: "utf8" });
    for (const secret of secrets) assert.not.ok(processes.includes(secret), "a token is in the list of processes");
    for (const path of filesBelow(service.data)) {
      assert.is(statSync(path).mode & 0o077, 0, `${path} is open to others`);
    }
    // Held as digests only: no file but its own has a token.
    for (const secret of secrets) {
      const found = spawnSync("grep", ["-rlF", secret, service.data], { encoding: "utf8" }).stdout.trim().split("\n");
      assert.ok(
        found.every((path) => path === "" || path.endsWith(".token")),
        `a token is in ${found}`,
      );
    }
  }));

test("links planted in the data directory are not followed", () =>
  withDirectory(async (directory) => {
    const data = join(directory, "data");
    await ServiceProcess.start({ data }).then((service) => service.stop());
    const victim = join(directory, "victim");
    await writeFile(victim, "precious", { mode: 0o644 });

    await symlink(victim, join(data, "service.json"));
    const service = await ServiceProcess.start({ data });
    assert.ok((await lstat(join(data, "service.json"))).isFile(), "the link was written through");
    await service.stop();

    for (const [name, at] of [
      ["store/db/CURRENT.1", "store/db"],
      ["operator.token", "token"],
    ] as const) {
      const planted = join(directory, `planted-${at.replaceAll("/", "-")}`);
      await ServiceProcess.start({ data: planted }).then((each) => each.stop());
      if (name === "operator.token") execFileSync("rm", [join(planted, name)]);
      await symlink(victim, join(planted, name));
      const failed = await ServiceProcess.start({ data: planted }).catch((error: unknown) => error);
      assert.ok(failed instanceof DidNotStart, `it started over a planted ${name}`);
      assert.match(failed.stderr, /link|plain file/, name);
    }
    const linked = join(directory, "linked");
    await symlink(data, linked);
    const failed = await ServiceProcess.start({ data: linked }).catch((error: unknown) => error);
    assert.ok(failed instanceof DidNotStart);
    await mkdir(join(directory, "elsewhere"));
    assert.is(readFileSync(victim, "utf8"), "precious");
    assert.is(statSync(victim).mode & 0o777, 0o644);
  }));

function filesBelow(directory: string): readonly string[] {
  return [
    directory,
    ...readdirSync(directory, { recursive: true, encoding: "utf8" }).map((name) => join(directory, name)),
  ];
}

test.run();
