// Installs exactly what the lock file says, once.
import { createHash } from "node:crypto";
import { accessSync, constants, lstatSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, join, sep } from "node:path";
import { root, run, say } from "./project.mjs";

const modules = join(root, "node_modules");
const stampFile = join(modules, ".clankie-setup.json");

function readJson(path) {
  try {
    return JSON.parse(readFileSync(path, "utf8"));
  } catch {
    return undefined;
  }
}

/** What an installation depends on; another value means installing again. */
function wanted() {
  const { dependencies, devDependencies, optionalDependencies, overrides } = readJson(join(root, "package.json"));
  return createHash("sha256")
    .update(readFileSync(join(root, "package-lock.json")))
    .update(JSON.stringify({ dependencies, devDependencies, optionalDependencies, overrides }))
    .update([process.versions.modules, process.platform, process.arch].join(" "))
    .digest("hex");
}

/** Whether npm's own record of what it installed has every package of the lock file at its version. */
function installedByHand() {
  const lock = readJson(join(root, "package-lock.json"));
  const record = readJson(join(modules, ".package-lock.json"));
  if (lock?.packages === undefined || record?.packages === undefined) return false;
  return Object.entries(lock.packages).every(([path, entry]) => {
    if (path === "") return true;
    const installed = record.packages[path];
    if (installed === undefined) return entry.optional === true;
    return installed.version === entry.version && installed.integrity === entry.integrity;
  });
}

function isUsableDirectory(path) {
  try {
    if (!statSync(path).isDirectory()) return false;
    accessSync(path, constants.W_OK | constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/**
 * The environment for npm. A home that is empty, missing or read-only gets a cache inside the project instead. (With an
 * empty HOME the npm that called us names a directory `~` as its cache.)
 */
function npmEnvironment() {
  const env = { ...process.env };
  const cache = env.npm_config_cache || env.NPM_CONFIG_CACHE || join(env.HOME || "~", ".npm");
  const isReal = !cache.split(sep).includes("~");
  if (isReal && (isUsableDirectory(cache) || isUsableDirectory(dirname(cache)))) return env;
  delete env.NPM_CONFIG_CACHE;
  env.npm_config_cache = join(root, ".npm");
  mkdirSync(env.npm_config_cache, { recursive: true });
  return env;
}

/** The npm that called us where there is one, so that both are the same version. */
function npmCommand() {
  const path = process.env.npm_execpath;
  return path?.endsWith("npm-cli.js") ? [process.execPath, [path]] : ["npm", []];
}

/** Whether `node_modules` is what the lock file says. One that is a link belongs to somebody else and is left alone. */
export function isInstalled() {
  if (lstatSync(modules, { throwIfNoEntry: false })?.isSymbolicLink()) return true;
  return readJson(stampFile)?.key === wanted();
}

/** Makes `node_modules` what the lock file says. Throws when npm cannot. */
export async function install() {
  const key = wanted();
  if (readJson(stampFile) === undefined && installedByHand()) {
    writeFileSync(stampFile, JSON.stringify({ key }));
    return;
  }
  say("setup: installing the packages of package-lock.json (once)");
  rmSync(stampFile, { force: true });
  const [command, args] = npmCommand();
  const started = Date.now();
  const { code } = await run(
    command,
    [...args, "ci", "--include=dev", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"],
    { env: npmEnvironment() },
  );
  if (code !== 0) throw new Error(`npm ci ended with exit status ${code}; its message is above`);
  writeFileSync(stampFile, JSON.stringify({ key }));
  say(`setup: installed in ${Math.round((Date.now() - started) / 1000)} s`);
}
