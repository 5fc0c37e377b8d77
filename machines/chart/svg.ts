import { type Arrow, arrowsOf, type Staying, stayingOf } from "./groups.js";
import { type Marks, NO_MARKS } from "./marks.js";
import { type ChartRegion, type ChartState, type ChartTransition, inWords, readChart } from "./model.js";

/**
 * The chart as one SVG, 900 wide, light or dark as its reader prefers. A region is a column of states; each arrow runs
 * from its state through a lane of its own to the list of its transitions and back to its target. What stays in a state
 * is listed below, in the order in which it is tried. Deterministic, and nothing is fetched.
 */
export function svg(marks: Marks = NO_MARKS, chart: readonly ChartRegion[] = readChart()): string {
  let y = MARGIN;
  const drawn: string[] = [];
  for (const region of chart) {
    const { markup, bottom } = drawRegion(region, y, marks);
    drawn.push(markup);
    y = bottom + 2 * LINE;
  }
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${y}" width="${WIDTH}" height="${y}" role="img" aria-label="State chart of a conversation">`,
    `<style>${STYLE}</style>`,
    `<rect class="paper" width="${WIDTH}" height="${y}"/>`,
    ...drawn,
    "</svg>",
    "",
  ].join("\n");
}

/** One region as an SVG of its own, without a style: for a page that has its own, by the same classes. */
export function regionSvg(region: ChartRegion, marks: Marks = NO_MARKS): string {
  const { markup, bottom } = drawRegion(region, MARGIN, marks);
  const height = bottom + LINE;
  return `<svg class="chart" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" role="img" aria-label="State chart: ${escaped(region.name)}">${markup}</svg>`;
}

const WIDTH = 900;
const MARGIN = 16;
const LINE = 17;
const BOX_WIDTH = 130;
const BOX_HEIGHT = 40;
const LANE = 9;
const RIGHT = WIDTH - MARGIN;
const COLOURS = 4;

const STYLE = `
.paper{fill:#fff}
text{font:12px system-ui,-apple-system,"Segoe UI",Roboto,sans-serif;fill:#1c2024}
.title{font-size:17px;font-weight:600}
.quiet{fill:#5b6370}
.head{font-weight:600}
.event{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;font-size:11.5px}
.box{fill:#f3f5f8;stroke:#5b6370;stroke-width:1.2}
.name{font-size:14px;font-weight:600;text-anchor:middle}
.rule{text-anchor:end;fill:#5b6370}
.line{fill:none;stroke-width:1.5}
.c0{stroke:#1769c2}.c1{stroke:#b3261e}.c2{stroke:#1b7f3b}.c3{stroke:#8a5a00}
.f0{fill:#1769c2}.f1{fill:#b3261e}.f2{fill:#1b7f3b}.f3{fill:#8a5a00}
.now .box{fill:#fff3c4;stroke:#8a5a00;stroke-width:3}
.lit{fill:#fff3c4}
@media (prefers-color-scheme:dark){
.paper{fill:#14171a}
text{fill:#e6e8eb}
.quiet,.rule{fill:#a3abb6}
.box{fill:#20252b;stroke:#a3abb6}
.c0{stroke:#7ab8ff}.c1{stroke:#ff8f87}.c2{stroke:#6fd08c}.c3{stroke:#e8b45a}
.f0{fill:#7ab8ff}.f1{fill:#ff8f87}.f2{fill:#6fd08c}.f3{fill:#e8b45a}
.now .box{fill:#4a3c0d;stroke:#e8b45a}
.lit{fill:#4a3c0d}
}`.trim();

interface Drawn {
  readonly markup: string;
  readonly bottom: number;
}

function drawRegion(region: ChartRegion, top: number, marks: Marks): Drawn {
  const arrows = arrowsOf(region);
  const textLeft = MARGIN + BOX_WIDTH + (2 * arrows.length + 1) * LANE + 14;
  const title = [
    text(MARGIN, top + 14, "title", region.name),
    text(MARGIN, top + 14 + LINE, "quiet", `${region.description} Begins as ${region.initial}. [${region.rule}]`),
  ];
  const blocksTop = top + 14 + 2 * LINE;
  const blocks = placeBlocks(arrows, blocksTop);
  const blocksBottom = blocks.at(-1)?.bottom ?? blocksTop;
  const boxes = placeBoxes(region.states, blocksTop, Math.max(blocksBottom, blocksTop + region.states.length * 64));
  const bottom = Math.max(blocksBottom, (boxes.at(-1)?.top ?? blocksTop) + BOX_HEIGHT);

  const ports = new Ports(boxes, arrows);
  const lines = blocks.map((block, index) => drawArrow(block, index, arrows.length, ports, region, textLeft));
  const lists = blocks.map((block) =>
    drawList(heading(block.arrow), block.arrow.transitions, block.top, textLeft, marks),
  );
  const staying = drawStaying(stayingOf(region), bottom + LINE, marks);
  return {
    markup: [...title, ...lines, ...boxes.map((box) => drawBox(box, marks)), ...lists, staying.markup].join("\n"),
    bottom: staying.bottom,
  };
}

// Lists of transitions.

interface Block {
  readonly arrow: Arrow;
  readonly top: number;
  readonly bottom: number;
}

