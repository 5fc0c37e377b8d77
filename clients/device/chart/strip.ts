import type { ChartRegion } from "../../../machines/chart/model.js";
import { h, type View } from "./h.js";

/** How a state is shown: where it is, where it may be, or neither. */
export type Light = "now" | "maybe" | "off";

/** The states of every region in words, with the current ones lit: readable at any width. */
export const strip = (
  label: string,
  chart: readonly ChartRegion[],
  lightOf: (stateId: string) => Light,
  noteOf: (region: string) => string | undefined,
): View =>
  h(
    "dl",
    { key: "strip", class: "strip", "aria-label": label },
    ...chart.map(({ name, states }) =>
      h(
        "div",
        { key: name, class: "strip-region" },
        h("dt", {}, name),
        h(
          "dd",
          {},
          ...states.map(({ id, name: state }) => chip(id, state, lightOf(id))),
          noteOf(name) !== undefined && h("span", { key: "note", class: "strip-note" }, noteOf(name)),
        ),
      ),
    ),
  );

const chip = (id: string, state: string, light: Light): View =>
  h(
    "span",
    { key: id, class: `chip chip-${light}`, "data-state": id, "data-light": light },
    state,
    light === "now" && h("span", { class: "hidden" }, " (now)"),
    light === "maybe" && h("span", { class: "hidden" }, " (possible)"),
  );
