import type { ConversationEvent } from "../../protocol/events.js";
import { safeText } from "../text.js";
import { cardBody, cardFoot } from "./card.js";
import { COMMANDS, candidates } from "./commands.js";
import { cells, clip, clipLine, graphemes, hang, type Line, line, lineCells, paragraph, span } from "./layout.js";
import {
  isLow,
  isUnread,
  type Row,
  rowsOf,
  type State,
  selectedOf,
  shownCard,
  waitingHere,
  waitingOf,
} from "./state.js";
import { transcriptLines } from "./transcript.js";
import { spanWords, timeWords } from "./words.js";

/** A piece of a screen row: where it begins, in cells from the left. Pieces are drawn in order. */
export interface Piece {
  readonly at: number;
  readonly line: Line;
}

/** The whole screen. */
export interface Frame {
  /** As many as the terminal has rows. */
  readonly rows: readonly (readonly Piece[])[];
  /**
   * The cursor stands behind `before`, drawn at `at`: the terminal itself knows how wide it made that text, which no
   * table of widths does for certain.
   */
  readonly cursor: { readonly row: number; readonly at: number; readonly before: Line };
}

/** What fits of the two parts that scroll, in lines. */
export interface Measure {
  readonly cardShown: number;
  readonly cardHidden: number;
  readonly mainShown: number;
  readonly mainHidden: number;
}

/** Below this many columns the list of conversations is a page of its own. */
const SIDE_FROM = 100;

interface Layout {
  readonly side: number;
  readonly width: number;
  readonly banner: readonly Line[];
  readonly notice: readonly Line[];
  readonly hint: readonly Line[];
  readonly input: InputLayout;
  readonly cardLines: readonly Line[];
  readonly cardFoot: readonly Line[];
  readonly cardShown: number;
  readonly mainLines: readonly Line[];
  readonly mainShown: number;
}

function layout(state: State): Layout {
  const { columns, rows } = state;
  const side = columns >= SIDE_FROM && state.pane !== "list" ? Math.min(40, Math.floor(columns * 0.26)) : 0;
  const width = side === 0 ? columns : columns - side - 2;
  const input = layoutInput(state, width);
  const small = rows < 12;
  const hint = small || (isLow(state) && shownCard(state) !== null) ? [] : [hintLine(state, width)];
  const notice = limited(noticeLines(state, width), Math.max(1, Math.min(6, Math.floor(rows / 4))), width);
  const banner = small ? bannerLines(state, width).slice(0, 1) : bannerLines(state, width);
  const rest = Math.max(0, rows - 2 - input.lines.length - hint.length - notice.length - banner.length);
  const { card, pane } = state;
  const shows = pane === "conversation" && card !== null && !card.hidden;
  const cardLines = shows ? cardBody(state, card, width) : [];
  const foot = shows ? cardFoot(state, card, width) : [];
  const room = Math.max(0, rest - foot.length - 1);
  const cardShown = Math.min(cardLines.length, room);
  const cardRows = shows ? Math.min(rest, cardShown + foot.length + 1) : 0;
  const mainLines = paneLines(state, width);
  return {
    side,
    width,
    banner,
    notice,
    hint,
    input,
    cardLines,
    cardFoot: foot,
    cardShown,
    mainLines,
    mainShown: rest - cardRows,
  };
}

/** How much of the screen's scrolling parts is shown and hidden. */
export function measure(state: State): Measure {
  const { cardLines, cardShown, mainLines, mainShown } = layout(state);
  return {
    cardShown,
    cardHidden: cardLines.length - cardShown,
    mainShown,
    mainHidden: Math.max(0, mainLines.length - mainShown),
  };
}

