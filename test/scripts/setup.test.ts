import { spawn, spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { test } from "uvu";
import * as assert from "uvu/assert";

const root = fileURLToPath(new URL("../../../", import.meta.url));

interface Project {
  readonly write: (path: string, text: string) => void;
  readonly read: (path: string) => string;
  readonly path: (path: string) => string;
  readonly setUp: () => { readonly status: number | null; readonly said: string };
}

/** A small project with this one's scripts and packages. */
function makeProject(): Project {
  const directory = mkdtempSync(join(tmpdir(), "project-"));
  const path = (relative: string) => join(directory, relative);
  const write = (relative: string, text: string) => {
    mkdirSync(join(directory, relative, ".."), { recursive: true });
    writeFileSync(path(relative), text);
  };
  cpSync(join(root, "scripts"), path("scripts"), { recursive: true });
  for (const file of ["package.json", "package-lock.json", "tsconfig.json"]) cpSync(join(root, file), path(file));
  rmSync(path("scripts/bundle.mjs"), { force: true });
  symlinkSync(join(root, "node_modules"), path("node_modules"));
  write("protocol/small.ts", "export const small = 1;\n");
  return {
    write,
    path,
    read: (relative) => readFileSync(path(relative), "utf8"),
    setUp: () => {
      const { status, stderr } = spawnSync(process.execPath, [path("scripts/setup.mjs")], { encoding: "utf8" });
      return { status, said: stderr };
    },
  };
}

test("a second set-up does nothing, and a changed type reaches the validators of other files", () => {
  const project = makeProject();
  project.write("protocol/inner.ts", "export interface Inner {\n  readonly n: number;\n}\n");
  project.write(
    "protocol/outer.ts",
    'import type { Inner } from "./inner.js";\nexport type Outer = { readonly inner: Inner };\n',
  );
  project.write(
    "protocol/codec.ts",
    'import typia from "typia";\nimport type { Outer } from "./outer.js";\nexport const isOuter = typia.createIs<Outer>();\n',
  );
  assert.match(project.setUp().said, "compiled");
  assert.match(project.read("dist/protocol/codec.js"), '"number" === typeof');
  assert.equal(project.setUp(), { status: 0, said: "" });

  project.write("protocol/inner.ts", "export interface Inner {\n  readonly n: string;\n}\n");
  assert.is(project.setUp().status, 0);
  assert.match(project.read("dist/protocol/codec.js"), '"string" === typeof');
});

test("what was compiled from a deleted file is deleted, and what was deleted from dist is compiled again", () => {
  const project = makeProject();
  project.write("test/old.test.ts", "export const old = true;\n");
  project.setUp();
  assert.ok(existsSync(project.path("dist/test/old.test.js")));

  rmSync(project.path("test/old.test.ts"));
  rmSync(project.path("dist/protocol/small.js"));
  assert.is(project.setUp().status, 0);
  assert.not(existsSync(project.path("dist/test/old.test.js")));
  assert.ok(existsSync(project.path("dist/protocol/small.js")));
});

test("sources that do not compile end the set-up with their messages, every time until they do", () => {
  const project = makeProject();
  project.write("protocol/wrong.ts", 'export const wrong: number = "text";\n');
  for (const _attempt of [1, 2]) {
    const { status, said } = project.setUp();
    assert.is(status, 1);
    assert.match(said, "protocol/wrong.ts");
  }
});

test("several set-ups at once compile once, also past a lock whose holder has died", async () => {
  const project = makeProject();
  const dead = spawnSync(process.execPath, ["--version"]).pid;
  project.write("tmp/setup.lock/owner.json", JSON.stringify({ pid: dead, host: hostname(), token: "dead" }));
  const runs = await Promise.all(
    [1, 2, 3].map(
      () =>
        new Promise<{ readonly code: number | null; readonly said: string }>((resolve) => {
          const child = spawn(process.execPath, [project.path("scripts/setup.mjs")], {
            stdio: ["ignore", "ignore", "pipe"],
          });
          let said = "";
          child.stderr.setEncoding("utf8").on("data", (chunk: string) => {
            said += chunk;
          });
          child.once("close", (code) => resolve({ code, said }));
        }),
    ),
  );
  assert.equal(
    runs.map((run) => run.code),
    [0, 0, 0],
  );
  assert.is(runs.filter((run) => run.said.includes("compiled in")).length, 1);
  assert.not(existsSync(project.path("tmp/setup.lock")));
});

test.run();
