import type { ConversationEvent } from "../../../protocol/events.js";
import type { Question } from "../../../protocol/question.js";
import type { ConversationSnapshot } from "../../../protocol/snapshot.js";
import { type Child, h, type Node } from "../html.js";
import type { OpenConversation, Paired, Route, State } from "../state.js";
import { icon } from "./icon.js";
import { ago, answerWords, cancelWords, clock, conversationWords, resolver } from "./words.js";

type View = Node;

/** One conversation: how it stands, what waits in it, what was answered, and its history. */
export function conversationView(
  state: State,
  session: Paired,
  { conversationId }: Extract<Route, { kind: "conversation" }>,
): View {
  const { open } = session;
  const snapshot = open?.snapshot;
  return h(
    "article",
    { key: `conversation ${conversationId}`, class: "card", "aria-labelledby": "conversation-heading" },
    h("a", { key: "back", class: "back", href: "#/conversations" }, icon("back"), "Conversations"),
    h(
      "header",
      { key: "head", class: "card-head" },
      snapshot !== undefined &&
        h("p", { class: "eyebrow" }, conversationWords(snapshot), ` · revision ${snapshot.revision}`),
      h(
        "h1",
        { id: "conversation-heading", class: "prompt", tabindex: -1, dir: "auto" },
        snapshot?.title ?? "Conversation",
      ),
      snapshot !== undefined &&
        h(
          "p",
          { class: "workspace" },
          h("span", { class: "unseen" }, "Directory: "),
          h("bdi", {}, snapshot.scope.workspaceId ?? snapshot.scope.kind),
        ),
    ),
    open?.fault !== undefined && h("p", { key: "fault", class: "fault", role: "alert" }, open.fault),
    snapshot?.question != null && waitingHere(snapshot.question),
    snapshot !== undefined && receipts(state, session, Object.values(snapshot.receipts)),
    open !== undefined && historyView(state, open),
  );
}

function waitingHere(question: Question): View {
  return h(
    "a",
    {
      key: "waiting",
      class: "row row-waiting",
      href: questionHref(question),
    },
    h("span", { class: "row-head" }, h("span", { class: "tag tag-waiting" }, "Waiting for you")),
    h("span", { class: "row-text", dir: "auto" }, question.prompt),
  );
}

const questionHref = ({ conversationId, requestId }: Question): string =>
  `#/question/${encodeURIComponent(conversationId)}/${encodeURIComponent(requestId)}`;

function receipts(state: State, session: Paired, all: readonly Question[]): Child {
  if (all.length === 0) return undefined;
  const newest = all.toSorted((a, b) => ((a.resolvedAt ?? "") < (b.resolvedAt ?? "") ? 1 : -1));
  return h(
    "details",
    { key: "receipts", class: "receipts" },
    h("summary", {}, all.length === 1 ? "1 question resolved" : `${all.length} questions resolved`),
    h(
      "ul",
      { class: "rows" },
      ...newest.map((question) =>
        h(
          "li",
          { key: question.requestId },
          h(
            "a",
            { class: "row", href: questionHref(question) },
            h("span", { class: "row-text", dir: "auto" }, question.prompt),
            h(
              "span",
              { class: "row-foot", dir: "auto" },
              question.status === "submitted" ? `“${answerWords(question)}”` : cancelWords(question.reason),
            ),
            h(
              "span",
              { class: "row-when" },
              `By ${resolver(question, session.deviceId)}`,
              question.resolvedAt !== undefined && `, ${ago(question.resolvedAt, state.now)}`,
            ),
          ),
        ),
      ),
    ),
  );
}