const heightOf = (transitions: readonly ChartTransition[]): number => (transitions.length + 1) * LINE;

function placeBlocks(arrows: readonly Arrow[], top: number): readonly Block[] {
  let y = top;
  return arrows.map((arrow) => {
    const block = { arrow, top: y, bottom: y + heightOf(arrow.transitions) };
    y = block.bottom + LINE / 2;
    return block;
  });
}

const heading = ({ from, to }: Arrow): string => `${from} → ${to}`;

const drawList = (
  head: string,
  transitions: readonly ChartTransition[],
  top: number,
  left: number,
  marks: Marks,
): string =>
  [
    text(left, top + 13, "head", head),
    ...transitions.map((transition, index) => drawTransition(transition, top + (index + 1) * LINE, left, marks)),
  ].join("\n");

function drawTransition(transition: ChartTransition, top: number, left: number, marks: Marks): string {
  const { id, event, place, guard, effect, rule } = transition;
  const light = marks.taken?.has(id) ? "took" : marks.transitions.has(id) ? "lit" : undefined;
  const lit = light
    ? `<rect class="${light}" x="${left - 4}" y="${top + 1}" width="${RIGHT - left + 8}" height="${LINE - 1}" rx="3"/>`
    : "";
  const condition = guard === null ? "" : ` [${inWords(guard)}]`;
  const consequence = effect === null ? "" : ` / ${inWords(effect)}`;
  return [
    lit,
    `<text x="${left}" y="${top + 13}"><tspan class="event">${escaped(event)}</tspan><tspan class="quiet"> ${place}</tspan>${escaped(condition + consequence)}</text>`,
    text(RIGHT, top + 13, "rule", rule),
  ].join("");
}

function drawStaying(groups: readonly Staying[], top: number, marks: Marks): Drawn {
  let y = top;
  const markup = groups.map(({ states, transitions }) => {
    const list = drawList(`stays in ${states.join(", ")}`, transitions, y, MARGIN + 8, marks);
    y += heightOf(transitions) + LINE / 2;
    return list;
  });
  return { markup: markup.join("\n"), bottom: y };
}

// States.

interface Box {
  readonly state: ChartState;
  readonly index: number;
  readonly top: number;
}

function placeBoxes(states: readonly ChartState[], top: number, bottom: number): readonly Box[] {
  const gap = states.length < 2 ? 0 : (bottom - top - BOX_HEIGHT) / (states.length - 1);
  return states.map((state, index) => ({ state, index, top: Math.round(top + index * gap) }));
}

const drawBox = ({ state, top }: Box, marks: Marks): string =>
  [
    `<g${marks.states.has(state.id) ? ' class="now"' : marks.maybe?.has(state.id) ? ' class="maybe"' : ""}>`,
    `<rect class="box" x="${MARGIN}" y="${top}" width="${BOX_WIDTH}" height="${BOX_HEIGHT}" rx="8"><title>${escaped(state.description)}</title></rect>`,
    text(MARGIN + BOX_WIDTH / 2, top + 18, "name", state.name),
    `<text class="quiet" x="${MARGIN + BOX_WIDTH / 2}" y="${top + 33}" text-anchor="middle">${escaped(state.rule)}</text>`,
    "</g>",
  ].join("");

// Arrows.

/** Where lines meet a box: each has a height of its own on the right edge. */
class Ports {
  private readonly used = new Map<string, number>();

  constructor(
    private readonly boxes: readonly Box[],
    private readonly arrows: readonly Arrow[],
  ) {}

  next(name: string): number {
    const box = this.boxes.find(({ state }) => state.name === name);
    if (box === undefined) throw new Error(`${name} is no state of this region`);
    const all = this.arrows.filter(({ from, to }) => from === name || to === name).length;
    const index = this.used.get(name) ?? 0;
    this.used.set(name, index + 1);
    return Math.round(box.top + ((index + 1) * BOX_HEIGHT) / (all + 1));
  }
}

function drawArrow(
  block: Block,
  index: number,
  arrows: number,
  ports: Ports,
  region: ChartRegion,
  textLeft: number,
): string {
  const { arrow, top } = block;
  const colour = region.states.findIndex(({ name }) => name === arrow.to) % COLOURS;
  const edge = MARGIN + BOX_WIDTH;
  const out = ports.next(arrow.from);
  const back = ports.next(arrow.to);
  const laneOut = edge + (2 * (arrows - index) + 0.5) * LANE;
  const laneBack = laneOut - LANE;
  const head = top + 9;
  const foot = block.bottom - 5;
  const rail = textLeft - 8;
  return [
    `<path class="line c${colour}" d="M${edge} ${out}H${laneOut}V${head}H${rail}V${foot}H${laneBack}V${back}H${edge + 7}"/>`,
    `<path class="f${colour}" d="M${edge} ${back}l9 -4.5v9z"/>`,
  ].join("");
}

const text = (x: number, y: number, style: string, content: string): string =>
  `<text class="${style}" x="${x}" y="${y}">${escaped(content)}</text>`;

const ENTITIES: { readonly [character: string]: string } = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };

const escaped = (content: string): string => content.replace(/[&<>"]/g, (character) => ENTITIES[character] ?? "");
