import { chmod, lstat, mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { text } from "node:stream/consumers";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { main } from "../../clients/cli/main.js";
import { BINARY } from "./service.js";

const test = suite("clankie agents setup");

let directory: string;
test.before.each(async () => {
  directory = await mkdtemp(join(tmpdir(), "clankie-setup-"));
});
test.after.each(async () => {
  await rm(directory, { recursive: true, force: true });
});

async function setup(...args: readonly string[]) {
  const [stdout, stderr] = [new PassThrough(), new PassThrough()];
  const exit = await main(["agents", "setup", ...args], {
    env: { PATH: "/nowhere" },
    cwd: () => directory,
    stdin: new PassThrough(),
    stdout,
    stderr,
  });
  stdout.end();
  stderr.end();
  return { exit, out: await text(stdout), err: await text(stderr) };
}

const read = (file: string): Promise<string> => readFile(join(directory, file), "utf8");

async function write(file: string, content: string): Promise<void> {
  await mkdir(join(directory, file, ".."), { recursive: true });
  await writeFile(join(directory, file), content);
}

const COMMAND = [process.execPath, BINARY, "mcp"];

test("opencode gets its server in a new opencode.json, and nothing is left when it is removed", async () => {
  const made = await setup("opencode");
  assert.is(made.exit, 0, made.err);
  assert.equal(JSON.parse(await read("opencode.json")), {
    $schema: "https://opencode.ai/config.json",
    mcp: { clankie: { type: "local", command: COMMAND, enabled: true, timeout: 60_000 } },
  });
  assert.match(made.out, /\+ +"clankie": \{/);
  assert.match(made.out, /conversations create --directory .* -- opencode run --continue/);
  assert.match(made.out, /put this into AGENTS\.md/);
  assert.is((await setup("opencode", "--remove")).exit, 0);
  assert.equal(await readdir(directory), []);
});

test("what is there stays as it is, comments and layout too, and comes back byte for byte", async () => {
  const files: readonly [agent: string, file: string, before: string][] = [
    [
      "opencode",
      "opencode.jsonc",
      '// mine\n{\n\t"model": "a/b", // the good one\n\t"mcp": {\n\t\t/* search */\n\t\t"search": { "type": "remote", "url": "https://example.org" }\n\t}\n}\n',
    ],
    ["opencode", "opencode.json", '{ "theme": "dark" }'],
    ["claude", ".mcp.json", '{\r\n    "mcpServers": {\r\n        "one": { "command": "one" }\r\n    }\r\n}\r\n'],
    [
      "claude",
      ".mcp.json",
      '{\n  "mcpServers": {\n    "one": { "command": "one" } // the first\n  },\n  "more": 1, /* last */\n}\n',
    ],
    ["claude", ".mcp.json", '{\n  "a": 1 // one\n}'],
    ["opencode", "opencode.json", '{"mcp":{"a":{"type":"local","command":["a"]}}}'],
    ["opencode", "opencode.json", "{\n  // nothing yet\n}\n"],
    ["gemini", ".gemini/settings.json", '{\n  // theme\n  "ui": { "theme": "x" }\n}\n'],
    ["codex", ".codex/config.toml", 'model = "gpt"\n\n[mcp_servers.one]\ncommand = "one"\n'],
    ["codex", ".codex/config.toml", "# no newline at the end"],
  ];
  for (const [agent, file, before] of files) {
    await write(file, before);
    assert.is((await setup(agent)).exit, 0, file);
    const after = await read(file);
    assert.is.not(after, before);
    for (const line of before.split(/\r?\n/).filter((each) => /\w/.test(each) && !/^\{./.test(each)))
      assert.ok(after.replaceAll(",", "").includes(line.replaceAll(",", "")), `${file}: ${line}`);
    if (before.includes("\r\n")) assert.not.match(after, /[^\r]\n/);
    assert.is((await setup(agent, "--remove")).exit, 0);
    const isWithoutEnd = agent === "codex" && !before.endsWith("\n");
    assert.is(await read(file), isWithoutEnd ? `${before}\n` : before, file);
    await rm(join(directory, file));
  }
});

test("a second time changes nothing, and what was changed by hand is put right", async () => {
  for (const [agent, file] of [
    ["opencode", "opencode.json"],
    ["claude", ".mcp.json"],
    ["codex", ".codex/config.toml"],
    ["gemini", ".gemini/settings.json"],
  ] as const) {
    await setup(agent);
    const once = await read(file);
    const again = await setup(agent);
    assert.match(again.out, /already set up/);
    assert.is(await read(file), once);
    await write(file, once.replace(process.execPath, "/old/node"));
    assert.match((await setup(agent)).out, /changing/);
    assert.is(await read(file), once);
    assert.match((await setup(agent, "--remove")).out, /changing/);
    assert.match((await setup(agent, "--remove")).out, /nothing of this in/);
  }
});

test("--dry-run shows the change and makes none; --json says the same to programs", async () => {
  const dry = await setup("claude", "--dry-run");
  assert.match(dry.out, /this would change [^\n]*\.mcp\.json/);
  assert.match(dry.out, /\+ .*mcpServers/);
  assert.equal(await readdir(directory), []);
  const json = JSON.parse((await setup("claude", "--dry-run", "--json")).out);
  assert.is(json.changed, false);
  assert.is(json.before, null);
  assert.equal(JSON.parse(json.after).mcpServers.clankie.command, process.execPath);
  const done = JSON.parse((await setup("claude", "--json")).out);
  assert.is(done.changed, true);
  assert.is(await read(".mcp.json"), done.after);
});

test("clients that pass nothing on are told which variables to pass, by name and without a token", async () => {
  await setup("claude");
  await setup("codex");
  await setup("gemini");
  const claude = JSON.parse(await read(".mcp.json")).mcpServers.clankie;
  const gemini = JSON.parse(await read(".gemini/settings.json")).mcpServers.clankie;
  assert.is(claude.env.CLANKIE_TOKEN, ["$", "{CLANKIE_TOKEN:-}"].join(""));
  assert.is(gemini.env.CLANKIE_TOKEN, "$CLANKIE_TOKEN");
  assert.match(await read(".codex/config.toml"), /^required = true$/m);
  assert.match(await read(".codex/config.toml"), /env_vars = \["CLANKIE_URL", "CLANKIE_TOKEN", /);
});

test("version 2 of opencode keeps its servers one level deeper", async () => {
  await write("opencode.json", '{ "mcp": { "servers": {} } }');
  await setup("opencode");
  assert.equal(JSON.parse(await read("opencode.json")).mcp, {
    servers: { clankie: { type: "local", command: COMMAND } },
  });
});

test("a file that cannot be understood is left alone", async () => {
  const broken: readonly [agent: string, file: string, content: string][] = [
    ["opencode", "opencode.json", '{ "mcp": '],
    ["opencode", "opencode.json", "[]"],
    ["claude", ".mcp.json", '{ "mcpServers": [] }'],
    ["codex", ".codex/config.toml", '[mcp_servers.clankie]\ncommand = "mine"\n'],
    ["codex", ".codex/config.toml", "# >>> clankie: made by `clankie agents setup codex`, taken out by --remove\n"],
  ];
  for (const [agent, file, content] of broken) {
    await write(file, content);
    const { exit, err } = await setup(agent);
    assert.is(exit, 1, content);
    assert.match(err, /nothing was changed/);
    assert.is(await read(file), content);
  }
  await rm(join(directory, "opencode.json"));
  await mkdir(join(directory, "opencode.json"));
  assert.match((await setup("opencode")).err, /cannot be read \(EISDIR\)/);
});

test("a file keeps its mode, and a link stays a link", async () => {
  await write("real.json", "{}\n");
  await chmod(join(directory, "real.json"), 0o600);
  await symlink("real.json", join(directory, ".mcp.json"));
  await setup("claude");
  assert.ok((await lstat(join(directory, ".mcp.json"))).isSymbolicLink());
  assert.is((await stat(join(directory, "real.json"))).mode & 0o777, 0o600);
  assert.match(await read("real.json"), /clankie/);
  assert.equal((await readdir(directory)).sort(), [".mcp.json", "real.json"]);
});

test("an agent that is not known is a usage error that names those that are", async () => {
  const { exit, err } = await setup("vim");
  assert.is(exit, 2);
  assert.match(err, /opencode, claude, codex, gemini/);
});

test.run();