/** The screen for a state. Pure: the same state is the same screen. */
export function view(state: State): Frame {
  const { columns, rows } = state;
  const parts = layout(state);
  const { side, width } = parts;
  const main = mainWindow(state, parts);
  const cardPart = cardWindow(state, parts);
  const body = [...main, ...cardPart, ...parts.banner, ...parts.notice, ...parts.hint];
  const inputAt = 1 + body.length;
  const middle = [...body, ...parts.input.lines];
  const sidebar = side === 0 ? [] : sideLines(state, side, middle.length);
  const left = side === 0 ? 0 : side + 2;
  const framed: (readonly Piece[])[] = [
    [{ at: 0, line: headerLine(state) }],
    ...middle.map((content, index): readonly Piece[] =>
      side === 0
        ? [{ at: 0, line: clipLine(content, width) }]
        : [
            { at: 0, line: sidebar[index] ?? [] },
            { at: side, line: [span("│ ", "dim"), ...clipLine(content, width)] },
          ],
    ),
    [{ at: 0, line: statusLine(state) }],
  ];
  const cursorRow = inputAt + parts.input.cursorRow;
  // a terminal that is too low for everything keeps the input
  const over = Math.max(0, framed.length - rows);
  const shown = over === 0 ? framed : [...framed.slice(over, -1), framed.at(-1) ?? []].slice(0, rows);
  while (shown.length < rows) shown.splice(1, 0, [{ at: 0, line: [] }]);
  return {
    rows: shown.map((pieces) =>
      pieces.map(({ at, line: content }) => ({ at, line: clipLine(content, Math.max(0, columns - at)) })),
    ),
    cursor: { row: Math.max(0, Math.min(rows - 1, cursorRow - over)), at: left, before: parts.input.before },
  };
}

function mainWindow(state: State, { mainLines, mainShown }: Layout): readonly Line[] {
  const hidden = Math.max(0, mainLines.length - mainShown);
  const scroll = Math.min(hidden, Math.max(0, state.scroll));
  if (mainShown === 0) return [];
  const fromEnd = state.pane === "conversation";
  const start = fromEnd ? hidden - scroll : scroll;
  const shown = mainLines.slice(start, start + mainShown);
  const filled = [...Array.from({ length: mainShown - shown.length }, (): Line => [])];
  const placed = fromEnd ? [...filled, ...shown] : [...shown, ...filled];
  const below = hidden - start;
  if (below > 0 && placed.length > 1) return [...placed.slice(0, -1), line(`↓ ${below} more lines · PgDn`, "dim")];
  return placed;
}

function cardWindow(state: State, { cardLines, cardFoot: foot, cardShown, width }: Layout): readonly Line[] {
  const { card, pane } = state;
  if (card === null || card.hidden || pane !== "conversation") return [];
  const hidden = cardLines.length - cardShown;
  const scroll = Math.min(hidden, card.scroll);
  const position = hidden > 0 ? positionWords(scroll, cardShown, cardLines.length, width) : "";
  const title = card.question.status === "pending" ? " Question " : " Receipt ";
  const rule = "─".repeat(Math.max(0, width - cells(`┌─${title}${position}`)));
  const top: Line = [span("┌─", "accent"), span(title, "strong"), span(rule, "accent"), span(position, "warn")];
  const bar = (content: Line): Line => [span("│ ", "accent"), ...content];
  return [top, ...cardLines.slice(scroll, scroll + cardShown).map(bar), ...foot.map(bar)];
}

function positionWords(scroll: number, shown: number, all: number, width: number): string {
  return width < 60
    ? ` ${scroll + 1}–${scroll + shown} of ${all} · PgUp/Dn `
    : ` lines ${scroll + 1}–${scroll + shown} of ${all} · PgUp PgDn `;
}

function paneLines(state: State, width: number): readonly Line[] {
  switch (state.pane) {
    case "conversation":
      return transcriptLines(state, width);
    case "list":
      return listLines(state, width);
    case "waiting":
      return waitingLines(state, width);
    case "help":
      return helpLines(width);
    default:
      return state.pane satisfies never;
  }
}

/** The lines an event adds to the transcript. */
export const eventLines = (state: State, event: ConversationEvent): readonly Line[] => {
  if (state.open === null) return [];
  const { width } = layout(state);
  const all = transcriptLines(state, width).length;
  const events = state.open.events.filter((other) => other !== event);
  const without = transcriptLines({ ...state, open: { ...state.open, events } }, width).length;
  return Array.from({ length: Math.max(0, all - without) }, () => []);
};

// ---- single lines

