import { answerAuthority, questionContext } from "../authority.js";
import type { CredentialStamp } from "../context.js";
import type { QuestionFacts, Standing } from "../facts.js";
import { arrowsIn } from "./mermaid.js";
import { allTransitions, type ChartRegion, type ChartTransition, inWords, readChart } from "./model.js";
import { type Exploration, explore, type Way } from "./paths.js";
import { EFFECTS, EVENTS, GUARDS } from "./words.js";

/** `docs/statechart.md`, written from the machine: a reader of this page alone can say what happens, and why. */
export function statechartDocument(
  chart: readonly ChartRegion[] = readChart(),
  found: Exploration = explore(chart),
): string {
  const transitions = allTransitions(chart);
  return `${[
    HEAD,
    section("Who may answer, and who may cancel", whoMayAnswer()),
    section("What cancels a question", whatCancels(transitions, found)),
    section("What happens to an answer when the process dies", DEATH),
    section("The chart", diagrams(chart)),
    section("Transitions", transitionTables(chart)),
    section("Reasons", reasons(transitions, found)),
    section("The shortest way to every state", waysToStates(chart, found)),
    section("Events", events()),
    section(
      "Guards",
      glossary(
        "guard",
        transitions,
        ({ guard }) => guard,
        (guard) => GUARDS[guard] ?? "",
      ),
    ),
    section(
      "Effects",
      glossary(
        "effect",
        transitions,
        ({ effect }) => effect,
        (effect) => EFFECTS[effect]?.means ?? "",
      ),
    ),
  ].join("\n\n")}\n`;
}

const HEAD = `<!-- Written by scripts/statechart.mjs from machines/conversation.ts. Do not edit. -->

# The state chart of a conversation

This page is written from the machine that runs, so it cannot disagree with it. Numbers in brackets are sections of the
contract.

A conversation is in one state of each of three regions at once: who drives it (**driver**), how its newest question
stands (**question**), and whether a run is on (**turn**). An event is tried in every region. In a state, the guards
of an event are tried from 1 upwards, and the first that holds decides; where none is needed the table says
"otherwise". What is decided is stored as a whole, in one synced commit, and only then is anything said or started. A
transition that stays and only says something stores nothing at all. \`always\` needs no event: it is taken as soon as its
guard holds, in the same commit.

![The state chart, with every transition](statechart.svg)

\`clankie chart --format svg\` draws this figure, and \`--conversation ID\` marks where a
conversation is. The page \`/chart\` of a running service, for its operator, shows a conversation move on it. Credentials,
directory and time are looked up for each event and come with it; the machine remembers none of them.`;

const DEATH = `An answer is stored in one commit: the receipt (\`submitted\`, with answer, responder and time), the continuation's run
in state \`accepted\`, both events and revision + 1 [6.9]. The caller is told \`resolved\` only after it, and the
continuation waits for the run that asked, and is looked at again before it starts [6, continuations]. The commit is
there as a whole or not at all, whenever the process dies: while it was being written, one of the first two rows holds.

| the process dies | what is found at the next start | what the responder sees |
| --- | --- | --- |
| before the commit | the question still pending; the start cancels it with \`service_restarted\` [7 service_restarted] | an uncertain outcome; the receipt says \`cancelled\` |
| after the commit, before the reply | the receipt \`submitted\`; its continuation \`failed\`, \`service_restarted\`; the run never starts [8, restart] | an uncertain outcome; the receipt, or the same answer again, says \`resolved\` with the stored answer [6.4] |
| after the reply, before or during the run | the same | the receipt says that the continuation failed |

Nothing is executed a second time; no stored answer is lost, and none is taken twice. Where the process lives on but the store cannot
say whether the commit is durable, the caller hears \`storage_unavailable\`, which says neither yes nor no: it does not
send the answer again but reads the request's receipt. The service reads back what is there before it says anything about
that conversation again: an answer that is there is \`submitted\`, its continuation \`failed\`,
\`acceptance_interrupted\`, and is not run [8, unknown commit]; one that is not there leaves the question pending.`;

const section = (title: string, body: string): string => `## ${title}\n\n${body}`;

