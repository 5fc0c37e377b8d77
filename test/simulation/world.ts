import { pino } from "pino";
import { RateLimits } from "../../server/limits.js";
import type { CommandEnd, CommandOptions, CommandProcess } from "../../server/runs/command.js";
import { Service, type Workspaces } from "../../server/service.js";
import type { MemoryStore } from "../../server/store/memory.js";
import { requestIdIn } from "../history/records.js";
import { type Members, type Person, Recorder, type Reply, Socket } from "./clients.js";
import { SimulatedEnvironment } from "./clock.js";
import { Disk, emptyStore, SlowStore } from "./disk.js";
import { Ledger } from "./ledger.js";
import { quiet, Tasks } from "./tasks.js";

/** A command that a run has started. */
export interface Agent {
  readonly runId: string;
  readonly conversationId: string;
  readonly person: Person;
  isOver: boolean;
  say(line: string): void;
  end(code: number): void;
}

/** What has become known of a conversation from any reply: what a client would act on. */
export interface Seen {
  readonly conversationId: string;
  incarnationId: string;
  revision: number;
  question: Members | null;
  readonly requests: Members[];
  readonly runs: string[];
  cursors: string[];
}

const DIRECTORIES = ["/work/a", "/work/b", "/work/c"] as const;
const FEW_EVENTS = 9;
/** The cursor from which on a new conversation's whole history is read. */
const BEGINNING = "0000000000000000";

/** The world before anything happens, made once: its disk, and who has which token. */
interface Beginning {
  readonly store: MemoryStore;
  readonly environment: SimulatedEnvironment;
  readonly tokens: Readonly<Record<string, string>>;
  readonly ids: Readonly<Record<string, string>>;
  readonly conversations: readonly Members[];
}

/**
 * The service's core in one process, with everything around it simulated: clock, ids, disk, sockets, directories and
 * commands. Nothing in it is random: what happens is what the schedule says, and twice the same schedule is twice the
 * same history.
 */