function headerLine(state: State): Line {
  const { columns, open, pane } = state;
  const row = rowsOf(state).find(({ conversationId }) => conversationId === open?.conversationId);
  const title = safeText(row?.title ?? open?.snapshot?.title ?? open?.conversationId ?? "").replaceAll("\n", " ");
  const names = { conversation: title, list: "Conversations", waiting: "What waits for an answer", help: "Help" };
  const directory = safeText(open?.snapshot?.scope.workspaceId ?? row?.directory ?? "").replaceAll("\n", " ");
  const behind = pane === "conversation" && directory !== "" ? ` · ${directory}` : "";
  const number = pane === "conversation" && row !== undefined ? `${row.number} ` : "";
  const text = clip(` clankie │ ${number}${names[pane]}${behind}`, columns);
  return [span(text + " ".repeat(Math.max(0, columns - cells(text))), "bar")];
}

/** Connection, authority, what waits, driver, revision: what a glance has to tell. */
function statusLine(state: State): Line {
  const { columns, open } = state;
  const snapshot = open?.snapshot ?? null;
  const parts: Line[] = [connectionSpans(state)];
  const authority = authorityWords(state);
  if (authority !== null) parts.push(line(authority, "warn"));
  const count = state.inbox === null ? null : waitingOf(state).length;
  if (count !== null) parts.push(line(`${count} waiting`, count > 0 ? "warn" : "plain"));
  if (snapshot !== null && state.pane === "conversation") {
    const { driver } = snapshot;
    parts.push(line(`revision ${snapshot.revision}`));
    const harness = driver.harness === undefined ? "" : ` (${safeText(driver.harness)})`;
    parts.push(line(`driver ${driver.kind}${harness}`, driver.kind === "native" ? "warn" : "plain"));
    const run =
      snapshot.activeRun === null ? "idle" : snapshot.activeRun.state === "running" ? "agent works" : "run waits";
    parts.push(line(snapshot.queuedRuns > 0 ? `${run}, ${snapshot.queuedRuns} queued` : run));
  }
  const joined = parts.flatMap((part, index) => (index === 0 ? part : [span(" · ", "dim"), ...part]));
  return clipLine([span(" "), ...joined], columns);
}

function connectionSpans({ connection, now, principal, columns }: State): Line {
  switch (connection.kind) {
    case "connecting":
      return line("○ connecting…", "warn");
    case "connected": {
      const who =
        principal === null || columns < 60 ? "" : principal.kind === "device" ? " as device" : ` as ${principal.kind}`;
      return [span("●", "good"), span(` connected${who}`)];
    }
    case "reconnecting": {
      const left = connection.nextTryAt - now;
      return line(
        `○ reconnecting${left > 500 ? ` in ${spanWords(left)}` : "…"} (${oneLine(connection.detail)})`,
        "bad",
      );
    }
    case "closed":
      return line(`○ ${connection.say}`, "bad");
    default:
      return connection satisfies never;
  }
}

function authorityWords({ principal }: State): string | null {
  switch (principal?.kind) {
    case undefined:
    case "operator":
      return null;
    case "device":
      return principal.mode === "read-only" ? "READ-ONLY" : null;
    case "captain":
      return "may not answer";
    case "agent":
      return "READ-ONLY";
    default:
      return null;
  }
}

function hintLine(state: State, width: number): Line {
  const { text } = state.editor;
  if (text.startsWith("/") && !text.includes("\n")) {
    const rows = rowsOf(state).map(({ number, title }) => ({ number, title }));
    const visible = state.card !== null && !state.card.hidden ? state.card.question.options.length : 0;
    const found = candidates(text, { options: visible, conversations: rows });
    const usage = COMMANDS.filter(({ usage: shape }) => shape.split(" ", 1)[0] === text.split(" ", 1)[0]);
    if (found.length > 0)
      return clipLine([span("Tab  ", "dim"), span(found.map((one) => one.trim()).join("  "), "dim")], width);
    return line(clip(usage.map(({ usage: shape }) => shape).join("  "), width), "dim");
  }
  if (text !== "") return line(clip("Enter sends a message to the agent · Alt-Enter new line", width), "dim");
  if (state.pane === "list") return line(clip("↑ ↓ choose · Enter opens · /new starts one · /help", width), "dim");
  if (state.pane !== "conversation") return line(clip("Esc goes back · PgUp PgDn", width), "dim");
  return line(clip("Write to the agent, or / for commands · /open other conversations · /help", width), "dim");
}

