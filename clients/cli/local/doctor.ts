import { constants } from "node:fs";
import { lstat, open, readdir, statfs } from "node:fs/promises";
import { join } from "node:path";
import type { Command } from "commander";
import type { ServiceStatus } from "../../../protocol/operations.js";
import { dataDirectoryAt } from "../../../server/data-directory.js";
import { inspectStore } from "../../../server/store/inspect.js";
import type { Damage } from "../../../server/store/port.js";
import { nodeConnector } from "../../link/node.js";
import { openLink } from "../../link.js";
import { type Cli, leaf } from "../cli.js";
import { EXIT, type Exit } from "../exit.js";
import { dataDirectory } from "../settings.js";

/** One thing the doctor looked at. `next`: what a person can do about it. */
export interface Finding {
  readonly level: "ok" | "warning" | "fault";
  readonly about: "node" | "directory" | "files" | "tokens" | "service" | "store";
  readonly what: string;
  readonly next?: string;
}

/** `clankie doctor`. */
export function addDoctor(program: Command, cli: Cli): void {
  leaf(program, "doctor", "look for damage in the data directory and say what to do; changes nothing", [
    "doctor --data DIR",
  ]).action(async (_options: unknown, command: Command) => {
    const flags = command.optsWithGlobals();
    const console = cli.console(flags["json"] === true);
    const data = dataDirectory(flags["data"], cli.surroundings.env);
    const findings = await examine(data);
    const healthy = findings.every(({ level }) => level !== "fault");
    console.result({ data, healthy, findings }, (style) =>
      findings
        .flatMap(({ level, what, next }) => [
          `${style.bold(MARKS[level])} ${style.plain(what)}`,
          ...(next === undefined ? [] : [`        ${style.dim(next)}`]),
        ])
        .join("\n"),
    );
    cli.exitWith(exitOf(findings));
  });
}

const MARKS = { ok: "ok     ", warning: "warning", fault: "FAULT  " } as const;

const exitOf = (findings: readonly Finding[]): Exit =>
  findings.some(({ level }) => level === "fault") ? EXIT.failed : EXIT.done;

/** Below so many free bytes the store is about to fail. */
const LITTLE_SPACE = 100 * 1_024 * 1_024;
/** A service that does not answer within this time, in milliseconds, does not answer. */
const ANSWERS_WITHIN_MS = 5_000;

/** Everything the doctor finds about a data directory. Reads only: nothing is repaired, moved or removed. */
export async function examine(data: string): Promise<readonly Finding[]> {
  const findings: Finding[] = [];
  const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
  findings.push(
    major > 20 || (major === 20 && minor >= 19)
      ? { level: "ok", about: "node", what: `Node ${process.versions.node}` }
      : {
          level: "fault",
          about: "node",
          what: `Node ${process.versions.node} is too old`,
          next: "install Node 20.19 or newer",
        },
  );
  const directory = await examineDirectory(data);
  findings.push(...directory);
  if (directory.some(({ level }) => level === "fault")) return findings;
  findings.push(...(await examineFiles(data)));
  const running = await examineService(data);
  findings.push(...running);
  findings.push(...(await examineStore(data)));
  return findings;
}

async function examineDirectory(data: string): Promise<readonly Finding[]> {
  const found = await lstat(data).catch(() => null);
  const fault = (what: string, next: string): readonly Finding[] => [
    { level: "fault", about: "directory", what, next },
  ];
  if (found === null) {
    return fault(`there is no data directory ${data}`, "name it with --data DIR; clankie serve makes a new one");
  }
  if (found.isSymbolicLink()) return fault(`${data} is a link`, "name the directory itself");
  if (!found.isDirectory()) return fault(`${data} is not a directory`, "name another one with --data DIR");
  const uid = process.getuid?.();
  if (uid !== undefined && found.uid !== uid) {
    return fault(`${data} belongs to another user (${found.uid})`, "run clankie as that user");
  }
  const findings: Finding[] = [{ level: "ok", about: "directory", what: `data directory ${data}` }];
  if ((found.mode & 0o077) !== 0) {
    findings.push({
      level: "warning",
      about: "directory",
      what: `others may look into ${data} (mode ${modeOf(found.mode)})`,
      next: `chmod 700 ${data}; clankie serve does it at its start`,
    });
  }
  const { bavail, bsize } = await statfs(data);
  const free = Number(bavail) * Number(bsize);
  if (free < LITTLE_SPACE) {
    findings.push({
      level: "warning",
      about: "directory",
      what: `only ${Math.floor(free / 1_048_576)} MiB are free where ${data} is`,
      next: "make room: a store that cannot write takes no answers",
    });
  }
  return findings;
}

