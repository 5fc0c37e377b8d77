import { request } from "node:http";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { type RawClient, UpgradeRefused } from "../raw-client.js";
import { CHOICE, inWorld, type World } from "../world.js";

async function refusal(world: World, token?: string, headers?: Readonly<Record<string, string>>): Promise<number> {
  try {
    await world.connect(token, headers);
  } catch (error) {
    if (error instanceof UpgradeRefused) return error.status;
    throw error;
  }
  throw new Error("the upgrade was let in");
}

test(
  "[5] a token in the header or in the first request authenticates; the principal is told",
  inWorld(async (world) => {
    const token = await world.token("captain");
    const byHeader = await world.connect(token);
    assert.is((await byHeader.ok("authenticate", { token })).principal.kind, "captain");
    const byRequest = await world.connect();
    assert.is(await byRequest.fault("service_status", {}), "unauthenticated");
    assert.equal(await byRequest.ok("authenticate", { token }), { principal: { kind: "captain", id: "captain" } });
    await byRequest.ok("service_status", {});
    const run = await world.run();
    assert.equal((await run.client.ok("authenticate", { token: run.token })).principal, {
      kind: "agent",
      id: `run:${run.runId}`,
      conversationId: run.conversationId,
      runId: run.runId,
    });
  }),
);

test(
  "[5] who does not authenticate within five seconds is closed with 4401, who did is not",
  inWorld(async (world) => {
    const late = await world.connect();
    const inTime = await world.connect();
    world.time.pass(4_999);
    await inTime.ok("authenticate", { token: await world.token("captain") });
    assert.ok(late.isOpen);
    world.time.pass(1);
    assert.is((await late.closed).code, 4401);
    await inTime.ok("service_status", {});
  }),
);

test(
  "[5] a bad token is 401 at the upgrade, and 4401 after the first request",
  inWorld(async (world) => {
    assert.is(await refusal(world, "no-token-of-ours"), 401);
    assert.is(await refusal(world, undefined, { authorization: "Basic b3BlcmF0b3I6" }), 401);
    assert.is(await refusal(world, undefined, { authorization: "Bearer" }), 401);
    const client = await world.connect();
    assert.is(await client.fault("authenticate", { token: "no-token-of-ours" }), "unauthenticated");
    assert.is((await client.closed).code, 4401);
  }),
);

test(
  "[5] a foreign Origin or Host is 403 before the upgrade, the service's own and the allowed are let in",
  inWorld(
    async (world) => {
      const token = await world.token("captain");
      const { host, port } = new URL(world.url);
      assert.is(await refusal(world, token, { origin: "https://evil.example" }), 403);
      assert.is(await refusal(world, token, { origin: "null" }), 403);
      assert.is(await refusal(world, token, { origin: `https://${host}.evil.example` }), 403);
      assert.is(await refusal(world, token, { host: "evil.example" }), 403);
      assert.is(await refusal(world, token, { host: `127.0.0.1.evil.example:${port}` }), 403);
      await world.connect(token, { origin: world.url });
      await world.connect(token, { origin: "https://control.example" });
      await world.connect(token, { host: `Localhost:${port}` });
      await world.connect(token, { host: "clankie.example" });
    },
    { serve: { allowOrigins: ["https://control.example"], allowHosts: ["clankie.example"] } },
  ),
);

test(
  "[5] a token in the URL is none",
  inWorld(async (world) => {
    const token = await world.token("operator");
    const status = await new Promise<number | undefined>((resolve, reject) => {
      const upgrade = request(`${world.url}/v1/socket?token=${token}&access_token=${token}`, {
        headers: {
          connection: "Upgrade",
          upgrade: "websocket",
          "sec-websocket-version": "13",
          "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
        },
      });
      upgrade.once("upgrade", (response, socket) => {
        socket.once("data", () => undefined);
        socket.write(frameOf('{"jsonrpc":"2.0","id":1,"method":"service_status","params":{"schemaVersion":1}}'));
        socket.once("data", (data: Buffer) => {
          socket.destroy();
          if (data.includes('"unauthenticated"')) resolve(response.statusCode);
          else reject(new Error(data.toString()));
        });
      });
      upgrade.once("error", reject);
      upgrade.end();
    });
    assert.is(status, 101);
  }),
);

test(
  "[2] a rotated, revoked or expired token is refused at the next request of the socket it opened",
  inWorld(async (world) => {
    const status = (client: RawClient) => client.fault("service_status", {});
    const captain = await world.captain();
    const rotated = await world.operator.ok("credential_rotate", { credentialId: "captain" });
    assert.is(await status(captain), "unauthenticated");
    assert.is(await world.token("captain"), rotated.token);
    const next = await world.captain();
    await next.ok("service_status", {});
    await world.operator.ok("credential_revoke", { credentialId: "captain" });
    assert.is(await status(next), "unauthenticated");
    assert.is(await refusal(world, rotated.token), 401);

    const revoked = await world.device("active");
    await world.operator.ok("device_revoke", { deviceId: revoked.deviceId });
    assert.is(await status(revoked.client), "unauthenticated");
    const short = await world.device("active", 60);
    world.time.pass(59_999);
    await short.client.ok("service_status", {});
    world.time.pass(1);
    assert.is(await status(short.client), "unauthenticated");
    assert.is(await refusal(world, short.token), 401);
  }),
);

