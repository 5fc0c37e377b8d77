import fc from "fast-check";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import type { Members } from "./clients.js";
import type { CommitFault } from "./disk.js";
import * as model from "./model.js";
import { makeBeginning, type World } from "./world.js";

const test = suite("the service and a simple model of sections 6 to 8");

const RUNS = Number(process.env["MODEL_RUNS"] ?? 1_000);
const SEED = Number(process.env["MODEL_SEED"] ?? 1);
const PLACE = 1;
const NOBODY = "00000000-0000-4000-8000-ffffffffffff";
const RESPONDERS = ["operator-1", "device-a", "device-b", "device-r", "captain", "agent-1"] as const;

type Command = { readonly what: What; readonly who: number; readonly pick: number; readonly fault: CommitFault | null };
type What = (typeof WHATS)[number];
const WHATS = [
  ...([
    "ask",
    "ask",
    "ask",
    "ask",
    "answer",
    "answer",
    "answer",
    "answer",
    "again",
    "cancel",
    "get",
    "get_one",
  ] as const),
  ...([
    "send",
    "send",
    "claim",
    "claim",
    "settle",
    "settle",
    "cancel_run",
    "takeover",
    "release",
    "release",
    "reset",
  ] as const),
  ...(["rotate", "revoke_device", "mode", "revoke_agent", "replace", "wait", "crash", "crash"] as const),
] as const;

const command: fc.Arbitrary<Command> = fc.record({
  what: fc.constantFrom(...WHATS),
  who: fc.nat({ max: 11 }),
  pick: fc.nat({ max: 23 }),
  fault: fc.nat({ max: 11 }).map((n) => (["failed", "lost", "torn"] as const)[n] ?? null),
});

/** The service and the model side by side, one command at a time. */
class Pair {
  readonly world: World;
  model: model.Model;
  generation = 1;
  readonly credentials = new Map<string, model.Credential>(
    RESPONDERS.map((name) => [
      name,
      { kind: name.split("-")[0] ?? "", revoked: false, rotatedOrExpired: false, readOnly: name === "device-r" },
    ]),
  );
  readonly questions: model.ModelQuestion[] = [];

  constructor(world: World) {
    this.world = world;
    this.model = model.emptyModel(world.seen[PLACE]?.incarnationId ?? "", world.seen[PLACE]?.revision ?? 0);
  }

  get conversationId(): string {
    return this.world.seen[PLACE]?.conversationId ?? "";
  }

  get facts(): model.Facts {
    return {
      now: this.world.environment.now(),
      sameDirectory: this.world.inodes.get("/work/b") === "2",
      credential: (id) => {
        const [name = "", generation] = id.split("@");
        const known = this.credentials.get(name === "operator" ? "operator-1" : name);
        if (known === undefined) throw new Error(`no credential ${id}`);
        return generation === undefined ? known : { ...known, rotatedOrExpired: Number(generation) < this.generation };
      },
    };
  }

  by(name: string): string {
    return name === "operator-1" ? `operator@${this.generation}` : name;
  }

  async ask(name: string, method: string, params: Members): Promise<Members | string> {
    const reply = await this.world.ask(this.world.person(name), method, params);
    if (reply === undefined) throw new Error(`no reply to ${method}`);
    return reply.ok ? reply.result : reply.code;
  }

  /**
   * Sends a request whose change the model has made already, on a disk that may fail. Where it failed before anything was
   * durable, the model goes back to where it was; where it is durable and was interrupted, new runs have failed.
   */
  async under(fault: CommitFault | null, before: model.Model, send: () => Promise<Members | string>) {
    const isChange = JSON.stringify(before) !== JSON.stringify(this.model);
    if (fault !== null && isChange) this.world.disk.arm(fault);
    const reply = await send();
    this.world.disk.mend();
    const met = isChange ? fault : null;
    if (met === "failed" || met === "torn") {
      assert.is(reply, "storage_unavailable");
      this.model = before;
      return { reply, isStored: false };
    }
    return { reply, isStored: true, isInterrupted: met === "lost" };
  }

