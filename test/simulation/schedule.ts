import fc from "fast-check";
import type { Members, Person } from "./clients.js";
import type { CommitFault, ReadFault } from "./disk.js";
import { quiet } from "./tasks.js";
import type { Seen, World } from "./world.js";

/** One thing that happens. Numbers pick among what there is at that moment, so that every schedule can be shortened. */
export type Move =
  | {
      readonly do: "request";
      readonly who: number;
      readonly what: Request;
      readonly where: number;
      readonly pick: number;
      readonly isLate: boolean;
    }
  /** Something that waits goes on. */
  | { readonly do: "step"; readonly pick: number }
  /** Everything that waits goes on. */
  | { readonly do: "drain" }
  | { readonly do: "pace"; readonly commits: boolean; readonly reads: boolean; readonly looks: boolean }
  | { readonly do: "disk"; readonly fault: CommitFault; readonly later: number; readonly refuses: boolean }
  | { readonly do: "mend" }
  | { readonly do: "read"; readonly fault: ReadFault; readonly where: number; readonly count: number }
  | { readonly do: "crash" }
  | { readonly do: "stop" }
  | { readonly do: "start" }
  | { readonly do: "wait"; readonly seconds: number }
  | { readonly do: "cut"; readonly who: number }
  | { readonly do: "stall"; readonly who: number; readonly stalled: boolean }
  | { readonly do: "replace"; readonly where: number; readonly inode: "1" | "2" | "3" | "9" | null }
  | { readonly do: "agent"; readonly pick: number; readonly does: "say" | "end" | "fail" | "ask" };

const OWNERS = ["operator-1", "device-a", "device-b", "operator-2", "device-r", "captain"] as const;
const MANAGERS = ["operator-1", "captain", "operator-2"] as const;
const AGENTS = ["agent-1", "agent-2", "operator-1"] as const;
const READERS = [...OWNERS, "agent-1", "agent-2"] as const;
/** Mostly the conversation with a command and one with an attached agent, so that much meets there. */
const PLACES = [0, 0, 0, 0, 1, 1, 1, 2, 0, 3] as const;
const DIRECTORIES = ["/work/a", "/work/b", "/work/c"] as const;

/** What is asked for, with what a client would send: something that fits what was seen, or nearly so. */
const REQUESTS = {
  send: { weight: 6, by: OWNERS },
  ask: { weight: 6, by: AGENTS },
  answer: { weight: 9, by: OWNERS },
  answer_again: { weight: 4, by: OWNERS },
  cancel: { weight: 2, by: OWNERS },
  get: { weight: 3, by: READERS },
  get_one: { weight: 2, by: READERS },
  show: { weight: 2, by: READERS },
  tail: { weight: 3, by: READERS },
  subscribe: { weight: 4, by: READERS },
  unsubscribe: { weight: 1, by: READERS },
  inbox: { weight: 1, by: OWNERS },
  list: { weight: 1, by: READERS },
  list_questions: { weight: 1, by: OWNERS },
  claim: { weight: 4, by: AGENTS },
  report: { weight: 2, by: AGENTS },
  settle: { weight: 4, by: AGENTS },
  cancel_run: { weight: 2, by: OWNERS },
  reset: { weight: 1, by: MANAGERS },
  takeover: { weight: 1, by: MANAGERS },
  release: { weight: 2, by: MANAGERS },
  revoke_device: { weight: 1, by: MANAGERS },
  device_mode: { weight: 1, by: MANAGERS },
  rotate: { weight: 1, by: MANAGERS },
  revoke: { weight: 1, by: MANAGERS },
  pair: { weight: 1, by: MANAGERS },
} as const;
type Request = keyof typeof REQUESTS;

const number = fc.nat({ max: 47 });
const sometimes = fc.nat({ max: 3 }).map((n) => n === 3);
const seldom = fc.nat({ max: 7 }).map((n) => n === 7);

const request = fc.record({
  do: fc.constant("request" as const),
  who: number,
  what: fc.oneof(
    ...Object.entries(REQUESTS).map(([what, { weight }]) => ({ weight, arbitrary: fc.constant(what as Request) })),
  ),
  where: number,
  pick: number,
  isLate: seldom,
});