export class World {
  readonly tasks = new Tasks();
  readonly ledger = new Ledger();
  readonly recorder = new Recorder(this.ledger);
  readonly disk = new Disk(this.tasks, this.ledger);
  readonly environment: SimulatedEnvironment;
  readonly people: Person[] = [];
  readonly seen: Seen[] = [];
  readonly agents: Agent[] = [];
  readonly ids: Readonly<Record<string, string>>;
  /** What the log was told as an error that may never be. */
  readonly faults: string[] = [];
  slowLooks = false;
  /** Which directory each path leads to now. */
  readonly inodes = new Map<string, string | null>(DIRECTORIES.map((path, index) => [path, `${index + 1}`]));
  service: Service | null = null;
  #store: SlowStore | null = null;
  #durable: MemoryStore | null;
  #life = 0;
  readonly #rates: RateLimits;
  readonly #log = pino(
    { level: "error" },
    {
      write: (line: string) => {
        if (line.includes("a request failed unexpectedly")) this.faults.push(line);
      },
    },
  );

  constructor(beginning: Beginning) {
    this.#durable = beginning.store.crash(this.disk);
    this.environment = beginning.environment;
    this.#rates = new RateLimits(this.environment);
    this.ids = beginning.ids;
    for (const [name, token] of Object.entries(beginning.tokens)) {
      this.people.push({ name, token, socket: null, sockets: 0 });
    }
    for (const conversation of beginning.conversations) this.#meet(conversation);
  }

  person(name: string): Person {
    const person = this.people.find((each) => each.name === name);
    if (person === undefined) throw new Error(`nobody is called ${name}`);
    return person;
  }

  /** Starts the service; it accepts connections once it has recovered. */
  async start(): Promise<void> {
    if (this.#store !== null || this.#durable === null) return;
    this.#life += 1;
    const life = this.#life;
    const store = new SlowStore(this.#durable, this.disk, this.tasks);
    this.#store = store;
    this.#durable = null;
    const service = new Service(
      {
        version: "0.0.0",
        dataDirectory: "/data",
        serviceId: "service",
        retainEvents: FEW_EVENTS,
        runTimeoutMs: 60_000,
        keptInMemory: 1,
        agentEnvironment: {},
        operatorTokenChanged: async (id, token) => {
          if (id !== "operator") return;
          this.person("operator-1").token = token;
          this.person("operator-2").token = token;
        },
        workspaces: this.#workspaces(),
        startCommand: (options) => this.#startCommand(options, life),
      },
      store,
      this.environment,
      this.#log,
    );
    const isThisLife = (): boolean => this.#life === life;
    const started = async (): Promise<void> => {
      await service.recover(() => undefined);
      if (!isThisLife()) return;
      if (!service.principals.has("operator")) {
        const { token } = await service.principals.issue({ id: "operator", kind: "operator" });
        this.person("operator-1").token = token;
        this.person("operator-2").token = token;
        this.person("captain").token = (await service.principals.issue({ id: "captain", kind: "captain" })).token;
      }
      // As `clankie serve` does where the owner has deleted a token file: who has lost the operator's token gets one.
      if (!service.principals.holds("operator", this.person("operator-1").token)) {
        const { token } = await service.principals.rotate("operator");
        this.person("operator-1").token = token;
        this.person("operator-2").token = token;
      }
      if (!isThisLife()) return;
      service.credentialsChanged = () => {
        for (const { socket } of this.people) socket?.review();
      };
      service.listening("http://127.0.0.1:1");
      this.service = service;
      this.recorder.add({ type: "start" });
    };
    void started().catch((error: unknown) => {
      // The disk was away at the start: the process ends, and somebody starts it again.
      if (!isThisLife()) return;
      this.recorder.trace.push(`did not start: ${String(error)}`);
      this.crash();
    });
    await quiet();
  }

  /** The process is killed, here and now. Returns what is left. */
  crash(): MemoryStore {
    this.#life += 1;
    this.tasks.drop();
    this.environment.dropTimers();
    for (const { socket } of this.people) socket?.die();
    for (const agent of this.agents) agent.isOver = true;
    const durable = this.#store === null ? this.#durable : this.#store.crash();
    if (durable === null) throw new Error("there is no disk");
    this.#durable = durable;
    this.#store = null;
    this.service = null;
    this.recorder.trace.push("crash");
    return durable;
  }

  /** A graceful stop, which may take as long as the schedule wants, and then the end. */
  stop(): void {
    const { service } = this;
    const life = this.#life;
    if (service === null) return;
    void service.stop().then(() => {
      if (this.#life === life) this.crash();
    });
  }

  /** Sends a request as this person, on the socket that is open or a new one. */
  request(person: Person, method: string, params: Members, isLate = false, then?: (reply: Reply) => void): boolean {
    const { service } = this;
    if (service === null) return false;
    if (person.socket === null || !person.socket.isOpen || !person.socket.isAuthenticated) {
      person.sockets += 1;
      const name = `${person.name}#${person.sockets}`;
      person.socket = new Socket(name, service, person.token, this.recorder, this.#rates, this.#log);
    }
    const send = person.socket.request(method, params, (reply) => {
      this.#learn(person, method, params, reply);
      then?.(reply);
    });
    if (isLate) this.tasks.later(`frame of ${person.socket.name}`, send);
    else send();
    return true;
  }

  /** A request and its reply, with nothing else going on. */
  async ask(person: Person, method: string, params: Members = {}): Promise<Reply | undefined> {
    let reply: Reply | undefined;
    this.request(person, method, params, false, (each) => {
      reply = each;
    });
    await this.tasks.drain();
    return reply;
  }

  /** Closes a socket whose credential was rotated away, so that the next request uses the new one. */
  #learn(person: Person, method: string, params: Members, reply: Reply): void {
    if (!reply.ok) {
      if (reply.code === "unauthenticated") person.socket?.cut();
      return;
    }
    const { result } = reply;
    switch (method) {
      case "credential_rotate": {
        const rotated = this.people.filter(({ name }) => this.ids[name] === params["credentialId"]);
        for (const each of rotated) each.token = String(result["token"]);
        break;
      }
      default:
    }
    const snapshot = (result["conversation"] ?? result["snapshot"]) as Members | undefined;
    if (snapshot !== undefined && typeof snapshot["conversationId"] === "string") this.#meet(snapshot);
    if (typeof result["conversationId"] === "string") this.#meetResult(result);
    const { conversationId } = params;
    const seen = this.seen.find((each) => each.conversationId === conversationId);
    if (seen === undefined) return;
    if (typeof result["runId"] === "string") seen.runs.push(result["runId"]);
    if (typeof result["revision"] === "number") seen.revision = Math.max(seen.revision, result["revision"]);
    if (typeof result["next"] === "string")
      seen.cursors = [BEGINNING, ...seen.cursors.slice(1), result["next"]].slice(0, 4);
  }

  #meetResult(result: Members): void {
    const seen = this.seen.find((each) => each.conversationId === result["conversationId"]);
    if (seen === undefined) return;
    if (typeof result["incarnationId"] === "string") seen.incarnationId = result["incarnationId"];
    if (typeof result["revision"] === "number") seen.revision = result["revision"];
    if (typeof result["question"] === "object" && result["question"] !== null) {
      this.#meetQuestion(seen, result["question"] as Members);
    }
  }

  #meet(snapshot: Members): void {
    const conversationId = String(snapshot["conversationId"]);
    let seen = this.seen.find((each) => each.conversationId === conversationId);
    if (seen === undefined) {
      seen = {
        conversationId,
        incarnationId: "",
        revision: 0,
        question: null,
        requests: [],
        runs: [],
        cursors: [BEGINNING],
      };
      this.seen.push(seen);
    }
    seen.incarnationId = String(snapshot["incarnationId"]);
    seen.revision = Number(snapshot["revision"]);
    seen.question = null;
    if (snapshot["question"]) this.#meetQuestion(seen, snapshot["question"] as Members);
    const active = snapshot["activeRun"] as Members | null | undefined;
    if (active && !seen.runs.includes(String(active["runId"]))) seen.runs.push(String(active["runId"]));
  }

  #meetQuestion(seen: Seen, question: Members): void {
    if (question["status"] === "pending") seen.question = question;
    else if (seen.question?.["requestId"] === question["requestId"]) seen.question = null;
    const known = seen.requests.findIndex(({ requestId }) => requestId === question["requestId"]);
    if (known >= 0) seen.requests.splice(known, 1);
    seen.requests.push(question);
    const continuation = question["continuation"] as Members | undefined;
    if (continuation !== undefined && !seen.runs.includes(String(continuation["runId"]))) {
      seen.runs.push(String(continuation["runId"]));
    }
  }

  #workspaces(): Workspaces {
    const look = async (): Promise<void> => {
      if (this.slowLooks) await this.tasks.pause("look at a directory");
    };
    return {
      resolve: async (path) => {
        await look();
        const inode = this.inodes.get(path);
        return inode === undefined || inode === null
          ? { ok: false, reason: "missing" }
          : { ok: true, identity: { given: path, path, device: "1", inode } };
      },
      same: async ({ given, inode }) => {
        await look();
        const isSame = this.inodes.get(given) === inode;
        await look();
        return isSame;
      },
      membership: async (directory) => {
        await look();
        return { workspace: directory, project: "unassigned", projectsRevision: 0 };
      },
    };
  }

  #startCommand({ env, message, onLines }: CommandOptions, life: number): CommandProcess {
    const runId = env["CLANKIE_RUN"] ?? "";
    const conversationId = env["CLANKIE_CONVERSATION"] ?? "";
    const requestId = requestIdIn(message);
    if (this.#life === life) {
      this.recorder.add({ type: "run", conversationId, runId, ...(requestId !== undefined && { requestId }) });
    }
    let finish: (end: CommandEnd) => void = () => undefined;
    let fail: (error: unknown) => void = () => undefined;
    const finished = new Promise<CommandEnd>((resolve, reject) => {
      finish = resolve;
      fail = reject;
    });
    const over = (): void => {
      agent.isOver = true;
      agent.person.socket?.cut();
    };
    const agent: Agent = {
      runId,
      conversationId,
      person: { name: `agent of ${runId}`, token: env["CLANKIE_TOKEN"] ?? "", socket: null, sockets: 0 },
      isOver: false,
      say: (line) => {
        onLines([line]).catch((error: unknown) => {
          over();
          fail(error);
        });
      },
      end: (code) => {
        over();
        finish({ kind: "exited", code });
      },
    };
    this.agents.push(agent);
    return {
      finished,
      cancel: () => {
        over();
        finish({ kind: "cancelled" });
      },
    };
  }
}

