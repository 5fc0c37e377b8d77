import { chartOf, marksOf, type PossibleEvent } from "../../../machines/chart/live.js";
import { type Marks, NO_MARKS } from "../../../machines/chart/marks.js";
import { inWords, readChart } from "../../../machines/chart/model.js";
import {
  mayAnswer,
  type Principal,
  principalsIn,
  type Verdict,
  type VerdictItem,
} from "../../../machines/chart/verdict.js";
import { EFFECTS, EVENTS, GUARDS } from "../../../machines/chart/words.js";
import type { ChartFacts, ChartStep } from "../../../protocol/chart.js";
import type { ConversationSnapshot } from "../../../protocol/snapshot.js";
import { h, type View } from "./h.js";
import type { Transition } from "./message.js";
import type { Inside, Watched } from "./state.js";
import { strip } from "./strip.js";

const CHART = readChart();

const marks = new WeakMap<ConversationSnapshot, { readonly newest: Transition | undefined; readonly marks: Marks }>();

/** Where the conversation is, what may come next, and what it has just taken. */
export function liveMarks({ snapshot, transitions: [newest] }: Watched): Marks {
  if (snapshot === undefined) return NO_MARKS;
  const known = marks.get(snapshot);
  if (known !== undefined && known.newest === newest) return known.marks;
  const made = {
    ...marksOf(chartOf(snapshot, CHART)),
    taken: new Set(newest?.steps.map(({ transition }) => transition)),
  };
  marks.set(snapshot, { newest, marks: made });
  return made;
}

export function nowStrip(snapshot: ConversationSnapshot | undefined): View {
  const now = snapshot === undefined ? undefined : chartOf(snapshot, CHART).now;
  const lit = new Set(Object.entries(now ?? {}).map(([region, state]) => `${region}.${state}`));
  return strip(
    "Current states",
    CHART,
    (id) => (lit.has(id) ? "now" : "off"),
    () => (now === undefined ? "being read" : undefined),
  );
}

export function livePanel(state: Inside, watched: Watched): readonly View[] {
  return [answering(state, watched), happening(watched.transitions), next(watched.snapshot)];
}

// Who may answer.

const keyOf = ({ kind, id }: Pick<Principal, "kind" | "id">): string => `${kind}/${id}`;

function answering({ credentials, devices, principal }: Inside, { snapshot, looked }: Watched): View {
  const heading = h("h2", {}, "Who may answer now, and why");
  if (snapshot === undefined || looked === undefined) {
    return h(
      "section",
      { key: "answering", class: "card" },
      heading,
      h("p", { class: "quiet-text" }, "Being looked up."),
    );
  }
  const { facts } = looked;
  const all = principalsIn(credentials, devices, facts.at);
  const chosen = all.find((each) => keyOf(each) === principal) ?? all[0];
  return h(
    "section",
    { key: "answering", class: "card" },
    heading,
    h(
      "div",
      { class: "form" },
      h("label", { for: "principal" }, "Principal"),
      h(
        "select",
        { id: "principal", on: { change: ({ value }) => ({ type: "principal_chosen", key: value }) } },
        ...all.map((each) =>
          h(
            "option",
            { key: keyOf(each), value: keyOf(each), selected: each === chosen },
            each.kind === "device" ? `device ${each.name} (${each.id.slice(0, 8)})` : each.name,
          ),
        ),
      ),
    ),
    chosen && verdictView(chosen, snapshot, facts),
    h(
      "p",
      { class: "quiet-text" },
      `Looked up by the service at ${timeOf(facts.at)}; no proof for later. Looking changes nothing: what is lost is cancelled at the next use, not here.`,
    ),
    h("button", { class: "secondary", type: "button", on: { click: () => ({ type: "look_pressed" }) } }, "Look again"),
  );
}

function verdictView(principal: Principal, snapshot: ConversationSnapshot, facts: ChartFacts): View {
  const verdict = mayAnswer(principal, snapshot, facts);
  const { may, rule, items } = verdict;
  return h(
    "div",
    { class: "verdict", "data-may": String(may), "data-rule": rule },
    h("p", { class: may ? "verdict-yes" : "verdict-no", role: "status" }, verdictWords(verdict)),
    h("ol", { class: "items" }, ...items.map(itemView)),
  );
}

