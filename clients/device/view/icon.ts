import { type Element, element, h } from "../html.js";
import type { Message } from "../message.js";

const PATHS = {
  inbox:
    "M4 13.5V6.8A2.8 2.8 0 0 1 6.8 4h10.4A2.8 2.8 0 0 1 20 6.8v6.7M4 13.5h4.2l1.4 2.5h4.8l1.4-2.5H20M4 13.5v3.7A2.8 2.8 0 0 0 6.8 20h10.4a2.8 2.8 0 0 0 2.8-2.8v-3.7",
  conversations: "M4 7h16M4 12h16M4 17h10",
  device:
    "M8.5 3h7A1.5 1.5 0 0 1 17 4.5v15a1.5 1.5 0 0 1-1.5 1.5h-7A1.5 1.5 0 0 1 7 19.5v-15A1.5 1.5 0 0 1 8.5 3ZM11 18h2",
  back: "M14.5 5.5 8 12l6.5 6.5",
  check: "M5 12.5 10 17.5 19.5 7",
  lock: "M7.5 11V8a4.5 4.5 0 0 1 9 0v3M6 11h12v9H6Z",
  next: "M9.5 5.5 16 12l-6.5 6.5",
  cross: "M6.5 6.5l11 11M17.5 6.5l-11 11",
  pencil: "M4.5 19.5l1-4L16 5l3 3L8.5 18.5ZM13.5 7.5l3 3",
  alert: "M12 8v5M12 16.2v.3M12 3.5l9 16H3Z",
  cloud: "M3 3l18 18M9.5 6.3A5.5 5.5 0 0 1 17 9.6a4.2 4.2 0 0 1 2.9 7M6.3 9.4A4.4 4.4 0 0 0 7.4 18h9.4",
} as const;

/** A line drawing beside words that say the same. */
export function icon(name: keyof typeof PATHS): Element {
  return h(
    "svg",
    { class: "icon", viewBox: "0 0 24 24", "aria-hidden": "true", focusable: "false" },
    h("path", { d: PATHS[name] }),
  );
}

/** The mark: a question's bubble with the answer's tick in it. */
export function mark<M = Message>(): Element<M> {
  return element<M>(
    "svg",
    { class: "mark", viewBox: "0 0 24 24", "aria-hidden": "true", focusable: "false" },
    element<M>("path", {
      class: "mark-bubble",
      d: "M6 2.5h12A3.5 3.5 0 0 1 21.5 6v8.5A3.5 3.5 0 0 1 18 18h-6.5L7 22v-4H6a3.5 3.5 0 0 1-3.5-3.5V6A3.5 3.5 0 0 1 6 2.5Z",
    }),
    element<M>("path", { class: "mark-tick", d: "M7.6 10.4l3.1 3.1 5.9-6.2" }),
  );
}
