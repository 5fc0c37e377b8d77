import { existsSync } from "node:fs";
import { mkdtemp, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import type { Method, Params, Result } from "../../protocol/operations.js";
import { Fault } from "../../server/fault.js";
import { openLog } from "../../server/log.js";
import { type Call, Service, Subscriber } from "../../server/service.js";
import { toBytes } from "../../server/store/json.js";
import { type MemoryStore, openMemoryStore, type StoreFaults } from "../../server/store/memory.js";
import type { Commit, Store } from "../../server/store/port.js";
import { TestEnvironment } from "../clock.js";
import { parseAsOlderClient } from "../lifecycle.js";
import { CHOICE, TEXT, targetOf } from "../world.js";

type Guarded = Exclude<Method, "authenticate" | "device_pair_complete">;

/** A service over the store in memory, whose faults a test chooses as it goes. */
class Faulty {
  faults: StoreFaults = {};
  readonly time = new TestEnvironment();
  readonly commits: Commit[] = [];
  memory: MemoryStore;
  service: Service;
  #operator: Call | undefined;

  private constructor(readonly directory: string) {
    this.memory = openMemoryStore(this.#hooks());
    this.service = this.#serviceOver(this.memory);
  }

  static async make(): Promise<Faulty> {
    const world = new Faulty(await realpath(await mkdtemp(join(tmpdir(), "clankie-faults-"))));
    await world.service.recover(() => undefined);
    const issued = await world.service.principals.issue({ id: "operator", kind: "operator" });
    world.#operator = world.call(issued.token);
    return world;
  }

  async end(): Promise<void> {
    for (let after: string | undefined; ; ) {
      const page = await this.memory.range("event/", { limit: 500, ...(after !== undefined && { after }) });
      for (const { value } of page) parseAsOlderClient(JSON.parse(Buffer.from(value).toString()));
      after = page.at(-1)?.key;
      if (page.length < 500) break;
    }
    await rm(this.directory, { recursive: true });
  }

  call(token: string): Call {
    const presented = this.service.principals.authenticate(token);
    if (presented === null) throw new Error("this token is not valid");
    const outlet = { congested: false, send: () => undefined, whenClear: () => undefined };
    return { presented, subscriber: new Subscriber(outlet), afterReply: (task) => void setImmediate(task) };
  }

  request<M extends Guarded>(method: M, params: Omit<Params<M>, "schemaVersion">): Promise<Result<M>> {
    if (this.#operator === undefined) throw new Error("there is no operator yet");
    return this.service.request(method, { schemaVersion: 1, ...params } as Params<M>, this.#operator);
  }

  async fault<M extends Guarded>(method: M, params: Omit<Params<M>, "schemaVersion">): Promise<string> {
    try {
      await this.request(method, params);
    } catch (error) {
      if (error instanceof Fault) return error.data.code;
      throw error;
    }
    throw new Error(`${method} succeeded`);
  }

  async conversation(command?: readonly string[]): Promise<string> {
    const { conversation } = await this.request("conversation_create", {
      scope: { kind: "workspace", workspaceId: this.directory },
      ...(command !== undefined && { runner: { kind: "command", command: [...command] } }),
    });
    return conversation.conversationId;
  }

  async pending(conversationId?: string) {
    const id = conversationId ?? (await this.conversation());
    const asked = await this.request("request_user_input", { conversationId: id, ...CHOICE } as never);
    const optionId = asked.question!.options[0]!.optionId;
    return { conversationId: id, target: targetOf(asked), answer: { kind: "choice", optionId } as const };
  }

  async show(conversationId: string) {
    return (await this.request("conversation_show", { conversationId })).conversation;
  }

  /** The process dies and starts again over what was durable; `wrapped` stands before the store. */
  async restart(wrapped: (store: Store) => Store = (store) => store): Promise<void> {
    this.memory = this.memory.crash(this.#hooks());
    this.service = this.#serviceOver(wrapped(this.memory));
    await this.service.recover(() => undefined);
  }

  #hooks(): StoreFaults {
    return {
      commit: (commit, attempt) => {
        this.commits.push(commit);
        return this.faults.commit?.(commit, attempt) ?? { kind: "ok" };
      },
      read: (key) => this.faults.read?.(key) ?? { kind: "ok" },
      reopen: () => this.faults.reopen?.(),
    };
  }

  #serviceOver(store: Store): Service {
    return new Service(
      {
        version: "0",
        dataDirectory: this.directory,
        serviceId: "the-service",
        retainEvents: 1_000,
        runTimeoutMs: 60_000,
        agentEnvironment: { PATH: process.env["PATH"] ?? "" },
        operatorTokenChanged: async () => undefined,
      },
      store,
      this.time,
      openLog("silent"),
    );
  }
}

const faulty = (body: (world: Faulty) => Promise<void>) => async () => {
  const world = await Faulty.make();
  await body(world);
  await world.end();
};

const broken = new Error("no space left on device");
const isOf = (commit: Commit, conversationId: string): boolean => commit.head === `conversation/${conversationId}/head`;

test(
  "[8.5, 8.6] an answer whose commit failed before it was durable leaves everything as it was; then the store is reopened first",
  faulty(async (world) => {
    const { conversationId, target, answer } = await world.pending();
    const before = await world.show(conversationId);
    let reopened = 0;
    world.faults = {
      commit: () => ({ kind: "failed", error: broken }),
      reopen: () => {
        reopened += 1;
        return undefined;
      },
    };
    assert.is(await world.fault("input_answer", { ...target, answer }), "storage_unavailable");
    world.faults = { reopen: world.faults.reopen! };
    const answered = await world.request("input_answer", { ...target, answer });
    assert.is(answered.status, "resolved");
    assert.is(answered.revision, before.revision + 1);
    assert.is(reopened, 1);
  }),
);

test(
  "[8.6] while the store is away nothing is acknowledged; back again, everything goes on as it was",
  faulty(async (world) => {
    const { conversationId, target, answer } = await world.pending();
    let isAway = true;
    world.faults = {
      commit: () => (isAway ? { kind: "failed", error: broken } : { kind: "ok" }),
      reopen: () => (isAway ? broken : undefined),
    };
    for (const _ of [1, 2]) {
      assert.is(await world.fault("input_answer", { ...target, answer }), "storage_unavailable");
      assert.is(await world.fault("conversation_send", { conversationId, message: "hello" }), "storage_unavailable");
      assert.is(await world.fault("credential_issue", { kind: "captain" }), "storage_unavailable");
      assert.is(await world.fault("project_add", { path: world.directory }), "storage_unavailable");
      assert.is(await world.fault("conversation_create", { scope: { kind: "global" } }), "storage_unavailable");
    }
    isAway = false;
    // Each kind of record is written again without another's help.
    assert.is((await world.request("credential_issue", { kind: "captain" })).kind, "captain");
    assert.is((await world.request("project_add", { path: world.directory })).projectsRevision, 1);
    assert.is((await world.request("input_answer", { ...target, answer })).status, "resolved");
  }),
);

test(
  "[8.8] an answer found durable after an unknown outcome is submitted, its continuation failed and never started",
  faulty(async (world) => {
    const started = join(world.directory, "started");
    const conversationId = await world.conversation(["sh", "-c", `touch ${started}`]);
    const { target, answer } = await world.pending(conversationId);
    world.faults = {
      commit: () => {
        world.faults = {};
        return { kind: "unknown", error: broken, durable: true };
      },
    };
    const answered = await world.request("input_answer", { ...target, answer });
    assert.is(answered.status, "resolved");
    assert.is(answered.question?.status, "submitted");
    const runId = answered.question!.continuation!.runId;
    assert.equal(answered.question?.continuation, { runId, state: "failed", reasonCode: "acceptance_interrupted" });
    const again = await world.request("input_answer", { ...target, answer });
    assert.equal(again.question, answered.question);
    const { activeRun, queuedRuns } = await world.show(conversationId);
    assert.equal([activeRun, queuedRuns], [null, 0]);
    await world.service.stop(); // waits for every run there is
    assert.not(existsSync(started));
  }),
);

test(
  "[8.8] an answer not found after an unknown outcome was not stored, and the question is pending as before",
  faulty(async (world) => {
    const { conversationId, target, answer } = await world.pending();
    const before = await world.show(conversationId);
    world.faults = {
      commit: () => {
        world.faults = {};
        return { kind: "unknown", error: broken, durable: false };
      },
    };
    assert.is(await world.fault("input_answer", { ...target, answer }), "storage_unavailable");
    assert.equal(await world.show(conversationId), before);
    assert.is((await world.request("input_answer", { ...target, answer })).status, "resolved");
  }),
);

test(
  "[8.8] nothing is said of a conversation whose last outcome is unknown before the store has been read",
  faulty(async (world) => {
    const { conversationId, target, answer } = await world.pending();
    let isAway = true;
    world.faults = {
      commit: () => (isAway ? { kind: "unknown", error: broken, durable: true } : { kind: "ok" }),
      reopen: () => (isAway ? broken : undefined),
    };
    assert.is(await world.fault("input_answer", { ...target, answer }), "storage_unavailable");
    assert.is(await world.fault("conversation_show", { conversationId }), "storage_unavailable");
    assert.is(await world.fault("input_get", { conversationId }), "storage_unavailable");
    isAway = false;
    const receipt = (await world.show(conversationId)).receipts[target.requestId];
    assert.is(receipt?.status, "submitted");
    assert.is(receipt?.continuation?.reasonCode, "acceptance_interrupted");
  }),
);

test(
  "[8] a revocation, a rotation and a project of unknown outcome are what the store says, once it can say it",
  faulty(async (world) => {
    const durable = (isDurable: boolean): void => {
      world.faults = {
        commit: () => {
          world.faults = {};
          return { kind: "unknown", error: broken, durable: isDurable };
        },
      };
    };
    const issued = await world.request("credential_issue", { kind: "captain" });
    durable(false);
    assert.is(await world.fault("credential_revoke", { credentialId: issued.credentialId }), "storage_unavailable");
    assert.ok(world.service.principals.authenticate(issued.token));
    durable(true);
    const rotated = await world.request("credential_rotate", { credentialId: issued.credentialId });
    assert.is(world.service.principals.authenticate(issued.token), null);
    durable(true);
    await world.request("credential_revoke", { credentialId: issued.credentialId });
    assert.is(world.service.principals.authenticate(rotated.token), null);
    durable(true);
    assert.is((await world.request("project_add", { path: world.directory })).projectsRevision, 1);
    assert.is((await world.request("project_list", {})).projects.length, 1);
  }),
);

test(
  "[8.9] a stored state that does not parse makes its conversation unavailable, never empty, and the others go on",
  faulty(async (world) => {
    const damaged = await world.pending();
    const other = await world.pending();
    const head = await world.memory.get(`conversation/${damaged.conversationId}/head`);
    const garbage = { ...JSON.parse(Buffer.from(head!).toString()), oldestEvent: 1 };
    await world.memory.commit({
      head: `conversation/${damaged.conversationId}/head`,
      expected: head,
      puts: [
        { key: `conversation/${damaged.conversationId}/head`, value: toBytes(garbage) },
        { key: `conversation/${damaged.conversationId}/state`, value: toBytes({ format: 1, state: {} }) },
      ],
      deletes: [],
    });
    await world.restart();
    const { conversationId, target, answer } = damaged;
    for (const fault of [
      await world.fault("conversation_show", { conversationId }),
      await world.fault("input_get", { conversationId }),
      await world.fault("input_answer", { ...target, answer }),
      await world.fault("input_cancel", target),
      await world.fault("request_user_input", { conversationId, ...TEXT } as never),
      await world.fault("conversation_send", { conversationId, message: "hello" }),
    ]) {
      assert.is(fault, "question_state_unavailable");
    }
    const receipt = (await world.show(other.conversationId)).receipts[other.target.requestId];
    assert.is(receipt?.reason, "service_restarted");
    assert.equal(
      (await world.request("conversation_list", {})).conversations.map((each) => each.conversationId),
      [other.conversationId],
    );
    await world.pending(other.conversationId);
  }),
);

test(
  "[8.4] a start costs by the active conversations: five thousand idle ones are not read",
  faulty(async (world) => {
    const cost = async (): Promise<number> => {
      let reads = 0;
      await world.restart(
        (store) =>
          new Proxy(store, {
            get(target, name) {
              const member: unknown = Reflect.get(target, name);
              if (typeof member !== "function") return member;
              if (name === "get" || name === "range") reads += 1;
              return member.bind(target) as unknown;
            },
          }),
      );
      return reads;
    };
    const active = await world.pending();
    const few = await cost();
    await world.pending(active.conversationId);
    for (let count = 0; count < 5_000; count += 100) {
      await Promise.all(
        Array.from({ length: 100 }, () => world.request("conversation_create", { scope: { kind: "global" } })),
      );
    }
    assert.is(await cost(), few);
    assert.is((await world.request("service_status", {})).counts.conversations, 5_001);
  }),
);

test(
  "[8.1] a start that cannot store that a question is cancelled does not go on as if it had",
  faulty(async (world) => {
    const { conversationId, target } = await world.pending();
    world.faults = { commit: () => ({ kind: "failed", error: broken }), reopen: () => broken };
    await world.restart().then(
      () => assert.unreachable("it accepted connections with a question pending from before"),
      (error: unknown) => assert.instance(error, Fault),
    );
    world.faults = {};
    await world.restart();
    assert.is((await world.show(conversationId)).receipts[target.requestId]?.reason, "service_restarted");
  }),
);

test(
  "[8] a run keeps its place while the store is away, and is begun when it is back",
  faulty(async (world) => {
    const conversationId = await world.conversation(["true"]);
    let commits = 0;
    world.faults = {
      commit: (commit) => {
        if (isOf(commit, conversationId)) commits += 1;
        return commits === 2 ? { kind: "failed", error: broken } : { kind: "ok" }; // the one that begins the run
      },
    };
    await world.request("conversation_send", { conversationId, message: "go" });
    // Accepted, not begun, begun after all, settled.
    for (let seen = 0; commits < 4; seen += 1) {
      if (seen > 1_000_000) assert.unreachable("the run was never begun");
      world.time.pass(1_000);
      await new Promise((resolve) => setImmediate(resolve));
    }
    await world.service.stop();
  }),
);

test.run();