const move: fc.Arbitrary<Move> = fc.oneof(
  { weight: 44, arbitrary: request },
  { weight: 22, arbitrary: fc.record({ do: fc.constant("step" as const), pick: number }) },
  { weight: 10, arbitrary: fc.constant({ do: "drain" as const }) },
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constant("pace" as const),
      commits: fc.boolean(),
      reads: sometimes,
      looks: sometimes,
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constant("disk" as const),
      fault: fc.constantFrom<CommitFault>("failed", "lost", "lost", "torn"),
      later: fc.nat({ max: 3 }),
      refuses: seldom,
    }),
  },
  { weight: 3, arbitrary: fc.constant({ do: "mend" as const }) },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant("read" as const),
      fault: fc.constantFrom<ReadFault>("error", "damaged", "corrupt"),
      where: number,
      count: fc.integer({ min: 1, max: 3 }),
    }),
  },
  { weight: 2, arbitrary: fc.constant({ do: "crash" as const }) },
  { weight: 1, arbitrary: fc.constant({ do: "stop" as const }) },
  { weight: 5, arbitrary: fc.constant({ do: "start" as const }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("wait" as const), seconds: fc.constantFrom(1, 2, 40) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("cut" as const), who: number }) },
  {
    weight: 3,
    arbitrary: fc.record({ do: fc.constant("stall" as const), who: number, stalled: fc.boolean() }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant("replace" as const),
      where: number,
      inode: fc.constantFrom("1", "2", "3", "9", null),
    }),
  },
  {
    weight: 8,
    arbitrary: fc.record({
      do: fc.constant("agent" as const),
      pick: number,
      does: fc.constantFrom("say", "end", "end", "fail", "ask"),
    }),
  },
);

/** Up to this many moves make a schedule. */
export const schedule = (most: number): fc.Arbitrary<readonly Move[]> =>
  fc.array(move, { minLength: 1, maxLength: most, size: "max" });

const pickOf = <T>(from: readonly T[], pick: number): T | undefined => from[pick % Math.max(1, from.length)];

/** Lets one move happen. */
export async function play(world: World, one: Move): Promise<void> {
  switch (one.do) {
    case "request": {
      const { by } = REQUESTS[one.what];
      const person = world.person(pickOf<string>(by, one.who) ?? "operator-1");
      const seen = world.seen[pickOf(PLACES, one.where) ?? 0];
      if (seen === undefined) return;
      const sent = requestOf(world, one.what, person, seen, one.pick);
      if (sent !== null) world.request(person, sent.method, sent.params, one.isLate);
      break;
    }
    case "step":
      return world.tasks.step(one.pick);
    case "drain":
      return world.tasks.drain();
    case "pace":
      world.disk.slowCommits = one.commits;
      world.disk.slowReads = one.reads;
      world.slowLooks = one.looks;
      return;
    case "disk":
      world.disk.arm(one.fault, one.later);
      world.disk.refuses = one.refuses;
      return;
    case "mend":
      world.disk.mend();
      return;
    case "read":
      world.disk.armRead(one.fault, `conversation/${pickOf(world.seen, one.where)?.conversationId}/`, one.count);
      return;
    case "crash":
      world.crash();
      return;
    case "stop":
      world.stop();
      break;
    case "start":
      return world.start();
    case "wait":
      world.environment.advance(one.seconds * 1_000);
      break;
    case "cut":
      pickOf(world.people, one.who)?.socket?.cut();
      return;
    case "stall": {
      const socket = pickOf(world.people, one.who)?.socket;
      if (socket == null) return;
      socket.stalled = one.stalled;
      if (!one.stalled) socket.read();
      break;
    }
    case "replace":
      world.inodes.set(pickOf(DIRECTORIES, one.where) ?? "", one.inode);
      return;
    case "agent": {
      const agent = pickOf(
        world.agents.filter(({ isOver }) => !isOver),
        one.pick,
      );
      if (agent === undefined) return;
      if (one.does === "say") agent.say(`line ${one.pick}`);
      if (one.does === "end") agent.end(0);
      if (one.does === "fail") agent.end(1);
      if (one.does === "ask") {
        world.request(agent.person, "request_user_input", { conversationId: agent.conversationId, ...draft(one.pick) });
      }
      break;
    }
    default:
      one satisfies never;
  }
  return quiet();
}

function draft(pick: number): Members {
  switch (pick % 4) {
    case 0:
      return { kind: "text", prompt: "Which name?" };
    case 1:
      return { kind: "choice", prompt: "Which one?", options: [{ label: "this" }, { label: "that" }] };
    case 2:
      return {
        kind: "choice",
        prompt: "Which one?",
        options: [{ label: "this" }, { label: "that" }],
        allowFreeform: true,
      };
    default:
      return { kind: "text", prompt: "Which name, soon?", expiresInSeconds: 30 };
  }
}

function answerOf(question: Members | undefined, pick: number): Members {
  const options = (question?.["options"] ?? []) as readonly Members[];
  const option = pickOf(options, pick);
  return option !== undefined && pick % 5 < 4
    ? { kind: "choice", optionId: option["optionId"] }
    : { kind: "text", text: ["Ada", " Ada ", "Grace"][pick % 3] ?? "Ada" };
}

