import { readFileSync } from "node:fs";
import { userInfo } from "node:os";
import { isAbsolute, join, resolve } from "node:path";
import { BadAddress, socketAddress } from "../link/address.js";
import { EXIT, Failure, usage } from "./exit.js";

/** The options that say where the service is and as whom to speak; every command that speaks to it has them. */
export interface ConnectionFlags {
  readonly url?: string;
  readonly tokenFile?: string;
  readonly data?: string;
}

export interface Connection {
  readonly url: string;
  readonly token: string;
}

/** What `clankie serve` leaves in its data directory. */
const SERVICE_FILE = "service.json";
const OPERATOR_TOKEN_FILE = "operator.token";

type Env = NodeJS.ProcessEnv;

const set = (value: string | undefined): string | undefined => (value === "" ? undefined : value);

/**
 * The data directory: `--data`, else `CLANKIE_DATA`, else `clankie` in the XDG state directory. Absolute.
 * Contract section 9.
 */
export function dataDirectory(flag: string | undefined, env: Env): string {
  const given = set(flag) ?? set(env["CLANKIE_DATA"]);
  if (given !== undefined) return resolve(given);
  const state = set(env["XDG_STATE_HOME"]);
  // the XDG specification: a relative path there is to be ignored
  if (state !== undefined && isAbsolute(state)) return join(state, "clankie");
  return join(set(env["HOME"]) ?? userInfo().homedir, ".local", "state", "clankie");
}

/** The service and the token: flags before the environment before the data directory. Throws a `Failure`. */
export function connectionOf(flags: ConnectionFlags, env: Env): Connection {
  const directory = dataDirectory(flags.data, env);
  return { url: serviceUrl(flags, env, directory), token: tokenOf(flags, env, directory) };
}

function serviceUrl(flags: ConnectionFlags, env: Env, directory: string): string {
  const url = set(flags.url) ?? set(env["CLANKIE_URL"]) ?? servedUrl(directory);
  try {
    socketAddress(url);
  } catch (error) {
    if (error instanceof BadAddress) throw usage(`the service's URL cannot be used: ${error.message}`);
    throw error;
  }
  return url;
}

function servedUrl(directory: string): string {
  const path = join(directory, SERVICE_FILE);
  let service: unknown;
  try {
    service = JSON.parse(readFileSync(path, "utf8"));
  } catch (error) {
    if (!(error instanceof SyntaxError) && codeOf(error) === "ENOENT")
      throw unreachable(`no service is running with the data directory ${directory}`);
    throw new Failure(EXIT.unreachable, "unreachable", `${path} cannot be read: ${wordsOf(error)}`, [
      "give the service's address with --url or CLANKIE_URL",
    ]);
  }
  const url: unknown = typeof service === "object" && service !== null ? Reflect.get(service, "url") : undefined;
  if (typeof url !== "string") throw unreachable(`${path} names no service`);
  return url;
}

/** The service is not there, and how to start it. */
export function unreachable(message: string): Failure {
  return new Failure(EXIT.unreachable, "unreachable", message, [
    "start it with: clankie serve",
    "or say where it is: --url URL (CLANKIE_URL), or --data DIR (CLANKIE_DATA)",
  ]);
}

function tokenOf(flags: ConnectionFlags, env: Env, directory: string): string {
  const named = set(flags.tokenFile);
  if (named !== undefined) return tokenIn(resolve(named));
  const token = set(env["CLANKIE_TOKEN"]);
  if (token !== undefined) return checkedToken(token.trim(), "CLANKIE_TOKEN");
  return tokenIn(join(directory, OPERATOR_TOKEN_FILE));
}

function tokenIn(path: string): string {
  try {
    return checkedToken(readFileSync(path, "utf8").trim(), path);
  } catch (error) {
    if (error instanceof Failure) throw error;
    throw noToken(`the token cannot be read from ${path}: ${wordsOf(error)}`);
  }
}

function checkedToken(token: string, source: string): string {
  if (/^[\x21-\x7e]{1,512}$/.test(token)) return token;
  throw noToken(`${source} holds no token`);
}

function noToken(message: string): Failure {
  return new Failure(EXIT.notPermitted, "unauthenticated", message, [
    "give one with --token-file FILE or CLANKIE_TOKEN, or --data DIR where clankie serve keeps its own",
  ]);
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && "code" in error ? error.code : undefined;
}

function wordsOf(error: unknown): string {
  switch (codeOf(error)) {
    case "ENOENT":
      return "there is no such file";
    case "EACCES":
    case "EPERM":
      return "reading it is not permitted";
    case "EISDIR":
      return "it is a directory";
    default:
      return error instanceof SyntaxError ? "it is no JSON" : error instanceof Error ? error.message : "unknown reason";
  }
}