function historyView(state: State, { history, snapshot }: OpenConversation): View {
  const { events, shown, reading, gap } = history;
  const drawn = events.slice(-shown);
  const hidden = events.length - drawn.length;
  return h(
    "section",
    { key: "history", class: "history", "aria-labelledby": "history-heading" },
    h("h2", { id: "history-heading" }, "History"),
    reading.kind === "reading" && h("p", { key: "reading", class: "quiet" }, "Reading…"),
    reading.kind === "failed" && h("p", { key: "failed", class: "fault" }, reading.why),
    hidden > 0 &&
      h(
        "button",
        { key: "earlier", class: "secondary", type: "button", on: { click: () => ({ type: "earlier_pressed" }) } },
        `Show earlier (${hidden})`,
      ),
    gap &&
      hidden === 0 &&
      h("p", { key: "gap", class: "gap", role: "note" }, "Some earlier events are no longer kept."),
    reading.kind === "done" &&
      events.length === 0 &&
      h("p", { key: "none", class: "quiet" }, "Nothing has happened yet."),
    drawn.length > LONG &&
      h(
        "button",
        { key: "newest", class: "secondary", type: "button", on: { click: () => ({ type: "newest_pressed" }) } },
        "Go to the newest",
      ),
    h(
      "ol",
      { key: "events", class: "events" },
      ...grouped(drawn).map((events) => eventView(state, events, snapshot?.receipts ?? {})),
    ),
    h("p", { key: "end", id: "newest", class: "unseen", tabindex: -1 }, "End of the history"),
  );
}

/** More events than this are more than a screen. */
const LONG = 20;

type Group = readonly [ConversationEvent, ...ConversationEvent[]];

/** An agent's output comes line by line: what one voice says without a break is drawn as one message. */
function grouped(events: readonly ConversationEvent[]): readonly Group[] {
  const groups: [ConversationEvent, ...ConversationEvent[]][] = [];
  for (const event of events) {
    const group = groups.at(-1);
    const [first] = group ?? [];
    if (group !== undefined && first?.type === "message" && event.type === "message" && first.role === event.role)
      group.push(event);
    else groups.push([event]);
  }
  return groups;
}

const textsOf = (events: Group): string =>
  events.map((event) => (event.type === "message" ? event.text : "")).join("\n");

/** The event says only that it was answered; with what, the receipt does, as long as it is kept. */
function resolvedWords(outcome: "submitted" | "cancelled", receipt: Question | undefined): string {
  if (outcome === "cancelled") return "The question was cancelled";
  return receipt === undefined ? "The question was answered" : `Answered: ${answerWords(receipt)}`;
}

function eventView(state: State, events: Group, kept: ConversationSnapshot["receipts"]): View {
  const [event] = events;
  const time = h("time", { class: "event-time", datetime: event.occurredAt }, clock(event.occurredAt, state.now));
  const line = (words: string, kind = ""): View =>
    h("li", { key: event.cursor, class: `event event-line ${kind}` }, h("span", { dir: "auto" }, words), time);
  switch (event.type) {
    case "message": {
      const who = event.role === "operator" ? "Owner" : event.role === "agent" ? "Agent" : "External";
      return h(
        "li",
        { key: event.cursor, class: `event message message-${event.role}` },
        h("span", { class: "message-who" }, who, time),
        h("p", { class: "message-text", dir: "auto" }, textsOf(events)),
      );
    }
    case "turn":
      return line(
        `Run ${event.phase}${event.reasonCode === undefined ? "" : ` (${event.reasonCode})`}${event.summary === undefined ? "" : `: ${event.summary}`}`,
        event.phase === "failed" ? "event-failed" : "",
      );
    case "input_requested":
      return line(`Asked: ${event.prompt}`, "event-question");
    case "input_resolved":
      return line(resolvedWords(event.outcome, kept[event.requestId]), "event-question");
    case "tool":
      return line(`${event.name} ${event.phase}${event.summary === undefined ? "" : `: ${event.summary}`}`);
    case "activity":
      return line(`The agent is ${event.phase}`);
    case "session":
      return line(`Session ${event.phase}`);
    default:
      return event satisfies never;
  }
}