function requestOf(
  world: World,
  what: Request,
  person: Person,
  seen: Seen,
  pick: number,
): { readonly method: string; readonly params: Members } | null {
  const { conversationId, incarnationId, revision } = seen;
  const newest = seen.question ?? seen.requests.at(-1);
  // Mostly the newest question at the revision that was seen; sometimes another one, or an older revision.
  const question = pick % 8 === 7 ? pickOf(seen.requests, pick) : newest;
  const target = {
    conversationId,
    incarnationId: String(question?.["incarnationId"] ?? incarnationId),
    requestId: String(question?.["requestId"] ?? "00000000-0000-4000-8000-ffffffffffff"),
    expectedRevision: pick % 9 === 8 ? Math.max(0, revision - 1) : revision,
  };
  const runId = pickOf(seen.runs.slice(-3), pick % 5 === 4 ? pick : 2) ?? "run-nobody";
  switch (what) {
    case "send":
      return {
        method: "conversation_send",
        params: { conversationId, message: `message ${pick}`, ...(pick % 4 === 0 && { expectedRevision: revision }) },
      };
    case "ask":
      return { method: "request_user_input", params: { conversationId: mine(world, person, seen), ...draft(pick) } };
    case "answer":
      return { method: "input_answer", params: { ...target, answer: answerOf(question, pick) } };
    case "answer_again": {
      const receipt = [...seen.requests].reverse().find(({ status }) => status === "submitted");
      if (receipt === undefined) return null;
      const answer = pick % 3 === 2 ? answerOf(receipt, pick) : (receipt["answer"] as Members);
      return {
        method: "input_answer",
        params: { ...target, incarnationId: receipt["incarnationId"], requestId: receipt["requestId"], answer },
      };
    }
    case "cancel":
      return { method: "input_cancel", params: target };
    case "get":
      return { method: "input_get", params: { conversationId } };
    case "get_one":
      return question === undefined
        ? null
        : { method: "input_get", params: { conversationId, requestId: question["requestId"] } };
    case "show":
      return { method: "conversation_show", params: { conversationId } };
    case "tail": {
      const after = pick % 3 === 0 ? undefined : pickOf(seen.cursors, pick);
      return {
        method: "conversation_tail",
        params: { conversationId, ...(after !== undefined && { after }), ...(pick % 4 === 3 && { limit: 2 }) },
      };
    }
    case "subscribe": {
      const after = pick % 2 === 1 ? pickOf(seen.cursors, pick) : undefined;
      return {
        method: "conversation_subscribe",
        params: { conversationId, events: pick % 3 !== 2, ...(after !== undefined && { after }) },
      };
    }
    case "unsubscribe":
      return { method: "conversation_unsubscribe", params: { conversationId } };
    case "inbox":
      return { method: pick % 6 === 5 ? "inbox_unsubscribe" : "inbox_subscribe", params: {} };
    case "list":
      return { method: "conversation_list", params: pick % 2 === 0 ? {} : { limit: 2 } };
    case "list_questions":
      return { method: "input_list", params: pick % 2 === 0 ? {} : { status: "pending" } };
    case "claim":
      return { method: "run_claim", params: { runId } };
    case "report":
      return { method: "run_event", params: { runId, event: { type: "message", text: `said ${pick}` } } };
    case "settle":
      return { method: "run_settle", params: { runId, state: pick % 3 === 2 ? "failed" : "completed" } };
    case "cancel_run":
      return { method: "run_cancel", params: { runId } };
    case "reset":
      return { method: "conversation_reset", params: { conversationId, expectedRevision: target.expectedRevision } };
    case "takeover":
      return { method: "native_claim", params: { conversationId, harness: pick % 2 === 0 ? "tui" : "editor" } };
    case "release":
      return { method: "native_release", params: { conversationId } };
    case "revoke_device":
      return { method: "device_revoke", params: { deviceId: world.ids[pick % 2 === 0 ? "device-a" : "device-r"] } };
    case "device_mode":
      return {
        method: "device_mode",
        params: { deviceId: world.ids["device-b"], mode: pick % 3 === 0 ? "read-only" : "active" },
      };
    case "rotate":
      return {
        method: "credential_rotate",
        params: { credentialId: world.ids[["operator-1", "captain", "agent-1", "agent-2"][pick % 4] ?? ""] },
      };
    case "revoke":
      return {
        method: "credential_revoke",
        params: { credentialId: world.ids[pick % 2 === 0 ? "agent-1" : "captain"] },
      };
    case "pair":
      return { method: "device_pair_begin", params: { mode: "active" } };
    default:
      return what satisfies never;
  }
}

/** An agent asks where it belongs, but now and then elsewhere. */
function mine(world: World, person: Person, seen: Seen): string {
  const own = person.name === "agent-1" ? 1 : person.name === "agent-2" ? 2 : null;
  return (own === null ? seen : (world.seen[own] ?? seen)).conversationId;
}