const table = (heads: readonly string[], rows: ReadonlyArray<readonly string[]>): string =>
  [heads, heads.map(() => "---"), ...rows].map((cells) => `| ${cells.map(cell).join(" | ")} |`).join("\n");

const cell = (content: string): string => content.replaceAll("|", "\\|");

// Who may answer.

const KINDS: readonly CredentialStamp["kind"][] = ["operator", "device", "captain", "agent"];
const STANDINGS: readonly Standing[] = ["good", "read_only", "rotated", "expired", "revoked"];

function whoMayAnswer(): string {
  const rows = KINDS.map((kind) => [
    kind,
    ...STANDINGS.map((standing) => {
      if (standing === "read_only" && kind !== "device") return "–";
      const verdict = answerAuthority({ stamp: { kind, id: kind, generation: 1 }, standing });
      return verdict.ok ? "**yes**" : `\`${verdict.reason}\``;
    }),
  ]);
  return `An operator, and a device in mode \`active\`, whichever device it is: not the one that asked or started the turn in
particular. The credential is looked up at this very request [6.1]. A captain, an agent, a room message or any claim
inside a payload never gives authority [2]. By how the credential stands:

${table(["principal", "good", "read-only", "rotated", "expired", "revoked"], rows)}

Only devices are read-only. This is the first check; the others follow in the order of the table of \`question: pending\`
below. There is something to answer only in a workspace conversation that the service drives: global, room, side and seat
conversations have no questions, and a native takeover cancels the pending one [6.6, 7].`;
}

// What cancels.

function whatCancels(transitions: readonly ChartTransition[], found: Exploration): string {
  const causes = transitions
    .filter(({ region, to }) => region === "question" && to === "cancelled")
    .flatMap((by) => reasonsOf(by, found).map((reason) => ({ reason, by })));
  const rows = [...new Set(causes.map(({ reason }) => reason))].map((reason) => {
    const uses = causes.filter((each) => each.reason === reason && isUse(each.by));
    const others = causes.filter((each) => each.reason === reason && !isUse(each.by));
    const named = others.length > 0 ? others : uses;
    return {
      isLoss: others.length === 0,
      cells: [
        code(reason),
        lossWords(reason) ?? others.map(({ by }) => meaning(by.event)).join("; "),
        noticed(uses, others),
        others.length === 0 ? "a use" : others.map(({ by }) => `\`${by.event}\`, ${whenIn(by)}`).join("; "),
        [...new Set(named.map(({ by }) => `[${by.rule}]`))].join(", "),
      ],
    };
  });
  const ordered = [...rows.filter(({ isLoss }) => !isLoss), ...rows.filter(({ isLoss }) => isLoss)];
  const useRows = transitions
    .filter((each) => each.region === "question" && each.to === "cancelled" && isUse(each))
    .map((each) => [`\`${each.event}\``, meaning(each.event), effectWords(each), `[${each.rule}]`]);
  return `Each row takes a pending question to \`cancelled\`, with its receipt. Nothing else does; silence never answers. What an
answered question started may still fail or be cancelled, but its receipt stays \`submitted\`.

${table(
  ["stored reason", "that is", "noticed", "event, where", "section"],
  ordered.map(({ cells }) => cells),
)}

A use looks the context up, and cancels what has lost it, before anything else is said of the question. These are the
uses; a list (\`input_list\`), a snapshot, an inbox or a delta is none: it shows what is stored and checks nothing [7, below
the table]. Somebody who may not answer, cancel or ask, or who names another request, is refused before the look [6.1, 6.2, 6.3].

${table(["use", "that is", "what a lost context does, and what the caller hears", "section"], useRows)}

Where more than one part of the context is lost, the first of these is stored [6.6, 7]: ${LOST_CONTEXT.map(code).join(", ")}.

A captain may neither answer nor cancel a question, but it may take the native seat: its \`native_claim\` cancels the
pending question as an operator's does [2, 7 native_takeover].`;
}

/** Does this look the context up and find it lost? */
const isUse = ({ guard }: Pick<ChartTransition, "guard">): boolean =>
  guard === "contextIsLost" || guard === "readsOneWhoseContextIsLost";