/** What lies in the data directory: nobody else's, for its owner alone, and no link. */
async function examineFiles(data: string): Promise<readonly Finding[]> {
  const findings: Finding[] = [];
  for (const path of await filesIn(data)) {
    const found = await lstat(path).catch(() => null);
    if (found === null) continue;
    if (found.isSymbolicLink()) {
      findings.push({
        level: "fault",
        about: "files",
        what: `${path} is a link, and the service puts none there`,
        next: "find out who put it there, and remove it while the service is stopped",
      });
    } else if ((found.mode & 0o077) !== 0) {
      findings.push({
        level: path.endsWith(".token") ? "fault" : "warning",
        about: "files",
        what: `others may read ${path} (mode ${modeOf(found.mode)})`,
        next: path.endsWith(".token")
          ? `chmod 600 ${path}, then rotate it: clankie credentials rotate ${nameOfToken(path)}`
          : `chmod 600 ${path}`,
      });
    }
    if (/\.[0-9a-f]{12}\.new$|db\.restoring$/.test(path)) {
      findings.push({
        level: "warning",
        about: "files",
        what: `${path} was left behind by something that was interrupted`,
        next: "it can be removed while the service is stopped",
      });
    }
  }
  if (findings.length === 0) findings.push({ level: "ok", about: "files", what: "files are for their owner alone" });
  return findings;
}

async function filesIn(data: string): Promise<readonly string[]> {
  const { store } = dataDirectoryAt(data);
  const paths: string[] = [];
  for (const directory of [data, store, join(store, "db")]) {
    for (const entry of await readdir(directory, { withFileTypes: true }).catch(() => [])) {
      if (!entry.isDirectory() || entry.name === "db.restoring") paths.push(join(directory, entry.name));
    }
  }
  return paths;
}

const nameOfToken = (path: string): string => /([^/]+)\.token$/.exec(path)?.[1] ?? "operator";
const modeOf = (mode: number): string => (mode & 0o7777).toString(8).padStart(4, "0");

async function examineService(data: string): Promise<readonly Finding[]> {
  const directory = dataDirectoryAt(data);
  const text = await readPlain(directory.serviceFile);
  if (text === null) return [{ level: "ok", about: "service", what: "no service is running here" }];
  const service = parsedService(text);
  if (service === null) {
    return [
      {
        level: "fault",
        about: "service",
        what: `${directory.serviceFile} is not what a service writes`,
        next: "stop the service, remove the file, start the service",
      },
    ];
  }
  if (!isAlive(service.pid)) {
    return [
      {
        level: "warning",
        about: "service",
        what: `the service of ${directory.serviceFile} (process ${service.pid}) ended without stopping`,
        next: "start it again: clankie serve; what was pending is cancelled then, and nothing answered is lost",
      },
    ];
  }
  const token = (await readPlain(directory.tokenFile("operator")))?.trim() ?? null;
  if (token === null || token === "") {
    return [
      {
        level: "fault",
        about: "tokens",
        what: `there is no token in ${directory.tokenFile("operator")}`,
        next: "remove the file if it is there and restart the service: it makes a new one",
      },
    ];
  }
  return await askService(service.url, token, directory.tokenFile("operator"));
}