function noticeLines({ notice }: State, width: number): readonly Line[] {
  return notice === null ? [] : paragraph(safeText(notice.text), width, notice.tone);
}

function limited(lines: readonly Line[], limit: number, width: number): readonly Line[] {
  if (lines.length <= limit) return lines;
  const last = lines[limit - 1] ?? [];
  const tone = last[0]?.tone ?? "plain";
  return [
    ...lines.slice(0, limit - 1),
    line(
      clip(`${last.map(({ text }) => text).join("")} ${"·".repeat(Math.max(0, width))}`, width).replace(/[ ·]*…$/, "…"),
      tone,
    ),
  ];
}

/** A question that nobody has read here yet, and what waits elsewhere. */
function bannerLines(state: State, width: number): readonly Line[] {
  const lines: Line[] = [];
  const waiting = waitingHere(state);
  if (state.pane === "conversation" && waiting !== null && isUnread(state)) {
    const prompt = safeText(waiting.prompt).replaceAll(/\s+/g, " ");
    lines.push([span(clip(`● A question waits: ${prompt}`, width), "warn")]);
    lines.push([span(clip("  Type /question and Enter to read it.", width), "strong")]);
  }
  return lines;
}

// ---- the input

interface InputLayout {
  readonly lines: readonly Line[];
  readonly cursorRow: number;
  readonly before: Line;
}

const PROMPT = "› ";

function layoutInput(state: State, width: number): InputLayout {
  const { text, cursor } = state.editor;
  const room = Math.max(2, width - cells(PROMPT) - 1);
  const shown = (part: string): string => safeText(part).replaceAll("\t", "    ");
  const before = broken(shown(text.slice(0, cursor)), room);
  const all = broken(shown(text.slice(0, cursor)) + shown(text.slice(cursor)), room);
  const row = before.length - 1;
  const most = Math.max(1, Math.min(8, Math.floor(state.rows / 4)));
  const from = Math.max(0, Math.min(row - most + 1, all.length - most), Math.min(row, all.length - most));
  const start = Math.min(row, Math.max(0, from));
  const window = all.slice(start, start + most);
  const prefix = (index: number): Line => [span(start + index === 0 ? PROMPT : "  ", "accent")];
  return {
    lines: window.map((part, index) => [...prefix(index), ...line(part)]),
    cursorRow: row - start,
    before: [...prefix(row - start), ...line(before[row] ?? "")],
  };
}

/** Breaks text at its line feeds and wherever a row is full. */
function broken(text: string, width: number): readonly string[] {
  return text.split("\n").flatMap((paragraphText) => {
    const rows: string[] = [""];
    let used = 0;
    for (const cluster of graphemes(paragraphText)) {
      const size = cells(cluster);
      if (used + size > width && used > 0) {
        rows.push("");
        used = 0;
      }
      rows[rows.length - 1] += cluster;
      used += size;
    }
    return rows;
  });
}

// ---- pages

function sideLines(state: State, width: number, height: number): readonly Line[] {
  const rows = rowsOf(state);
  const lines: Line[] = [line(clip(" Conversations", width - 1), "strong")];
  for (const row of rows) {
    if (lines.length >= height) break;
    const mark = row.waiting !== null ? "●" : row.busy ? "∙" : " ";
    const here = row.conversationId === state.open?.conversationId;
    const text = clip(` ${mark} ${row.number} ${oneLine(row.title)}`, width - 1);
    lines.push(
      line(
        here ? text + " ".repeat(Math.max(0, width - 1 - cells(text))) : text,
        here ? "bar" : row.waiting !== null ? "warn" : "plain",
      ),
    );
  }
  return lines;
}

const oneLine = (text: string): string => safeText(text).replaceAll(/\s+/g, " ");

function listLines(state: State, width: number): readonly Line[] {
  const rows = rowsOf(state);
  if (state.conversations === null) return [line("Reading the conversations…", "dim")];
  if (rows.length === 0) {
    return paragraph(
      "No conversations yet. /new starts one in this directory; `clankie conversations create` does so with an agent.",
      width,
    );
  }
  const selected = selectedOf(state);
  return rows.flatMap((row) => listRow(state, row, selected, width));
}

