import { BOUNDS } from "../../protocol/bounds.js";
import type { Method } from "../../protocol/operations.js";
import type { Question } from "../../protocol/question.js";
import type { ConversationSnapshot } from "../../protocol/snapshot.js";
import { answerAuthority, mayCall } from "../authority.js";
import type { CredentialStamp } from "../context.js";
import type { Caller, ConversationEvent, Standing } from "../facts.js";
import type { Marks } from "./marks.js";
import { ALWAYS, type ChartRegion, type ChartTransition, readChart } from "./model.js";
import { changesSomething, EVENTS } from "./words.js";

/** A conversation on the chart: where it is, what may happen next and for whom. Made from what any reader sees. */
export interface LiveChart {
  readonly conversationId: string;
  readonly revision: number;
  readonly now: {
    readonly driver: "service" | "native";
    readonly question: "none" | "pending" | "submitted" | "cancelled";
    readonly turn: "idle" | "accepted" | "running";
  };
  readonly possible: readonly PossibleEvent[];
  /** Who may answer the pending question as far as their credential goes; empty where none is pending. */
  readonly answering: readonly AnswerOutlook[];
}

export interface PossibleEvent {
  readonly event: ConversationEvent["type"];
  readonly methods: readonly Method[];
  /** `service` where it comes from the service itself. */
  readonly who: readonly Who[];
  /** What may come of it that changes something, in the order in which it is tried. */
  readonly transitions: readonly ChartTransition[];
}

export type Who = "operator" | "active device" | "read-only device" | "captain" | "agent" | "service";

export interface AnswerOutlook {
  readonly who: Exclude<Who, "service">;
  readonly may: boolean;
  readonly reason?: string;
}

export function chartOf(snapshot: ConversationSnapshot, chart: readonly ChartRegion[] = readChart()): LiveChart {
  const now = {
    driver: snapshot.driver.kind,
    question: questionState(snapshot),
    turn: snapshot.activeRun === null ? "idle" : snapshot.activeRun.state,
  } as const;
  const reachable = chart.flatMap((region) => transitionsFrom(region, now, snapshot));
  const possible = EVENT_TYPES.flatMap((event) => {
    const transitions = reachable.filter((each) => each.event === event && leadsOn(each));
    const { methods } = EVENTS[event];
    return transitions.length === 0 ? [] : [{ event, methods, who: whoMaySend(methods, snapshot), transitions }];
  });
  return {
    conversationId: snapshot.conversationId,
    revision: snapshot.revision,
    now,
    possible,
    answering: snapshot.question === null ? [] : PRINCIPALS.map(([who, caller]) => outlook(who, caller)),
  };
}

/** Lights the current states and what may come next. */
export const marksOf = ({ now, possible }: LiveChart): Marks => ({
  states: new Set(Object.entries(now).map(([region, state]) => `${region}.${state}`)),
  transitions: new Set(possible.flatMap(({ transitions }) => transitions.map(({ id }) => id))),
});

/** The same for a terminal, in sentences. */
export const liveText = ({ conversationId, revision, now, possible, answering }: LiveChart): string =>
  [
    `conversation ${conversationId} at revision ${revision}: driver ${now.driver}, question ${now.question}, turn ${now.turn}`,
    "",
    "what may happen next, and from whom",
    ...possible.flatMap(({ event, methods, who, transitions }) => [
      `  ${event}${methods.length === 0 ? "" : ` (${methods.join(", ")})`}: ${who.join(", ")}`,
      ...transitions.map(
        ({ from, to, rule, effect }) =>
          `      ${from}${to === null ? "" : ` -> ${to}`}: ${effect ?? "starts"} [${rule}]`,
      ),
    ]),
    ...(answering.length === 0 ? [] : ["", "who may answer now"]),
    ...answering.map(({ who, may, reason }) => `  ${who}: ${may ? "yes" : `no, ${reason}`}`),
    "",
  ].join("\n");

