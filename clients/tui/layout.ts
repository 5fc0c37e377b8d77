import stringWidth from "string-width";

/** How a piece of a line looks. The shell maps a tone to what the terminal can do. */
export type Tone = "plain" | "dim" | "strong" | "accent" | "good" | "warn" | "bad" | "bar";

/** A run of text in one tone. It holds no control character: everything foreign went through `safeText`. */
export interface Span {
  readonly text: string;
  readonly tone: Tone;
}

/** One line of the screen, at most as many cells wide as its place. */
export type Line = readonly Span[];

export const span = (text: string, tone: Tone = "plain"): Span => ({ text, tone });
export const line = (text: string, tone: Tone = "plain"): Line => (text === "" ? [] : [span(text, tone)]);

const segmenter = new Intl.Segmenter(undefined, { granularity: "grapheme" });
const ASCII = /^[\x20-\x7e]*$/;

/** What a reader takes for single characters: a letter with its marks, an emoji with its joiners. */
export const graphemes = (text: string): readonly string[] =>
  ASCII.test(text) ? [...text] : [...segmenter.segment(text)].map(({ segment }) => segment);

/**
 * Cells that a text takes at most. Terminals disagree on joined emoji (one picture or its parts), so the wider reading
 * counts: then nothing is cut and no line runs into the next, whatever the terminal believes.
 */
export function cells(text: string): number {
  if (ASCII.test(text)) return text.length;
  return graphemes(text).reduce((sum, cluster) => sum + clusterCells(cluster), 0);
}

const known = new Map<string, number>();
const KNOWN_LIMIT = 10_000;

/** Looking a width up is dear and the same few characters come again and again. */
function clusterCells(cluster: string): number {
  const found = known.get(cluster);
  if (found !== undefined) return found;
  const parts = [...cluster].reduce((sum, point) => sum + stringWidth(point), 0);
  const size = Math.max(stringWidth(cluster), parts);
  if (known.size >= KNOWN_LIMIT) known.clear();
  known.set(cluster, size);
  return size;
}

export const lineCells = (pieces: Line): number => pieces.reduce((sum, { text }) => sum + cells(text), 0);

/** Text cut to a width, with an ellipsis where something is missing. */
export function clip(text: string, width: number): string {
  if (cells(text) <= width) return text;
  if (width <= 0) return "";
  let taken = "";
  let used = 0;
  for (const cluster of graphemes(text)) {
    const size = cells(cluster);
    if (used + size > width - 1) break;
    taken += cluster;
    used += size;
  }
  return `${taken}…`;
}

/** A styled line cut to a width. */
export function clipLine(pieces: Line, width: number): Line {
  if (lineCells(pieces) <= width) return pieces;
  const kept: Span[] = [];
  let left = width;
  for (const { text, tone } of pieces) {
    if (left <= 0) break;
    const size = cells(text);
    kept.push(span(size < left ? text : clip(size === left ? `${text} ` : text, left), tone));
    left -= size;
  }
  return kept;
}

/**
 * Breaks text into lines of at most `width` cells: at its own line feeds, then at spaces, and inside a word only where
 * the word alone is too long. Nothing is left out but the spaces at a break.
 */
export function wrap(text: string, width: number): readonly string[] {
  const room = Math.max(2, width);
  return text.split("\n").flatMap((paragraph) => wrapParagraph(paragraph, room));
}

function wrapParagraph(paragraph: string, width: number): readonly string[] {
  const lines: string[] = [];
  let current = "";
  let used = 0;
  const flush = () => {
    lines.push(current.trimEnd());
    current = "";
    used = 0;
  };
  for (const token of paragraph.replaceAll("\t", "    ").match(/ +|[^ ]+/g) ?? []) {
    const size = cells(token);
    if (used + size <= width) {
      current += token;
      used += size;
    } else if (token.startsWith(" ")) {
      flush();
    } else if (size <= width) {
      flush();
      current = token;
      used = size;
    } else {
      for (const cluster of graphemes(token)) {
        const one = cells(cluster);
        if (used + one > width && used > 0) flush();
        current += cluster;
        used += one;
      }
    }
  }
  flush();
  return lines;
}

/** Wraps text behind a first prefix; the lines that follow are indented by as many cells. */
export function hang(prefix: Line, text: string, width: number, tone: Tone = "plain"): readonly Line[] {
  const indent = lineCells(prefix);
  return wrap(text, width - indent).map((part, index) =>
    index === 0 ? [...prefix, ...line(part, tone)] : [span(" ".repeat(indent)), ...line(part, tone)],
  );
}

/** A text as lines of one tone. */
export const paragraph = (text: string, width: number, tone: Tone = "plain"): readonly Line[] =>
  wrap(text, width).map((part) => line(part, tone));
