import { readFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import type { AddressInfo } from "node:net";
import { collectDefaultMetrics } from "prom-client";
import type { Standing } from "../machines/facts.js";
import { BOUNDS } from "../protocol/bounds.js";
import { dataDirectoryAt, prepareDataDirectory, readToken, writePrivate } from "./data-directory.js";
import { type Environment, realEnvironment } from "./environment.js";
import { hostRules, originOf } from "./hosts.js";
import { httpServer } from "./http.js";
import { parsed } from "./json.js";
import { RateLimits, type Rates } from "./limits.js";
import { type Log, openLog } from "./log.js";
import { loadPage, servePage } from "./page.js";
import { CAPTAIN, OPERATOR, type PrincipalRegistry } from "./principals/registry.js";
import { startCommand } from "./runs/command.js";
import { LiveRuns } from "./runs/orphans.js";
import { type Recovered, Service } from "./service.js";
import { Sockets } from "./socket.js";
import { codeOf } from "./store/errors.js";
import { toBytes } from "./store/json.js";
import { openLevelStore } from "./store/level.js";
import type { Store } from "./store/port.js";
import { connectionLimits, Strangers } from "./strangers.js";

export interface ServeOptions {
  /** Where everything is kept; made for its owner alone where it is missing. */
  readonly dataDirectory: string;
  readonly host: string;
  /** 0 takes a free port. */
  readonly port: number;
  readonly retainEvents?: number;
  readonly allowOrigins?: readonly string[];
  readonly allowHosts?: readonly string[];
  readonly runTimeoutMs?: number;
  readonly logLevel?: string;
  /** How much one principal may ask; generous where not given. */
  readonly rates?: Rates;
  /** Tells of a long recovery. */
  readonly progress?: (done: number, of: number) => void;
}

export interface RunningService {
  readonly url: string;
  readonly dataDirectory: string;
  readonly operatorTokenFile: string;
  readonly pid: number;
  /** What was pending or running when the service last ended, and is cancelled or failed now. */
  readonly recovered: readonly Recovered[];
  /** Damages of the store in words for the operator. */
  readonly damage: readonly string[];
  /** Fails what runs, says goodbye, closes the store. Safe to call twice. */
  stop(): Promise<void>;
}

/** The service cannot start; the message says why and what to do. */
export class CannotServe extends Error {
  override readonly name = "CannotServe";

  constructor(
    message: string,
    /** `port_taken` where another port would do. */
    readonly reason: "port_taken" | "other" = "other",
  ) {
    super(message);
  }
}

/** What runs is ended within this time, and so is the store, in milliseconds. */
const STOP_MS = 15_000;

/** An hour: agents think long, but not forever. */
const RUN_TIMEOUT_MS = 3_600_000;

/** What agents get: the service shuts others out of its own files, not out of the files its agents make. */
const inheritedUmask = process.umask();

/** Variables of the service's own environment that an agent's command does not get. */
const PRIVATE_VARIABLES = /^(CLANKIE_|npm_|INIT_CWD$)/;

/**
 * Starts the service: opens the store, recovers, then listens. Contract sections 8 and 9.
 *
 * @throws {CannotServe} where the data directory is in use, cannot be written, or the port is taken.
 * @throws {StoreError} as `openLevelStore`.
 */
export async function serve(
  options: ServeOptions,
  environment: Environment = realEnvironment,
): Promise<RunningService> {
  process.umask(0o077);
  for (const origin of options.allowOrigins ?? []) {
    if (originOf(origin) === null)
      throw new CannotServe(`--allow-origin ${origin}: expected an origin such as https://example.org`);
  }
  const log = openLog(options.logLevel ?? "info");
  const directory = dataDirectoryAt(options.dataDirectory);
  await prepareDataDirectory(directory);
  const store = await openLevelStore(directory.store);
  try {
    const serviceId = await ownName(store, environment);
    const liveRuns = new LiveRuns(directory.runs);
    const orphaned = await liveRuns.endOrphans();
    if (orphaned.length > 0)
      log.warn({ runIds: orphaned }, "agents that an earlier life of the service left were ended");
    const service = new Service(
      {
        version: packageVersion(),
        dataDirectory: directory.path,
        serviceId,
        retainEvents: options.retainEvents ?? BOUNDS.retainedEvents,
        runTimeoutMs: options.runTimeoutMs ?? RUN_TIMEOUT_MS,
        startCommand: (command) => startCommand({ ...command, umask: inheritedUmask }),
        agentEnvironment: Object.fromEntries(
          Object.entries(process.env).flatMap(([name, value]) =>
            value === undefined || PRIVATE_VARIABLES.test(name) ? [] : [[name, value]],
          ),
        ),
        liveRuns,
        operatorTokenChanged: async (id, token) => {
          if (id !== OPERATOR && id !== CAPTAIN) return;
          // The new token is the only one by now: whoever rotated it gets it, whatever becomes of the file.
          await writePrivate(directory.tokenFile(id), `${token}\n`).catch((error: unknown) =>
            log.error({ credentialId: id, error: String(error) }, "the new token could not be written to its file"),
          );
        },
      },
      store,
      environment,
      log,
    );
    collectDefaultMetrics({ register: service.metrics.registry });
    const recovered = await service.recover(options.progress ?? (() => undefined));
    await firstCredentials(service.principals, directory.tokenFile, log);
    const { damage } = store.status().report;
    for (const { kind, detail, key } of damage) log.error({ kind, key }, detail);

    const limits = connectionLimits();
    const strangers = new Strangers(limits.strangers, () => service.metrics.turnedAway.inc());
    const sockets = new Sockets(service, environment, log, {
      rates: new RateLimits(environment, options.rates),
      strangers,
      ofOnePrincipal: limits.ofOnePrincipal,
    });
    const page = loadPage();
    const server = httpServer({
      service,
      sockets,
      rules: hostRules(options.host, options.allowHosts ?? [], options.allowOrigins ?? []),
      servePage: (request, response) => servePage(page, request, response),
      backup: () => store.backup(),
      strangers,
      connections: limits.connections,
      environment,
      log,
    });
    const url = await listen(server, options.host, options.port);
    service.listening(url);
    await writePrivate(directory.serviceFile, `${JSON.stringify({ url, pid: process.pid })}\n`);

    const close = async (): Promise<void> => {
      // A disk that hangs is not waited for: what it did not take was not acknowledged.
      const inTime = await within(STOP_MS, service.stop());
      if (!inTime) log.error("what runs could not be ended in time");
      sockets.close();
      server.close();
      const closed = new Promise((resolve) => server.once("close", resolve));
      environment.after(2_000, () => {
        sockets.terminate();
        server.closeAllConnections();
      });
      server.closeIdleConnections();
      await Promise.race([closed, new Promise((resolve) => setTimeout(resolve, 3_000).unref())]);
      await rm(directory.serviceFile, { force: true });
      await within(STOP_MS, store.close());
    };
    let stopping: Promise<void> | undefined;
    return {
      url,
      dataDirectory: directory.path,
      operatorTokenFile: directory.tokenFile(OPERATOR),
      pid: process.pid,
      recovered,
      damage: damage.map(({ kind, detail }) => `${kind}: ${detail}`),
      stop: () => {
        stopping ??= close();
        return stopping;
      },
    };
  } catch (error) {
    await store.close();
    throw error;
  }
}

/** Whether a part of the stop was done within `ms` milliseconds. Rejects as it does. */
async function within(ms: number, part: Promise<void>): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<boolean>((resolve) => {
    timer = setTimeout(() => resolve(false), ms);
  });
  try {
    return await Promise.race([part.then(() => true), late]);
  } finally {
    clearTimeout(timer);
  }
}