test(
  "[6.1] input_answer on a token that is no longer good is refused with the reason, and shows no question",
  inWorld(async (world) => {
    const { target, optionIds, conversationId } = await world.pending();
    const answer = { kind: "choice", optionId: optionIds[0]! } as const;
    const revoked = await world.device("active");
    await world.operator.ok("device_revoke", { deviceId: revoked.deviceId });
    const expired = await world.device("active", 1);
    world.time.pass(1_000);
    const readOnly = await world.device("active");
    await world.operator.ok("device_mode", { deviceId: readOnly.deviceId, mode: "read-only" });
    const before = await world.connect(await world.token("operator"));
    await world.operator.ok("credential_rotate", { credentialId: "operator" });
    for (const [client, reason] of [
      [revoked.client, "device_revoked"],
      [expired.client, "credential_expired"],
      [readOnly.client, "device_read_only"],
      [before, "not_permitted"],
    ] as const) {
      assert.equal(await client.ok("input_answer", { ...target, answer }), {
        status: "refused",
        conversationId,
        reason,
      });
      assert.equal(await client.ok("input_cancel", target), { status: "refused", conversationId, reason });
    }
    const owner = await world.connect(await world.token("operator"));
    assert.is((await owner.ok("conversation_show", { conversationId })).conversation.question?.status, "pending");
  }),
);

test(
  "[2] the live view of a credential ends with it: it is told so, and sees nothing more",
  inWorld(async (world) => {
    const { conversationId } = await world.conversation();
    const { client, deviceId } = await world.device("read-only");
    await client.ok("conversation_subscribe", { conversationId, events: true });
    await client.ok("inbox_subscribe", {});
    await world.operator.ok("device_revoke", { deviceId });
    const ended = await client.notified(({ method }) => method === "credential_ended");
    assert.equal(ended.params, { standing: "revoked" });
    await world.send(conversationId, "what the revoked must not read");
    await world.operator.ok("request_user_input", { conversationId, ...CHOICE });
    assert.is(await client.fault("service_status", {}), "unauthenticated");
    assert.is(client.notifications.length, 1);

    const short = await world.device("active", 10);
    await short.client.ok("conversation_subscribe", { conversationId, events: true });
    world.time.pass(10_000);
    await world.send(conversationId, "what the expired must not read");
    assert.is(await short.client.fault("service_status", {}), "unauthenticated");
    assert.equal(
      short.client.notifications.map(({ method }) => method),
      ["credential_ended"],
    );
  }),
);

test(
  "[2] a token bound to a run ends with the run",
  inWorld(async (world) => {
    const { conversationId, runId, client, token } = await world.run();
    await client.ok("conversation_subscribe", { conversationId, events: true });
    await world.operator.ok("run_cancel", { runId });
    assert.is(await client.fault("conversation_show", { conversationId }), "unauthenticated");
    assert.is(await refusal(world, token), 401);
    const seen = client.notifications.length;
    await world.send(conversationId, "what an ended run must not read");
    assert.is(await client.fault("conversation_show", { conversationId }), "unauthenticated");
    assert.equal(
      client.notifications.slice(seen).filter(({ method }) => method !== "credential_ended"),
      [],
    );
  }),
);

test(
  "[5] a pairing code pairs one device once, dies after five minutes, and is not to be guessed",
  inWorld(async (world) => {
    const { code, url } = await world.operator.ok("device_pair_begin", { mode: "active" });
    assert.ok(url.startsWith(`${world.url}/#`));
    const nobody = await world.connect();
    const paired = await nobody.ok("device_pair_complete", { code: code.toLowerCase(), name: "phone" });
    assert.is(paired.mode, "active");
    assert.is(await nobody.fault("device_pair_complete", { code, name: "again" }), "unauthenticated");
    const late = await world.operator.ok("device_pair_begin", { mode: "active" });
    await world.pass(300_000);
    const next = await world.connect();
    assert.is(await next.fault("device_pair_complete", { code: late.code, name: "late" }), "unauthenticated");
    let code429 = "";
    for (let tries = 0; tries < 12; tries += 1) {
      code429 = await next.fault("device_pair_complete", { code: "AAAA-AAAA", name: "guess" });
    }
    assert.is(code429, "rate_limited");
    const { devices } = await world.operator.ok("device_list", {});
    assert.equal(
      devices.map(({ deviceId, mode, name }) => ({ deviceId, mode, name })),
      [{ deviceId: paired.deviceId, mode: "active", name: "phone" }],
    );
    assert.not(JSON.stringify(devices).includes(paired.token));
  }),
);

test(
  "[5] a peer that answers no ping is closed, one that answers stays",
  inWorld(async (world) => {
    const deaf = await world.captain();
    deaf.pause();
    world.time.pass(30_000);
    await world.operator.ok("service_status", {}); // by now its pong is here too
    world.time.pass(30_000);
    deaf.resume();
    await deaf.closed;
    await world.operator.ok("service_status", {});
  }),
);

/** One masked text frame of less than 126 bytes. */
function frameOf(text: string): Buffer {
  const bytes = Buffer.from(text);
  return Buffer.concat([Buffer.from([0x81, 0x80 | bytes.length, 0, 0, 0, 0]), bytes]);
}

test.run();