function verdictWords({ may, about, rule, reason }: Verdict): string {
  if (may) return "Yes, with an answer that fits.";
  if (about === "the newest receipt") {
    if (rule === "6.4")
      return "Already answered, by section 6.4: the same answer gets the receipt, another answer_conflict.";
    if (rule === "6.5") return "Already cancelled: question_cancelled with the receipt, by section 6.5.";
  }
  return `No: ${reason ?? "refused"}, by section ${rule}.`;
}

const OUTCOMES: { readonly [O in VerdictItem["outcome"]]: string } = {
  holds: "holds",
  fails: "stands in the way",
  "depends on the answer": "depends on the answer",
};

const itemView = ({ rule, outcome, says }: VerdictItem): View =>
  h(
    "li",
    { class: `item item-${outcome === "depends on the answer" ? "open" : outcome}` },
    h("span", { class: "rule" }, rule),
    h("span", { class: "item-words" }, says, " — ", h("strong", {}, OUTCOMES[outcome])),
  );

// What happens.

const happening = (transitions: readonly Transition[]): View =>
  h(
    "section",
    { key: "happening", class: "card" },
    h("h2", {}, "As it happens"),
    transitions.length === 0
      ? h(
          "p",
          { key: "none", class: "quiet-text" },
          "Nothing has happened since you look. What was before is in its history.",
        )
      : h(
          "div",
          // focusable, since it scrolls
          { key: "list", class: "happenings", tabindex: "0", role: "group", "aria-label": "Transitions, newest first" },
          h(
            "ol",
            { "aria-live": "polite", "aria-relevant": "additions" },
            ...transitions.map((transition, index) => transitionView(transition, transitions.length - index)),
          ),
        ),
  );

function transitionView(transition: Transition, place: number): View {
  const { event, at, steps, changed, refused, reason, version, missed } = transition;
  const what = refused ? `refused: ${reason ?? ""}` : changed ? "stored" : "nothing to store";
  return h(
    "li",
    { key: `${at} ${version} ${event} ${place}`, class: refused ? "happening happening-refused" : "happening" },
    missed !== undefined &&
      h("p", { class: "quiet-text" }, `${missed} before this were not told: this page read too slowly.`),
    h(
      "p",
      { class: "happening-head" },
      h("code", {}, event),
      h("span", { class: "quiet-text" }, ` ${timeOf(at)} · ${what} · version ${version}`),
    ),
    steps.length === 0 && h("p", { class: "quiet-text" }, "No transition hears it here."),
    h("ul", { class: "steps" }, ...steps.map(stepView)),
  );
}

function stepView({ region, from, to, guard, rule, actions }: ChartStep): View {
  return h(
    "li",
    { class: "step" },
    h("strong", {}, `${region}: ${from === to ? `stays ${from}` : `${from} → ${to}`}`),
    ruleView(rule),
    h(
      "p",
      {},
      guard === undefined ? "otherwise" : `if ${inWords(guard)}: ${plain(GUARDS[guard] ?? "")}`,
      ...actions.flatMap((action) => [h("br", {}), `${inWords(action)}: ${plain(EFFECTS[action]?.means ?? "")}`]),
    ),
  );
}

const ruleView = (rule: string): View => h("span", { class: "rule" }, ` [${rule}]`);

/** The words of the document without its code marks. */
const plain = (text: string): string => text.replaceAll("`", "");

// What may come next.

function next(snapshot: ConversationSnapshot | undefined): View {
  const possible = snapshot === undefined ? [] : chartOf(snapshot, CHART).possible;
  return h(
    "section",
    { key: "next", class: "card" },
    h("h2", {}, "What may happen next, and from whom"),
    h("ul", { class: "possible" }, ...possible.map(possibleView)),
  );
}

const possibleView = ({ event, who, transitions }: PossibleEvent): View =>
  h(
    "li",
    { key: event },
    h(
      "details",
      {},
      h("summary", {}, h("code", {}, event), h("span", { class: "quiet-text" }, ` from ${who.join(", ")}`)),
      h("p", { class: "quiet-text" }, EVENTS[event].means),
      h(
        "ul",
        { class: "steps" },
        ...transitions.map(({ id, from, to, effect, rule, guard }) =>
          h(
            "li",
            { key: id, class: "step" },
            h("strong", {}, to === null || to === from ? `stays ${from}` : `${from} → ${to}`),
            ruleView(rule),
            h(
              "p",
              {},
              `${guard === null ? "otherwise" : `if ${inWords(guard)}`}${effect === null ? "" : `: ${inWords(effect)}`}`,
            ),
          ),
        ),
      ),
    ),
  );

export const timeOf = (at: string): string => `${at.slice(11, 19)} UTC`;
