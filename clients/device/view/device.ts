import { type Child, h, type Node } from "../html.js";
import type { Paired, State } from "../state.js";

/** What this device is to the service, and what it keeps. */
export function deviceView(state: State, session: Paired): Node {
  return h(
    "section",
    { key: "this device", class: "card", "aria-labelledby": "device-heading" },
    h("h1", { id: "device-heading", tabindex: -1 }, "This device"),
    h(
      "dl",
      { class: "facts" },
      ...fact("Name", session.name),
      ...fact("Id", session.deviceId),
      ...fact("May", modeWords(session)),
    ),
    h("h2", {}, "Notifications"),
    ...notifications(state),
    h("h2", {}, "Forget this device"),
    h(
      "p",
      { class: "quiet" },
      "The token in this browser lets whoever has it answer for you. Forgetting removes it from here; to make it worthless everywhere, revoke the device on the computer: ",
      h("code", {}, `clankie devices revoke ${session.deviceId}`),
    ),
    h(
      "button",
      { class: "danger-outline", type: "button", on: { click: () => ({ type: "forget_pressed" }) } },
      "Forget this device",
    ),
    session.forgetting && confirmation(),
  );
}

const fact = (name: string, value: string): readonly Node[] => [
  h("dt", { key: `${name}?` }, name),
  h("dd", { key: name, dir: "auto" }, value),
];

function modeWords({ mode }: Paired): string {
  switch (mode) {
    case "active":
      return "read, answer and cancel";
    case "read-only":
      return "read only";
    case undefined:
      return "not known yet";
    default:
      return mode satisfies never;
  }
}

function notifications({ notifications: state }: State): readonly Child[] {
  switch (state) {
    case "unsupported":
      return [
        h(
          "p",
          { class: "quiet" },
          "This browser has none for this page. They need HTTPS or the same machine; on an iPhone or iPad also the page on the home screen.",
        ),
      ];
    case "denied":
      return [h("p", { class: "quiet" }, "They are blocked for this page in the browser's settings.")];
    case "on":
      return [
        h(
          "p",
          { class: "quiet" },
          "You are told when a question arrives while this page is open but not in view. The question's text is shown, also on a lock screen.",
        ),
        h(
          "button",
          { class: "secondary", type: "button", on: { click: () => ({ type: "notify_off_pressed" }) } },
          "Turn off",
        ),
      ];
    case "off":
    case "asking":
      return [
        h("p", { class: "quiet" }, "Be told when a question arrives while this page is open but not in view."),
        h(
          "button",
          {
            class: "secondary",
            type: "button",
            disabled: state === "asking",
            on: { click: () => ({ type: "notify_pressed" }) },
          },
          "Notify me",
        ),
      ];
    default:
      return state satisfies never;
  }
}

function confirmation(): Node {
  return h(
    "dialog",
    {
      key: "forget",
      class: "dialog",
      modal: true,
      "aria-labelledby": "forget-heading",
      on: { cancel: () => ({ type: "forget_kept" }) },
    },
    h("h2", { id: "forget-heading" }, "Forget this device?"),
    h("p", {}, "It has to be paired again before it shows anything."),
    h(
      "div",
      { class: "dialog-actions" },
      h("button", { class: "secondary", type: "button", on: { click: () => ({ type: "forget_kept" }) } }, "Keep it"),
      h(
        "button",
        {
          class: "danger",
          type: "button",
          "data-deliberate": true,
          on: { click: () => ({ type: "forget_confirmed" }) },
        },
        "Forget",
      ),
    ),
  );
}