type Cause = { readonly by: ChartTransition };

function noticed(uses: readonly Cause[], others: readonly Cause[]): string {
  if (others.length === 0) return "at the next use";
  const first = others.every(({ by }) => by.event === "service.restarted") ? "at start" : "at once";
  return uses.length === 0
    ? first
    : `${first}, in every conversation it touches; at the next use only where the revocation could not be carried through`;
}

const lossWords = (reason: string): string | undefined =>
  LOST.find(([, facts, at]) => reasonOfLoss(facts, at) === reason)?.[0];

const effectWords = ({ effect }: ChartTransition): string => (effect === null ? "" : (EFFECTS[effect]?.means ?? ""));

/** A guard, or which ones do not stand in the way. */
function whenIn({ guard, place }: ChartTransition): string {
  if (guard !== null) return inWords(guard);
  return place === 1 ? "whenever it happens" : `none of its guards 1 to ${place - 1} holds`;
}

const HELD: QuestionFacts = { workspaceIsSame: true, owner: "good", asker: "good" };
const DUE = "2026-01-01T00:00:00.000Z";

/** In the order in which they are looked at; what each is called is the rule's to say. */
const LOST: ReadonlyArray<readonly [words: string, facts: QuestionFacts, at: string]> = [
  ["the bound directory is gone, moved, or another one", { ...HELD, workspaceIsSame: false, owner: "revoked" }, DUE],
  [
    "the credential or device under which the asking turn was started, or the asking agent's own, was revoked",
    { ...HELD, owner: "rotated", asker: "revoked" },
    DUE,
  ],
  [
    "the credential under which the asking turn was started was rotated or has expired",
    { ...HELD, owner: "expired" },
    DUE,
  ],
  ["the question is past its `expiresAt`, where its asker set one", HELD, DUE],
];

function reasonOfLoss(facts: QuestionFacts, at: string): string {
  const verdict = questionContext({ question: { expiresAt: DUE } }, facts, at);
  if (verdict.ok) throw new Error("a context was said to be lost that holds");
  return verdict.reason;
}

const LOST_CONTEXT: readonly string[] = LOST.map(([, facts, at]) => reasonOfLoss(facts, at));

/** What a transition stores as the reason; where it depends on what was lost, all that it can be. */
function reasonsOf({ id, guard }: ChartTransition, found: Exploration): readonly string[] {
  if (isUse({ guard })) return LOST_CONTEXT;
  return [...found.reasons]
    .filter(([reason, { taken }]) => reason.startsWith("cancelled ") && taken.includes(id))
    .map(([reason]) => reason.slice("cancelled ".length));
}

// The chart.

const diagrams = (chart: readonly ChartRegion[]): string =>
  chart
    .map(
      (region) =>
        `### ${region.name}\n\n${region.description} [${region.rule}]\n\n${region.states.map(stateLine).join("\n")}\n\n\`\`\`mermaid\n${arrowsIn(region)}\n\`\`\``,
    )
    .join("\n\n");

const stateLine = ({ name, description, rule }: ChartRegion["states"][number]): string =>
  `- **${name}**: ${description} [${rule}]`;

const transitionTables = (chart: readonly ChartRegion[]): string =>
  chart
    .flatMap((region) => [
      ...(region.transitions.length === 0 ? [] : [transitionTable(`${region.name}, any state`, region.transitions)]),
      ...region.states.map((state) => transitionTable(`${region.name}: ${state.name}`, state.transitions)),
    ])
    .join("\n\n");