/** Makes the world in which every schedule begins, once: through the socket, as its owner would. */
export async function makeBeginning(): Promise<() => World> {
  const environment = new SimulatedEnvironment();
  const store = emptyStore(new Disk(new Tasks(), new Ledger()));
  const named = (name: string, token = ""): Person => ({ name, token, socket: null, sockets: 0 });
  const world = new World({
    store,
    environment,
    tokens: { "operator-1": "", "operator-2": "", captain: "" },
    ids: {},
    conversations: [],
  });
  await world.start();
  await world.tasks.drain();
  const operator = world.person("operator-1");
  const done = async (person: Person, method: string, params: Members = {}): Promise<Members> => {
    const reply = await world.ask(person, method, params);
    if (reply?.ok !== true) throw new Error(`${method}: ${JSON.stringify(reply)}`);
    return reply.result;
  };
  const conversations: Members[] = [];
  const create = async (params: Members): Promise<string> => {
    const { conversation } = (await done(operator, "conversation_create", params)) as { conversation: Members };
    conversations.push(conversation);
    return String(conversation["conversationId"]);
  };
  const [one, other, third] = DIRECTORIES;
  await create({ scope: { kind: "workspace", workspaceId: one }, runner: { kind: "command", command: ["agent"] } });
  const attached = [
    await create({ scope: { kind: "workspace", workspaceId: other } }),
    await create({ scope: { kind: "workspace", workspaceId: third } }),
  ];
  await create({ scope: { kind: "room" } });
  const ids: Record<string, string> = { "operator-1": "operator", "operator-2": "operator", captain: "captain" };
  const tokens: Record<string, string> = {
    "operator-1": operator.token,
    "operator-2": operator.token,
    captain: world.person("captain").token,
  };
  for (const [name, mode] of [
    ["device-a", "active"],
    ["device-b", "active"],
    ["device-r", "read-only"],
  ] as const) {
    const { code } = await done(operator, "device_pair_begin", { mode });
    const device = await done(named("nobody"), "device_pair_complete", { code, name });
    ids[name] = String(device["deviceId"]);
    tokens[name] = String(device["token"]);
  }
  for (const [index, conversationId] of attached.entries()) {
    const name = `agent-${index + 1}`;
    const agent = await done(operator, "credential_issue", { kind: "agent", conversationId });
    ids[name] = String(agent["credentialId"]);
    tokens[name] = String(agent["token"]);
  }
  const durable = world.crash();
  return () => new World({ store: durable, environment: environment.fork(), tokens, ids, conversations });
}