  /** What everyone can see has to be what the model says. */
  async compare(): Promise<void> {
    const shown = await this.ask("operator-1", "conversation_show", { conversationId: this.conversationId });
    if (typeof shown === "string") throw new Error(shown);
    const snapshot = shown["conversation"] as Members;
    const { incarnation, revision, native, pending, receipts, active, waiting } = this.model;
    const seen = Object.values(snapshot["receipts"] as Readonly<Record<string, Members>>).map((receipt) => {
      const continuation = (receipt["continuation"] ?? null) as Members | null;
      return {
        id: receipt["requestId"],
        status: receipt["status"],
        reason: receipt["reason"] ?? null,
        answer: receipt["answer"] === undefined ? null : textOf(receipt["answer"] as Members),
        run: continuation?.["runId"] ?? null,
        state: continuation?.["state"] ?? null,
        why: continuation?.["reasonCode"] ?? null,
      };
    });
    const activeRun = snapshot["activeRun"] as Members | null;
    const harness = (snapshot["driver"] as Members)["harness"] ?? null;
    assert.equal(
      {
        incarnation: snapshot["incarnationId"],
        revision: snapshot["revision"],
        native: harness,
        pending: (snapshot["question"] as Members | null)?.["requestId"] ?? null,
        active: activeRun === null ? null : [activeRun["runId"], activeRun["state"] === "running"],
        waiting: snapshot["queuedRuns"],
        receipts: seen,
      },
      {
        incarnation,
        revision,
        native,
        pending: pending?.id ?? null,
        active: active === null ? null : [active.run, active.begun],
        waiting: waiting.length,
        receipts: receipts.map(({ id, status, reason, answer, continuation }) => ({
          id,
          status,
          reason,
          answer,
          run: continuation?.run ?? null,
          state: continuation?.state ?? null,
          why: continuation?.reason ?? null,
        })),
      },
    );
  }

  agrees(reply: Members | string, expected: model.Verdict): void {
    // Who connects anew with a token that is no longer good gets as far as that.
    const isNobody = expected.reason === "device_revoked" || expected.reason === "not_permitted";
    if (reply === "unauthenticated" && isNobody) return;
    if (typeof reply === "string") throw new Error(`${reply} instead of ${JSON.stringify(expected)}`);
    const { status, reason, question } = reply;
    assert.equal(
      { status, reason: reason ?? null, question: (question as Members | undefined)?.["requestId"] ?? null },
      { ...expected },
    );
  }
}

const textOf = (answer: Members): string =>
  answer["kind"] === "choice" ? `option ${String(answer["optionId"])}` : `text ${String(answer["text"]).trim()}`;

const answerFrom = (text: string): Members =>
  text.startsWith("option ") ? { kind: "choice", optionId: text.slice(7) } : { kind: "text", text: text.slice(5) };

const copy = <T>(value: T): T => structuredClone(value);

