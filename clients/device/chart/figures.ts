import type { Marks } from "../../../machines/chart/marks.js";
import { readChart } from "../../../machines/chart/model.js";
import { regionSvg } from "../../../machines/chart/svg.js";
import { h, type View } from "./h.js";
import { viewOf } from "./markup.js";
import type { Message } from "./message.js";

const CHART = readChart();
/** What was drawn last: the marks change far less often than the page. */
let drawn: { readonly marks: Marks; readonly view: View } | undefined;

/** The chart, a figure a region; where the window is narrower than a figure, that one scrolls. */
export function figures(marks: Marks): View {
  if (drawn?.marks !== marks) drawn = { marks, view: draw(marks) };
  return drawn.view;
}

const draw = (marks: Marks): View =>
  h(
    "section",
    { key: "figures", class: "figures", "aria-label": "The chart" },
    ...CHART.map((region) =>
      h(
        "div",
        { key: region.name, class: "figure", tabindex: "0", role: "group", "aria-label": `Chart of ${region.name}` },
        viewOf<Message>(regionSvg(region, marks)),
      ),
    ),
  );