async function askService(url: string, token: string, tokenFile: string): Promise<readonly Finding[]> {
  const answer = await statusOf(url, token);
  switch (answer.kind) {
    case "refused":
      return [
        { level: "ok", about: "service", what: `a service is running at ${url}` },
        {
          level: "fault",
          about: "tokens",
          what: `the token in ${tokenFile} is not the operator's (any more)`,
          next: `put the right one there, or remove ${tokenFile} and restart the service: it makes a new one`,
        },
      ];
    case "silent":
      return [
        {
          level: "fault",
          about: "service",
          what: `the service at ${url} does not answer`,
          next: "look at its log; restart it if it hangs",
        },
      ];
    case "status": {
      const { store, version } = answer.status;
      const findings: Finding[] = [{ level: "ok", about: "service", what: `clankie ${version} is running at ${url}` }];
      if (store.state !== "ready") {
        findings.push({
          level: "fault",
          about: "store",
          what: "the store has failed and takes no writes",
          next: "make room on the disk and look at the log; the service tries again by itself",
        });
      }
      for (const words of store.damage) findings.push({ level: "fault", about: "store", what: words, next: RESTORE });
      return findings;
    }
    default:
      return answer satisfies never;
  }
}

type Answer =
  | { readonly kind: "status"; readonly status: ServiceStatus }
  | { readonly kind: "refused" }
  | { readonly kind: "silent" };

async function statusOf(url: string, token: string): Promise<Answer> {
  const link = openLink({ url, token, connector: nodeConnector });
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<Answer>((resolve) => {
    timer = setTimeout(() => resolve({ kind: "silent" }), ANSWERS_WITHIN_MS);
  });
  const asked = link.ready().then(
    async (): Promise<Answer> => ({ kind: "status", status: await link.call("service_status", {}) }),
    (): Answer => ({ kind: "refused" }),
  );
  try {
    return await Promise.race([asked.catch((): Answer => ({ kind: "silent" })), late]);
  } finally {
    clearTimeout(timer);
    link.close();
  }
}

const RESTORE =
  "what is named is refused and the rest works; stop the service, keep a copy of the directory, " +
  "and restore the last backup into a new one: clankie restore FILE --data NEW_DIR";

async function examineStore(data: string): Promise<readonly Finding[]> {
  const inspection = await inspectStore(dataDirectoryAt(data).store);
  switch (inspection.found) {
    case "nothing":
      return [{ level: "ok", about: "store", what: "there is no store yet" }];
    case "locked":
      return [
        { level: "ok", about: "store", what: "the store is in use; stop the service to have every value checked" },
      ];
    case "unreadable":
      return [
        {
          level: "fault",
          about: "store",
          what: inspection.error.message,
          next: "keep a copy of the directory and restore the last backup into a new one: clankie restore FILE --data NEW_DIR",
        },
      ];
    case "store": {
      const { commits, damage } = inspection.report;
      if (damage.length === 0) return [{ level: "ok", about: "store", what: `the store is whole: ${commits} commits` }];
      return damage.map((one) => ({ level: "fault", about: "store", what: wordsOf(one), next: RESTORE }));
    }
    default:
      return inspection satisfies never;
  }
}

function wordsOf({ kind, detail, key }: Damage): string {
  const id = key === undefined ? undefined : /^(?:conversation|event)\/([^/]+)\//.exec(key)?.[1];
  const where = id === undefined ? (key === undefined ? "" : ` (${key})`) : ` (conversation ${id})`;
  return `${kind}: ${detail}${where}`;
}

/** A file's text; null where there is none or it is a link. */
async function readPlain(path: string): Promise<string | null> {
  const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW).catch(() => null);
  if (file === null) return null;
  try {
    return await file.readFile("utf8");
  } finally {
    await file.close();
  }
}

function parsedService(text: string): { readonly url: string; readonly pid: number } | null {
  try {
    const service: unknown = JSON.parse(text);
    if (typeof service !== "object" || service === null || !("url" in service) || !("pid" in service)) return null;
    const { url, pid } = service;
    return typeof url === "string" && typeof pid === "number" ? { url, pid } : null;
  } catch {
    return null;
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error instanceof Error && "code" in error && error.code === "EPERM";
  }
}
