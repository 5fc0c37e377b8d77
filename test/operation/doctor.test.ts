import { chmod, mkdir, readdir, readFile, rename, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { examine, type Finding } from "../../clients/cli/local/doctor.js";
import { Client } from "../crash/tools/client.js";
import { ServiceProcess, withDirectory } from "../crash/tools/process.js";

const test = suite("clankie doctor");

const troubles = (findings: readonly Finding[]): readonly string[] =>
  findings.filter(({ level }) => level !== "ok").map(({ about, what }) => `${about}: ${what}`);

async function stopped(directory: string): Promise<string> {
  const data = join(directory, "data");
  const service = await ServiceProcess.start({ data });
  const client = await Client.open(service.url, service.operatorToken);
  for (let count = 0; count < 20; count += 1) await client.call("conversation_create", { scope: { kind: "global" } });
  await client.close();
  await service.stop();
  return data;
}

test("what is well is said to be, stopped and running", () =>
  withDirectory(async (directory) => {
    const data = await stopped(directory);
    assert.equal(troubles(await examine(data)), []);
    const service = await ServiceProcess.start({ data });
    assert.equal(troubles(await examine(data)), []);
    await service.stop();
    assert.match(troubles(await examine(join(directory, "none"))).join(), /no data directory/);
  }));

test("a service that was killed, a wrong token, an open file and a planted link are named, with what to do", () =>
  withDirectory(async (directory) => {
    const data = await stopped(directory);
    const service = await ServiceProcess.start({ data });
    await writeFile(join(data, "operator.token"), `${"x".repeat(43)}\n`, { mode: 0o600 });
    const wrong = await examine(data);
    assert.match(troubles(wrong).join(), /^tokens: the token in .* is not the operator's/);
    await service.kill();
    assert.match(troubles(await examine(data)).join(), /ended without stopping/);

    await chmod(join(data, "operator.token"), 0o644);
    await symlink("/etc/passwd", join(data, "store", "db", "000099.ldb"));
    const found = (await examine(data)).filter(({ about }) => about === "files");
    assert.match(troubles(found).join("\n"), /others may read .*operator\.token/);
    assert.match(troubles(found).join("\n"), /000099\.ldb is a link/);
    for (const { next } of found) assert.ok(next, "a finding that says nothing to do");
  }));

test("a flipped byte and a lost end of the log are named, and nothing is changed by looking", () =>
  withDirectory(async (directory) => {
    for (const harm of ["flip", "cut"] as const) {
      await mkdir(join(directory, harm));
      const data = await stopped(join(directory, harm));
      const database = join(data, "store", "db");
      const log = join(database, (await readdir(database)).find((name) => name.endsWith(".log")) ?? "");
      const bytes = await readFile(log);
      const middle = bytes.length >> 1;
      bytes.writeUInt8(bytes.readUInt8(middle) ^ 0xff, middle);
      await writeFile(log, harm === "flip" ? bytes : bytes.subarray(0, middle));
      const before = await contents(database);
      const findings = troubles(await examine(data));
      assert.match(findings.join("\n"), /store: (commits_missing|chain_broken)/, harm);
      assert.equal(await contents(database), before, `${harm}: the store was changed`);
    }
  }));

test("a database without its CURRENT file is not taken for an empty one", () =>
  withDirectory(async (directory) => {
    const data = await stopped(directory);
    const database = join(data, "store", "db");
    await rename(join(database, "CURRENT"), join(directory, "CURRENT"));
    assert.match(troubles(await examine(data)).join(), /store: .*CURRENT/);
  }));

async function contents(directory: string): Promise<readonly (readonly [string, string])[]> {
  const names = (await readdir(directory)).sort();
  return Promise.all(
    names.map(async (name) => [name, (await readFile(join(directory, name))).toString("base64")] as const),
  );
}

test.run();
