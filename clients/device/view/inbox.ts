import type { InboxEntry } from "../../../protocol/snapshot.js";
import { h, type Node } from "../html.js";
import type { Paired, State } from "../state.js";
import { icon } from "./icon.js";
import { ago, choiceWords, until } from "./words.js";

/** All that waits, across conversations, the oldest first: that one has kept its agent waiting longest. */
export function inboxView(state: State, session: Paired, chosen: string | undefined): Node {
  const { inbox } = session;
  return h(
    "section",
    { key: "inbox", class: "list", "aria-labelledby": "inbox-heading" },
    h("h1", { id: "inbox-heading", tabindex: -1 }, "Waiting for you"),
    offer(state),
    inbox === undefined
      ? h("p", { key: "unread", class: "quiet" }, session.connection.kind === "lost" ? "Not read yet." : "Reading…")
      : Object.keys(inbox).length === 0
        ? h(
            "div",
            { key: "none", class: "empty" },
            h("span", { class: "empty-mark" }, icon("check")),
            h("p", { class: "empty-title" }, "Nothing is waiting."),
            h("p", { class: "quiet" }, "When an agent asks, its question appears here."),
          )
        : h(
            "ul",
            { key: "some", class: session.inboxIsFresh ? "rows" : "rows rows-stale" },
            ...Object.values(inbox)
              .toSorted((a, b) => compare(a.question.createdAt, b.question.createdAt))
              .map((entry) => row(state, session, entry, entry.question.requestId === chosen)),
          ),
  );
}

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

/** Asks for the permission to notify only once a person can see what for, and only at their press. */
function offer({ notifications }: State): Node | undefined {
  if (notifications !== "off" && notifications !== "asking") return undefined;
  return h(
    "div",
    { key: "offer", class: "offer" },
    h("p", {}, "Be told when a question arrives and this page is not in view."),
    h(
      "button",
      {
        class: "secondary",
        type: "button",
        disabled: notifications === "asking",
        on: { click: () => ({ type: "notify_pressed" }) },
      },
      "Notify me",
    ),
  );
}

function row(state: State, session: Paired, { question, title, conversationId }: InboxEntry, isHere: boolean): Node {
  const draft = session.drafts[question.requestId];
  const isDrafted = draft !== undefined && (draft.text.trim() !== "" || draft.choice !== undefined);
  return h(
    "li",
    { key: question.requestId },
    h(
      "a",
      {
        class: "row",
        href: `#/question/${encodeURIComponent(conversationId)}/${encodeURIComponent(question.requestId)}`,
        "aria-current": isHere ? "true" : undefined,
      },
      h(
        "span",
        { class: "row-head" },
        h("span", { class: "row-title", dir: "auto" }, title),
        h("span", { class: "row-when" }, ago(question.createdAt, state.now)),
      ),
      h("span", { class: "row-text", dir: "auto" }, question.prompt),
      h(
        "span",
        { class: "row-foot" },
        choiceWords(question),
        question.expiresAt !== undefined && h("span", { class: "row-tag" }, until(question.expiresAt, state.now)),
        isDrafted && h("span", { class: "row-tag" }, "Draft"),
      ),
    ),
  );
}
