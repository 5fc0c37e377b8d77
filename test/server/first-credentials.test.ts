import { rm } from "node:fs/promises";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { inWorld } from "../world.js";

test(
  "[2] an operator whose credential was revoked is locked out by no restart: the data directory gets a new token",
  inWorld(async (world) => {
    const before = await world.token("operator");
    await world.operator.ok("credential_revoke", { credentialId: "operator" });
    await world.stop();
    await world.start();
    const after = await world.token("operator");
    assert.is.not(after, before);
    await world.operator.ok("credential_list", {});
  }),
);

test(
  "[2] a token whose file is gone is made anew at the start; the old one is good no more",
  inWorld(async (world) => {
    const before = await world.token("captain");
    await world.stop();
    await rm(join(world.data, "captain.token"));
    await world.start();
    const client = await world.connect(await world.token("captain"));
    await client.ok("service_status", {});
    const refused = await world.connect(before).then(
      () => false,
      () => true,
    );
    assert.ok(refused);
  }),
);

test(
  "[2] a captain that was revoked stays revoked over a restart",
  inWorld(async (world) => {
    await world.operator.ok("credential_revoke", { credentialId: "captain" });
    await world.stop();
    await world.start();
    const refused = await world.connect(await world.token("captain")).then(
      () => false,
      () => true,
    );
    assert.ok(refused);
  }),
);

test.run();