const SERVICE_KEY = "service";

/** The name by which this data directory's service knows its own pending questions and runs. */
async function ownName(store: Store, environment: Environment): Promise<string> {
  const stored = await store.get(SERVICE_KEY);
  const known = stored === null ? undefined : (parsed(stored) as { serviceId?: string } | undefined)?.serviceId;
  if (known !== undefined) return known;
  const serviceId = environment.uuid();
  const outcome = await store.commit({
    head: SERVICE_KEY,
    expected: null,
    puts: [{ key: SERVICE_KEY, value: toBytes({ serviceId }) }],
    deletes: [],
  });
  if (outcome.outcome !== "ok") throw new CannotServe("the store takes no writes; is the disk full?");
  return serviceId;
}

/**
 * Makes the operator's and the captain's credentials at the first start. A token whose file is gone is made anew, and so is
 * an operator's that was revoked or has expired: whoever owns the data directory is the operator.
 */
async function firstCredentials(
  principals: PrincipalRegistry,
  tokenFile: (id: string) => string,
  log: Log,
): Promise<void> {
  for (const id of [OPERATOR, CAPTAIN] as const) {
    const file = tokenFile(id);
    const token = await readToken(file);
    if (!principals.has(id)) {
      const issued = await principals.issue({ id, kind: id });
      await writePrivate(file, `${issued.token}\n`);
    } else if (mustRenew(id, token, principals.standingOf(id))) {
      await writePrivate(file, `${await principals.renew(id)}\n`);
      log.warn({ credentialId: id, file }, "the token was gone, revoked or expired; a new one is in this file");
    } else if (token !== null && !principals.holds(id, token)) {
      log.warn({ credentialId: id, file }, "the token in this file is not the credential's");
    }
  }
}

/** The service always has an operator; a captain that was revoked stays so. */
const mustRenew = (id: string, token: string | null, standing: Standing): boolean =>
  id === OPERATOR ? token === null || standing !== "good" : token === null && standing === "good";

function listen(server: ReturnType<typeof httpServer>, host: string, port: number): Promise<string> {
  return new Promise((resolve, reject) => {
    server.once("error", (error) => {
      const code = codeOf(error) ?? "";
      const why =
        code === "EADDRINUSE"
          ? `port ${port} on ${host} is taken; use --port 0 for a free one, or another number`
          : `cannot listen on ${host} port ${port} (${code})`;
      reject(new CannotServe(why, code === "EADDRINUSE" ? "port_taken" : "other"));
    });
    server.listen(port, host, () => {
      const { port: taken } = server.address() as AddressInfo;
      const name = host === "0.0.0.0" ? "127.0.0.1" : host === "::" ? "[::1]" : host.includes(":") ? `[${host}]` : host;
      resolve(`http://${name}:${taken}`);
    });
  });
}

function packageVersion(): string {
  const file = new URL("../../package.json", import.meta.url);
  return (JSON.parse(readFileSync(file, "utf8")) as { readonly version: string }).version;
}