async function play(pair: Pair, { what, who, pick, fault }: Command): Promise<void> {
  const { conversationId, world } = pair;
  const before = copy(pair.model);
  const name = RESPONDERS[who % RESPONDERS.length] ?? "operator-1";
  const newest = pair.questions.at(-1);
  const question = pick % 8 === 7 ? pair.questions.at(-2) : newest;
  const target = {
    incarnation: question?.incarnation ?? pair.model.incarnation,
    request: question?.id ?? NOBODY,
    revision: pick % 7 === 6 ? pair.model.revision + 1 : pair.model.revision,
  };
  const wire = {
    conversationId,
    incarnationId: target.incarnation,
    requestId: target.request,
    expectedRevision: target.revision,
  };
  /** New runs of a change that was found durable have failed, and never begin. */
  const interrupted = (isInterrupted: boolean | undefined, runs: readonly string[]): void => {
    if (isInterrupted) for (const run of runs) model.end(pair.model, run, "failed", "acceptance_interrupted");
  };
  switch (what) {
    case "ask": {
      const asker = who % 3 === 0 ? "operator-1" : "agent-1";
      const draft = DRAFTS[pick % DRAFTS.length] as Members;
      const needs = asker === "agent-1" ? ["operator@1", "agent-1"] : [pair.by(asker)];
      if (pair.credentials.get(asker)?.revoked) return;
      const asked: model.ModelQuestion = {
        id: "new",
        incarnation: pair.model.incarnation,
        options: [],
        freeform: true,
        needs,
        expiresAt: null,
        draft: JSON.stringify(draft),
        run: null,
      };
      const expected = model.ask(pair.model, asked, pair.facts);
      // Where a lost question is in the way there are two commits: only one of them is tried on a failing disk.
      const isOne = before.pending === null;
      const { reply, isStored } = await pair.under(isOne ? fault : null, before, () =>
        pair.ask(asker, "request_user_input", { conversationId, ...draft }),
      );
      if (!isStored) return;
      if (typeof expected === "string") {
        assert.is(reply, expected);
        return;
      }
      if (typeof reply === "string") throw new Error(`${reply} instead of ${JSON.stringify(expected)}`);
      const opened = reply["question"] as Members;
      if (expected.question !== "new") return pair.agrees(reply, expected);
      pair.agrees(reply, { ...expected, question: String(opened["requestId"]) });
      const { expiresAt } = opened;
      const known = {
        ...asked,
        id: String(opened["requestId"]),
        options: (opened["options"] as readonly Members[]).map(({ optionId }) => `option ${String(optionId)}`),
        freeform: opened["allowFreeform"] === true,
        expiresAt: typeof expiresAt === "string" ? Date.parse(expiresAt) : null,
      };
      pair.model.pending = known;
      pair.questions.push(known);
      return;
    }
    case "answer":
    case "again": {
      const stored = pair.model.receipts.find(({ id }) => id === target.request)?.answer;
      const option = question?.options[pick % 2];
      const given =
        what === "again" && stored
          ? stored
          : option !== undefined && pick % 5 < 4
            ? option
            : pick % 6 === 5
              ? `option ${NOBODY}`
              : "text Ada";
      const facts = pair.facts;
      const expected = model.answer(pair.model, pair.by(name), target, given, "new", facts);
      const { reply, isStored, isInterrupted } = await pair.under(fault, before, () =>
        pair.ask(name, "input_answer", { ...wire, answer: answerFrom(given) }),
      );
      if (!isStored) return;
      pair.agrees(reply, expected);
      const receipt = typeof reply === "string" ? undefined : (reply["question"] as Members | undefined);
      const run = String((receipt?.["continuation"] as Members | undefined)?.["runId"]);
      rename(pair.model, run);
      interrupted(isInterrupted && expected.status === "resolved", [run]);
      return;
    }
    case "cancel": {
      const expected = model.cancel(pair.model, pair.by(name), target, pair.facts);
      const { reply, isStored } = await pair.under(fault, before, () => pair.ask(name, "input_cancel", wire));
      if (isStored) pair.agrees(reply, expected);
      return;
    }
    case "get":
    case "get_one": {
      const request = what === "get" ? null : target.request;
      const expected = model.read(pair.model, request, pair.facts);
      const { reply, isStored } = await pair.under(fault, before, () =>
        pair.ask("operator-1", "input_get", { conversationId, ...(request !== null && { requestId: request }) }),
      );
      if (isStored) pair.agrees(reply, expected);
      return;
    }
    case "send": {
      const sender = who % 2 === 0 ? "operator-1" : "captain";
      const isRefused = pair.model.native !== null || !pair.facts.sameDirectory;
      const isFull = pair.model.waiting.length >= 16;
      if (!isRefused && !isFull) model.send(pair.model, "new", pair.by(sender));
      const { reply, isStored, isInterrupted } = await pair.under(fault, before, () =>
        pair.ask(sender, "conversation_send", { conversationId, message: "go on" }),
      );
      if (!isStored) return;
      if (isRefused || isFull) {
        assert.is(reply, isRefused ? "ineligible_conversation" : "queue_full");
        return;
      }
      const run = String((reply as Members)["runId"]);
      rename(pair.model, run);
      interrupted(isInterrupted, [run]);
      return;
    }
    case "claim": {
      const run = pair.model.active?.run ?? "run-nobody";
      const may = pair.model.active !== null && !pair.model.active.begun;
      const reason = model.mayNotBegin(pair.model, pair.facts);
      if (may && reason === null && pair.model.active) pair.model.active.begun = true;
      if (may && reason !== null) model.end(pair.model, run, "failed", reason);
      const { reply, isStored, isInterrupted } = await pair.under(fault, before, () =>
        pair.ask("operator-1", "run_claim", { runId: run }),
      );
      if (!isStored) return;
      const isHanded = may && reason === null && !isInterrupted;
      assert.is(typeof reply === "string" ? "refused" : "handed over", isHanded ? "handed over" : "refused");
      if (may && reason === null) interrupted(isInterrupted, [run]);
      return;
    }
    case "settle": {
      const run = pair.model.active;
      if (run?.begun !== true) return;
      model.end(pair.model, run.run, "completed", null);
      await pair.under(fault, before, () =>
        pair.ask("operator-1", "run_settle", { runId: run.run, state: "completed" }),
      );
      return;
    }
    case "cancel_run": {
      const run = [pair.model.active?.run, ...pair.model.waiting.map((each) => each.run)].filter((each) => each)[0];
      if (run === undefined) return;
      model.cancelRun(pair.model, run);
      await pair.under(fault, before, () => pair.ask("operator-1", "run_cancel", { runId: run }));
      return;
    }
    case "takeover": {
      const harness = pick % 2 === 0 ? "tui" : "editor";
      model.takeOver(pair.model, harness);
      await pair.under(fault, before, () => pair.ask("captain", "native_claim", { conversationId, harness }));
      return;
    }
    case "release":
      model.release(pair.model);
      await pair.under(fault, before, () => pair.ask("captain", "native_release", { conversationId }));
      return;
    case "reset": {
      const isCurrent = model.reset(pair.model, target.revision, "new");
      const { reply, isStored } = await pair.under(fault, before, () =>
        pair.ask("operator-1", "conversation_reset", { conversationId, expectedRevision: target.revision }),
      );
      if (!isStored) return;
      if (!isCurrent) assert.is((reply as Members)["status"], "revision_conflict");
      else pair.model.incarnation = String(((reply as Members)["conversation"] as Members)["incarnationId"]);
      return;
    }
    case "rotate":
      await pair.ask("operator-1", "credential_rotate", { credentialId: "operator" });
      pair.generation += 1;
      // The next request connects anew, with the new token.
      world.person("operator-1").socket?.cut();
      return;
    case "revoke_device":
    case "revoke_agent": {
      const revoked = what === "revoke_agent" ? "agent-1" : "device-a";
      // Who has nothing left to ask with makes the rest of a run dull: seldom.
      if (pick % 4 !== 0) return;
      const credential = pair.credentials.get(revoked);
      if (credential !== undefined) credential.revoked = true;
      model.revoke(pair.model, revoked);
      const id = world.ids[revoked];
      await (what === "revoke_agent"
        ? pair.ask("operator-1", "credential_revoke", { credentialId: id })
        : pair.ask("operator-1", "device_revoke", { deviceId: id }));
      return;
    }
    case "mode": {
      const credential = pair.credentials.get("device-b");
      if (credential !== undefined) credential.readOnly = pick % 2 === 0;
      const mode = pick % 2 === 0 ? "read-only" : "active";
      await pair.ask("operator-1", "device_mode", { deviceId: world.ids["device-b"], mode });
      return;
    }
    case "replace":
      world.inodes.set("/work/b", pick % 4 === 0 ? "9" : "2");
      return;
    case "wait":
      world.environment.advance(40_000);
      await world.tasks.drain();
      return;
    case "crash":
      world.crash();
      await world.start();
      await world.tasks.drain();
      model.restart(pair.model);
      return;
    default:
      what satisfies never;
  }
}

