import { type Child, h, type Node } from "../html.js";
import type { Paired, State } from "../state.js";
import { cardView } from "./card.js";
import { conversationView } from "./conversation.js";
import { conversationsView } from "./conversations.js";
import { deviceView } from "./device.js";
import { icon, mark } from "./icon.js";
import { inboxView } from "./inbox.js";
import { pairingView } from "./pairing.js";
import { clock } from "./words.js";

type View = Node;

/** The whole page for a state. Pure: it can be read without a browser. */
export function pageView(state: State): readonly View[] {
  const { session } = state;
  return [
    ...(session.kind === "unpaired" ? [pairingView(session)] : pairedView(state, session)),
    h("div", { key: "announcement", class: "unseen", role: "status", "aria-live": "polite" }, state.announcement),
  ];
}

/** What a browser tab or a task switcher shows. */
export function titleOf({ session }: State): string {
  const count = session.kind === "paired" ? Object.keys(session.inbox ?? {}).length : 0;
  return count === 0 ? "Clankie" : `(${count}) Clankie`;
}

function pairedView(state: State, session: Paired): readonly View[] {
  return [
    h("a", { key: "skip", class: "skip", href: "#main" }, "Skip to content"),
    h(
      "div",
      { key: "app", class: "app" },
      h(
        "header",
        { key: "bar", class: "bar" },
        h("a", { class: "brand", href: "#/" }, mark(), h("span", {}, "Clankie")),
        connectionPill(session),
      ),
      navigation(session),
      h(
        "main",
        { key: "main", id: "main", class: "main", tabindex: -1 },
        ...banners(state, session),
        panes(state, session),
      ),
    ),
  ];
}

function connectionPill({ connection }: Paired): View {
  switch (connection.kind) {
    case "connected":
      return h("span", { class: "pill pill-on" }, "Connected");
    case "connecting":
      return h("span", { class: "pill" }, "Connecting…");
    case "lost":
      return h("span", { class: "pill pill-off" }, "Reconnecting…");
    default:
      return connection satisfies never;
  }
}

function navigation({ route, inbox }: Paired): View {
  const count = Object.keys(inbox ?? {}).length;
  const isWaiting = route.kind === "inbox" || route.kind === "question";
  const isConversations = route.kind === "conversations" || route.kind === "conversation";
  const tab = (href: string, isHere: boolean, name: "inbox" | "conversations" | "device", words: string, more?: View) =>
    h(
      "li",
      { key: href },
      h(
        "a",
        { class: "tab", href, "aria-current": isHere ? "page" : undefined },
        icon(name),
        h("span", {}, words),
        more,
      ),
    );
  return h(
    "nav",
    { key: "nav", class: "nav", "aria-label": "Sections" },
    h(
      "ul",
      {},
      tab(
        "#/",
        isWaiting,
        "inbox",
        "Waiting",
        count === 0
          ? undefined
          : h("span", { class: "count" }, String(count), h("span", { class: "unseen" }, " waiting")),
      ),
      tab("#/conversations", isConversations, "conversations", "Conversations"),
      tab("#/device", route.kind === "device", "device", "This device"),
    ),
  );
}

function banners(state: State, session: Paired): readonly Child[] {
  const { connection } = session;
  return [
    connection.kind === "lost" &&
      h(
        "div",
        { key: "lost", class: "banner banner-warn" },
        icon("cloud"),
        h(
          "p",
          {},
          `No connection to the service since ${clock(connection.since, state.now)}. `,
          session.inbox === undefined
            ? "Questions appear here once it is back."
            : "What you see may be out of date; nothing can be sent. What you write stays.",
        ),
      ),
    session.mode === "read-only" &&
      h(
        "div",
        { key: "read-only", class: "banner", role: "note" },
        icon("lock"),
        h("p", {}, "Read-only: this device shows questions and cannot answer them."),
        h(
          "button",
          { class: "link", type: "button", on: { click: () => ({ type: "check_mode_pressed" }) } },
          "Check again",
        ),
      ),
    !session.kept &&
      h(
        "div",
        { key: "not-kept", class: "banner banner-warn" },
        icon("alert"),
        h("p", {}, "This browser keeps nothing for this page: it has to be paired again once it is closed."),
      ),
  ];
}

/** A list and what was chosen from it: side by side where there is room, else one at a time. */
function panes(state: State, session: Paired): View {
  const { route } = session;
  switch (route.kind) {
    case "inbox":
      return pair("waiting", inboxView(state, session, undefined), nothingChosen(session));
    case "question":
      return pair("waiting", inboxView(state, session, route.requestId), cardView(state, session, route), true);
    case "conversations":
      return pair("conversations", conversationsView(state, session, undefined), nothingOpen());
    case "conversation":
      return pair(
        "conversations",
        conversationsView(state, session, route.conversationId),
        conversationView(state, session, route),
        true,
      );
    case "device":
      return h(
        "div",
        { key: "device", class: "panes panes-single" },
        h("div", { key: "detail", class: "pane-detail" }, deviceView(state, session)),
      );
    default:
      return route satisfies never;
  }
}

function pair(key: string, list: View, detail: View, isDetail = false): View {
  return h(
    "div",
    { key, class: isDetail ? "panes panes-detail" : "panes panes-list" },
    h("div", { key: "list", class: "pane-list" }, list),
    h("div", { key: "detail", class: "pane-detail" }, detail),
  );
}

function nothingChosen({ inbox }: Paired): View {
  const isEmpty = Object.keys(inbox ?? {}).length === 0;
  return h(
    "div",
    { key: "nothing", class: "placeholder" },
    mark(),
    h("p", {}, isEmpty ? "Nothing to answer." : "Choose a question to answer it."),
  );
}

const nothingOpen = (): View =>
  h("div", { key: "nothing", class: "placeholder" }, mark(), h("p", {}, "Choose a conversation to read it."));
