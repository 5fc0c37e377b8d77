import { h, type Node } from "../html.js";
import type { Unpaired } from "../state.js";
import { mark } from "./icon.js";

/** The first view of a new device: a one-time code and a name. */
export function pairingView({ code, name, pairing, notice }: Unpaired): Node {
  const isSending = pairing.kind === "sending";
  const fault = pairing.kind === "failed" ? pairing.why : undefined;
  return h(
    "main",
    { key: "pairing", id: "main", class: "pairing" },
    h("div", { class: "brand brand-large" }, mark(), h("span", {}, "Clankie")),
    notice !== undefined && h("p", { key: "notice", class: "banner banner-warn" }, notice),
    h("h1", { tabindex: -1 }, "Pair this device"),
    h(
      "p",
      { class: "quiet" },
      "On the computer where Clankie runs, type ",
      h("code", {}, "clankie devices pair"),
      ". It shows a code that works once, for a short time.",
    ),
    h(
      "form",
      { class: "form", novalidate: true, on: { submit: () => ({ type: "pair_pressed" }) } },
      h(
        "div",
        { class: "field" },
        h("label", { for: "code" }, "One-time code"),
        h("input", {
          id: "code",
          class: "code",
          type: "text",
          value: code,
          autocomplete: "one-time-code",
          autocapitalize: "characters",
          autocorrect: "off",
          spellcheck: "false",
          enterkeyhint: "next",
          maxlength: 64,
          required: true,
          readonly: isSending,
          "aria-invalid": fault !== undefined ? "true" : undefined,
          "aria-describedby": fault !== undefined ? "pair-fault" : undefined,
          on: { input: ({ value }) => ({ type: "code_typed", code: value }) },
        }),
      ),
      h(
        "div",
        { class: "field" },
        h("label", { for: "name" }, "Name of this device"),
        h("input", {
          id: "name",
          type: "text",
          value: name,
          autocomplete: "off",
          enterkeyhint: "go",
          maxlength: 256,
          required: true,
          readonly: isSending,
          "aria-describedby": "name-hint",
          on: { input: ({ value }) => ({ type: "name_typed", name: value }) },
        }),
        h("p", { id: "name-hint", class: "hint" }, "The operator sees it in the list of devices."),
      ),
      fault !== undefined && h("p", { key: "fault", id: "pair-fault", class: "fault", role: "alert" }, fault),
      h(
        "button",
        { class: "primary", type: "submit", "aria-disabled": isSending ? "true" : undefined },
        isSending ? "Pairing…" : "Pair",
      ),
    ),
  );
}