/** The service names what the model could only call new. */
function rename(state: model.Model, run: string): void {
  if (state.active?.run === "new") state.active = { ...state.active, run };
  state.waiting = state.waiting.map((each) => (each.run === "new" ? { ...each, run } : each));
  state.receipts = state.receipts.map((receipt) =>
    receipt.continuation?.run === "new" ? { ...receipt, continuation: { ...receipt.continuation, run } } : receipt,
  );
}

const DRAFTS: readonly Members[] = [
  { kind: "choice", prompt: "Which one?", options: [{ label: "this" }, { label: "that" }] },
  { kind: "choice", prompt: "Which one?", options: [{ label: "this" }, { label: "that" }], allowFreeform: true },
  { kind: "text", prompt: "Which name?" },
  { kind: "text", prompt: "Which name, soon?", expiresInSeconds: 30 },
];

test("[6.1, 6.2, 6.3, 6.4, 6.5, 6.6, 6.7, 6.8, 6.9, 8.1, 8.2, 8.3, 8.5, 8.8] every reply and every snapshot is the model's, through commands, faults, crashes and restarts", async () => {
  const begin = await makeBeginning();
  await fc.assert(
    fc.asyncProperty(fc.array(command, { minLength: 1, maxLength: 40, size: "max" }), async (commands) => {
      const world = begin();
      await world.start();
      await world.tasks.drain();
      const pair = new Pair(world);
      for (const one of commands) {
        await play(pair, one);
        await pair.compare();
      }
      assert.equal([...world.faults, ...world.ledger.faults], []);
    }),
    { numRuns: RUNS, seed: SEED, includeErrorInReport: true },
  );
});

test.run();
