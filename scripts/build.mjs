// Builds dist/: tspc (TypeScript with the typia transform), the device page's own project, then its bundle.
// Plain tsc, tsx and esbuild would leave validators that throw, and an incremental tsc would keep validators of a type
// that has changed in another file: so the build is whole when anything that a validator is made from has changed, and
// incremental when not.
import { createHash } from "node:crypto";
import { chmodSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, posix } from "node:path";
import { exists, filesBelow, root, run, say } from "./project.mjs";

const dist = join(root, "dist");
const stampFile = join(dist, ".build.json");
const buildInfos = [".tsbuildinfo", ".device.tsbuildinfo"].map((name) => join(dist, name));
/** What the last build that succeeded was made from and left; kept through builds that fail. */
const lastBuildFile = join(dist, ".last-build.json");
const sourceFolders = ["bench", "clients", "machines", "protocol", "scripts", "server", "test"];
const projects = [".", "clients/device"];
const bundler = join(root, "scripts/bundle.mjs");

/** Typed sources, whose place in dist/ mirrors their own. */
const isTyped = (path) => path.endsWith(".ts") && !path.endsWith(".d.ts");

function sources() {
  return sourceFolders.flatMap((folder) => filesBelow(join(root, folder)).map((path) => `${folder}/${path}`));
}

function fingerprint(files) {
  const hash = createHash("sha256");
  for (const path of [...files, "tsconfig.json", "package.json", "package-lock.json"]) {
    hash
      .update(`${path}\0`)
      .update(readFileSync(join(root, path)))
      .update("\0");
  }
  return hash.digest("hex");
}

/** The files that make validators, and all that these import: what the emitted validators depend on. */
function validatorSources(files) {
  const texts = new Map(files.filter(isTyped).map((path) => [path, readFileSync(join(root, path), "utf8")]));
  const found = new Set();
  const follow = (path) => {
    const text = texts.get(path);
    if (text === undefined || found.has(path)) return;
    found.add(path);
    for (const [, imported] of text.matchAll(/from "(\.[^"]+)\.js"/g)) {
      follow(`${posix.join(posix.dirname(path), imported)}.ts`);
    }
  };
  for (const [path, text] of texts) if (/from "typia"/.test(text)) follow(path);
  return [...found].sort();
}

function outputOf(source) {
  return source.replace(/\.ts$/, ".js");
}

function sourceOf(output) {
  return output.replace(/\.js$/, ".ts");
}

function hasProject(project) {
  return exists(join(root, project, "tsconfig.json"));
}

/** The compiled files that must be there; the device page's only once it has a project of its own. */
function outputs(files) {
  return files
    .filter((path) => isTyped(path) && (hasProject("clients/device") || !path.startsWith("clients/device/")))
    .map(outputOf);
}

/** Removes compiled files whose source is gone: a deleted test would otherwise still run. */
function prune(files) {
  const kept = new Set(outputs(files));
  const isCompiled = (path) => /\.(js|js\.map|d\.ts)$/.test(path) && !path.includes("/public/");
  for (const path of filesBelow(dist, isCompiled)) {
    if (!kept.has(path.replace(/(\.js\.map|\.d\.ts)$/, ".js"))) rmSync(join(dist, path));
  }
}

/** Makes the programs that package.json names under `bin` executable, once they are there. */
function makeExecutable() {
  const { bin } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  for (const path of Object.values(bin).map((program) => join(root, program))) {
    if (exists(path)) chmodSync(path, 0o755);
  }
}

/** What the last build that succeeded was made from and left, or nothing. */
function lastBuild() {
  try {
    return JSON.parse(readFileSync(lastBuildFile, "utf8"));
  } catch {
    return { validators: undefined, outputs: [] };
  }
}

/** Whether dist/ is what the sources say. */
export function isBuilt() {
  const files = sources();
  try {
    const { key } = JSON.parse(readFileSync(stampFile, "utf8"));
    return key === fingerprint(files) && outputs(files).every((path) => exists(join(dist, path)));
  } catch {
    return false;
  }
}

/** Builds dist/. Throws when the sources do not compile; nothing is emitted then. */
export async function build() {
  say("setup: compiling");
  const started = Date.now();
  const files = sources();
  const key = fingerprint(files);
  mkdirSync(dist, { recursive: true });
  const validators = fingerprint(validatorSources(files));
  const last = lastBuild();
  // The build info says what was emitted, not what is still there.
  const isWhole = last.outputs.every((path) => exists(join(dist, path)) || !exists(join(root, sourceOf(path))));
  if (last.validators !== validators || !isWhole) for (const file of buildInfos) rmSync(file, { force: true });
  rmSync(stampFile, { force: true });
  prune(files);
  const steps = projects
    .filter(hasProject)
    .map((project) => [join(root, "node_modules/ts-patch/bin/tspc.js"), ["-p", join(root, project)]]);
  if (exists(bundler)) steps.push([bundler, []]);
  for (const [script, args] of steps) {
    const { code } = await run(process.execPath, [script, ...args]);
    if (code !== 0) throw new Error("the sources do not compile; the messages are above");
  }
  makeExecutable();
  writeFileSync(stampFile, JSON.stringify({ key }));
  writeFileSync(lastBuildFile, JSON.stringify({ validators, outputs: outputs(files) }));
  say(`setup: compiled in ${((Date.now() - started) / 1000).toFixed(1)} s`);
}