// Where it is.

const resolvedAt = ({ resolvedAt: at }: Question): number => (at === undefined ? 0 : Date.parse(at));

/** The newest receipt says how the newest question ended. */
function questionState({ question, receipts }: ConversationSnapshot): LiveChart["now"]["question"] {
  if (question !== null) return "pending";
  const newest = Object.values(receipts).reduce<Question | null>(
    (best, each) => (best !== null && resolvedAt(best) > resolvedAt(each) ? best : each),
    null,
  );
  return newest === null ? "none" : newest.status;
}

// What may happen.

const EVENT_TYPES = Object.keys(EVENTS) as readonly ConversationEvent["type"][]; // its keys are the union's, by type

/** Guards whose outcome a snapshot tells; every other one depends on the request, or on facts looked up with it. */
const DECIDED: { readonly [guard: string]: (snapshot: ConversationSnapshot) => boolean | undefined } = {
  queueIsFull: ({ queuedRuns }) => queuedRuns >= BOUNDS.queuedRuns,
  aRunWaits: ({ queuedRuns }) => queuedRuns > 0,
  isAWaitingRun: ({ queuedRuns }) => (queuedRuns > 0 ? undefined : false),
  turnMayNotAsk: ({ eligible }) => (eligible ? undefined : true),
  turnIsNoOwners: ({ eligible }) => (eligible ? undefined : true),
  askedByThisRun: ({ activeRun, question }) =>
    question !== null && question.originRunId === activeRun?.runId ? undefined : false,
  textIsNotAllowed: ({ question }) => (question?.allowFreeform === true ? false : undefined),
};

/** What a region may take from here: not what is decided against, and nothing after what is decided. */
function transitionsFrom(
  region: ChartRegion,
  now: LiveChart["now"],
  snapshot: ConversationSnapshot,
): readonly ChartTransition[] {
  const state = region.states.find(({ id }) => Object.entries(now).some(([name, value]) => id === `${name}.${value}`));
  const own = state?.transitions ?? [];
  const inherited = region.transitions.filter(({ event }) => !own.some((each) => each.event === event));
  const closed = new Set<string>();
  return [...own, ...inherited].filter(({ event, guard }) => {
    if (event === ALWAYS || closed.has(event)) return false;
    const decided = guard === null ? true : DECIDED[guard]?.(snapshot);
    if (decided === true) closed.add(event);
    return decided !== false;
  });
}

const leadsOn = ({ effect, to, from }: ChartTransition): boolean =>
  changesSomething(effect) || (to !== null && to !== from);

// For whom.

const caller = (kind: CredentialStamp["kind"], standing: Standing): Caller => ({
  stamp: { kind, id: kind, generation: 1 },
  standing,
});

const PRINCIPALS: ReadonlyArray<readonly [who: AnswerOutlook["who"], caller: Caller]> = [
  ["operator", caller("operator", "good")],
  ["active device", caller("device", "good")],
  ["read-only device", caller("device", "read_only")],
  ["captain", caller("captain", "good")],
  ["agent", caller("agent", "good")],
];

function whoMaySend(methods: readonly Method[], { conversationId }: ConversationSnapshot): readonly Who[] {
  if (methods.length === 0) return ["service"];
  return PRINCIPALS.filter(([, principal]) =>
    methods.some((method) => maySend({ ...principal, conversationId }, method)),
  ).map(([who]) => who);
}

function maySend(principal: Caller, method: Method): boolean {
  switch (method) {
    case "authenticate":
    case "device_pair_complete":
      return true;
    case "input_answer":
    case "input_cancel":
      return answerAuthority(principal).ok;
    default:
      return mayCall(principal, method).ok;
  }
}

function outlook(who: AnswerOutlook["who"], principal: Caller): AnswerOutlook {
  const verdict = answerAuthority(principal);
  return verdict.ok ? { who, may: true } : { who, may: false, reason: verdict.reason };
}
