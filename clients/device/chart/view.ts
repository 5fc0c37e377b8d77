import { NO_MARKS } from "../../../machines/chart/marks.js";
import { mark } from "../view/icon.js";
import { figures } from "./figures.js";
import { h, type View } from "./h.js";
import { liveMarks, livePanel, nowStrip } from "./live.js";
import type { Message } from "./message.js";
import { pastMarks, pastStrip, replayPanel } from "./past.js";
import type { Inside, State, Watched } from "./state.js";

/** The whole page, from its state alone. */
export function pageView(state: State): readonly View[] {
  switch (state.kind) {
    case "outside":
      return [header(undefined), h("main", { key: "outside", class: "main" }, entrance(state), figures(NO_MARKS))];
    case "inside":
      return [header(state), h("main", { key: "inside", class: "main" }, ...insideViews(state))];
    default:
      return state satisfies never;
  }
}

const header = (state: Inside | undefined): View =>
  h(
    "header",
    { key: "header", class: "bar" },
    h("span", { class: "brand" }, mark<Message>(), "Clankie"),
    state &&
      h(
        "span",
        { class: state.connected ? "pill pill-on" : "pill pill-off", role: "status" },
        state.connected ? "Connected" : "Reconnecting…",
      ),
    state &&
      h("button", { class: "quiet", type: "button", on: { click: () => ({ type: "left" }) } }, "Forget the token"),
  );

const title = (): View => h("h1", { tabindex: "-1" }, "State chart of a conversation");

function entrance({ token, entering, why }: Extract<State, { kind: "outside" }>): View {
  return h(
    "section",
    { key: "entrance", class: "entrance" },
    title(),
    h(
      "p",
      {},
      "The chart below is the machine that the service runs. To see a conversation on it, paste the operator's token. It stays in this page's memory, is sent to this service only, and is gone when the page is closed or loaded again.",
    ),
    h(
      "form",
      { class: "form", on: { submit: () => ({ type: "token_sent" }) } },
      h("label", { for: "token" }, "Operator's token"),
      h("input", {
        id: "token",
        type: "password",
        autocomplete: "off",
        spellcheck: "false",
        maxlength: 512,
        value: token,
        on: { input: ({ value }) => ({ type: "token_typed", value }) },
      }),
      why !== undefined && h("p", { class: "fault", role: "alert" }, why),
      h(
        "button",
        { class: "primary", type: "submit", disabled: entering },
        entering ? "Connecting…" : "Show conversations",
      ),
    ),
  );
}

function insideViews(state: Inside): readonly View[] {
  const { watched, fault } = state;
  return [
    title(),
    ...(fault === undefined ? [] : [h("p", { key: "fault", class: "fault", role: "alert" }, fault)]),
    chooser(state),
    ...(watched === undefined ? [] : [watchedView(state, watched)]),
  ];
}

function chooser({ conversations, watched }: Inside): View {
  if (conversations.length === 0) return h("p", { key: "chooser" }, "There is no conversation.");
  return h(
    "div",
    { key: "chooser", class: "form chooser" },
    h("label", { for: "conversation" }, "Conversation"),
    h(
      "select",
      { id: "conversation", on: { change: ({ value }) => ({ type: "chosen", conversationId: value }) } },
      ...conversations.map(({ conversationId, title: name }) =>
        h(
          "option",
          { key: conversationId, value: conversationId, selected: conversationId === watched?.conversationId },
          `${name} · ${conversationId.slice(0, 8)}`,
        ),
      ),
    ),
  );
}

function watchedView(state: Inside, watched: Watched): View {
  const { replay } = watched;
  const past = replay?.steps;
  const strip = past ? pastStrip(past, replay?.at ?? 0) : nowStrip(watched.snapshot);
  const marks = past ? pastMarks(past, replay?.at ?? 0) : liveMarks(watched);
  return h(
    "div",
    { key: watched.conversationId, class: "watched" },
    h("div", { key: "strip", class: "strip-place" }, strip, replayPanel(replay)),
    h("div", { key: "panel", class: "panel" }, ...(replay === undefined ? livePanel(state, watched) : [])),
    h("div", { key: "figures", class: "figures-place" }, figures(marks)),
  );
}