/** Where the chosen row stands in the list: its first line and the one after its last. */
export function listSpan(state: State): { readonly from: number; readonly to: number } {
  const { width } = layout(state);
  const rows = rowsOf(state);
  const selected = selectedOf(state);
  const at = rows.findIndex(({ conversationId }) => conversationId === selected);
  const heights = rows.map((row) => listRow(state, row, selected, width).length);
  const from = heights.slice(0, Math.max(0, at)).reduce((sum, height) => sum + height, 0);
  return { from, to: from + (heights[at] ?? 0) };
}

function listRow(state: State, row: Row, selected: string | null, width: number): readonly Line[] {
  const here = row.conversationId === selected;
  const mark = row.waiting !== null ? "●" : " ";
  const head: Line = [span(here ? "▸ " : "  ", "accent"), span(mark, "warn"), span(` ${row.number}  `, "dim")];
  const titled = hang(head, oneLine(row.title), width, here ? "strong" : "plain");
  const indent: Line = [span(" ".repeat(lineCells(head)))];
  if (row.waiting === null) {
    return [...titled, [...indent, span(clip(oneLine(row.directory), width - lineCells(indent)), "dim")]];
  }
  const age = spanWords(state.now - Date.parse(row.waiting.createdAt));
  const text = `waits for an answer since ${age}: ${oneLine(row.waiting.prompt)}`;
  return [...titled, [...indent, span(clip(text, width - lineCells(indent)), "warn")]];
}

function waitingLines(state: State, width: number): readonly Line[] {
  if (state.inbox === null) return [line("What waits is not known: there is no connection.", "warn")];
  const rows = waitingOf(state);
  const head =
    rows.length === 0
      ? "Nothing waits for an answer."
      : rows.length === 1
        ? "1 question waits for an answer."
        : `${rows.length} questions wait for an answer.`;
  return [
    line(head, "strong"),
    ...rows.flatMap(({ waiting, number, title }): readonly Line[] => {
      if (waiting === null) return [];
      const since = `asked ${timeWords(waiting.createdAt, state.now)}`;
      return [
        [],
        ...hang([span("● ", "warn"), span(`${number}  `, "dim")], `${oneLine(title)} · ${since}`, width),
        ...limited(paragraph(safeText(waiting.prompt), width - 4), 3, width - 4).map(
          (part): Line => [span("    "), ...part],
        ),
        [span("    "), span(clip(`/open ${number} and then /question`, width - 4), "dim")],
      ];
    }),
  ];
}

const KEYS: readonly (readonly [string, string])[] = [
  ["Enter", "sends the line"],
  ["Alt-Enter, Ctrl-J", "new line in the input"],
  ["↑ ↓", "history; in the list: choose"],
  ["Tab", "completes a command"],
  ["PgUp PgDn", "scroll"],
  ["Esc", "hides the question or goes back; cancels nothing"],
  ["Ctrl-U, Ctrl-K, Ctrl-W", "delete to the start, to the end, a word"],
  ["Ctrl-C", "puts the line aside; on an empty line leaves"],
];

function helpLines(width: number): readonly Line[] {
  const entry = ([name, text]: readonly [string, string]): readonly Line[] =>
    width >= 76
      ? hang([span(`  ${name.padEnd(34)}`, "accent")], text, width)
      : [...paragraph(name, width, "accent"), ...hang([span("    ")], text, width)];
  return [
    line("Commands", "strong"),
    ...COMMANDS.flatMap(({ usage, does }) => entry([usage, does])),
    [],
    ...paragraph(
      "Everything else is a message to the agent and never an answer, also “yes” or “1”. A line that begins with a space is always a message.",
      width,
    ),
    [],
    line("Keys", "strong"),
    ...KEYS.flatMap(entry),
  ];
}

/** What the terminal's title says: how many questions wait, and where one is. */
export function titleOf(state: State): string {
  const count = waitingOf(state).length;
  const open = rowsOf(state).find(({ conversationId }) => conversationId === state.open?.conversationId);
  const name = open === undefined ? "clankie" : `clankie: ${oneLine(open.title)}`;
  return clip(count === 0 ? name : `● ${count} waiting · ${name}`, 200);
}