const transitionTable = (title: string, transitions: readonly ChartTransition[]): string =>
  `### ${title}\n\n${table(
    ["event", "", "guard", "to", "effect", "section"],
    transitions.map((each) => [
      each.place === 1 ? `\`${each.event}\`` : "",
      String(each.place),
      condition(each),
      each.to ?? "stays",
      each.effect === null ? "" : inWords(each.effect),
      `[${each.rule}]`,
    ]),
  )}`;

const condition = ({ guard }: ChartTransition): string => (guard === null ? "otherwise" : inWords(guard));

// Reasons and ways.

function reasons(transitions: readonly ChartTransition[], found: Exploration): string {
  const rows = documentedReasons(transitions, found).map(({ reason, transition, way }) => [
    code(reason),
    transition.from,
    `\`${transition.event}\``,
    condition(transition),
    `[${transition.rule}]`,
    wayText(way),
  ]);
  return `Every code that the machine itself says or stores, and the shortest way there. \`refused\`, \`ready\` and
\`revision_conflict\` are results; \`error\` is an error's \`data.code\` and \`data.reason\`; \`cancelled\` is stored in
the question's receipt; \`turn\` is a run's end, in its event and in the receipt of the answer that started it.

${table(["code", "in", "event", "guard", "section", "shortest way"], rows)}

Decided before an event reaches the machine, by the service around it: \`invalid_params\`, \`unauthenticated\`,
\`forbidden\` to a method, \`unknown_conversation\`, \`rate_limited\`, \`frame_too_large\`, \`shutting_down\` [5];
\`storage_unavailable\` and \`question_state_unavailable\` [8]. Said by a run's own end and passed on: \`timed_out\`,
\`not_started\`, \`exit_status\`, \`signalled\` [10].`;
}

export interface DocumentedReason {
  readonly reason: string;
  readonly transition: ChartTransition;
  readonly way: Way;
}

/** Each code once, with the transition that says it. */
export function documentedReasons(
  transitions: readonly ChartTransition[],
  found: Exploration,
): readonly DocumentedReason[] {
  return [...found.reasons].map(([reason, way]) => {
    const taken = transitions.filter(({ id }) => way.taken.includes(id));
    const transition = taken.find((each) => says(reason, each)) ?? taken[0];
    if (transition === undefined) throw new Error(`no transition says ${reason}`);
    return { reason, transition, way };
  });
}

/** A cancellation is the question's to say, a run's end the turn's; everything else is the reply's. */
function says(reason: string, { region, to, effect }: ChartTransition): boolean {
  if (reason.startsWith("cancelled ")) return region === "question" && to === "cancelled";
  if (reason.startsWith("turn ")) return region === "turn";
  return effect !== null && EFFECTS[effect]?.changes === false;
}

const code = (reason: string): string => `\`${reason}\``;

const waysToStates = (chart: readonly ChartRegion[], found: Exploration): string =>
  table(
    ["region", "state", "shortest way"],
    chart.flatMap((region) =>
      region.states.map(({ id, name }) => {
        const way = found.states.get(id);
        return [region.name, name, way === undefined ? "none" : wayText(way)];
      }),
    ),
  );

function wayText({ beginning, steps }: Way): string {
  const from = beginning === "a workspace conversation" ? "" : `In ${beginning}: `;
  return steps.length === 0 ? "it begins there" : `${from}${counted(steps).join(" → ")}`;
}

/** What is done several times in a row is said once. */
function counted(steps: readonly string[]): readonly string[] {
  const groups: { readonly step: string; times: number }[] = [];
  for (const step of steps) {
    const last = groups.at(-1);
    if (last?.step === step) last.times += 1;
    else groups.push({ step, times: 1 });
  }
  return groups.map(({ step, times }) => (times === 1 ? step : `${step} (${times} times)`));
}

// Words.

const meaning = (event: string): string => Object.entries(EVENTS).find(([type]) => type === event)?.[1].means ?? "";

const events = (): string =>
  table(
    ["event", "comes from", "meaning"],
    Object.entries(EVENTS).map(([event, { methods, means }]) => [
      `\`${event}\``,
      methods.length === 0 ? "the service itself" : methods.map(code).join(", "),
      means,
    ]),
  );

function glossary(
  head: string,
  transitions: readonly ChartTransition[],
  nameOf: (transition: ChartTransition) => string | null,
  means: (name: string) => string,
): string {
  const names = [...new Set(transitions.flatMap((each) => nameOf(each) ?? []))];
  return table(
    [head, "meaning"],
    names.map((name) => [inWords(name), means(name)]),
  );
}
