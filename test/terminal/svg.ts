import type xterm from "@xterm/headless";

const CELL = { width: 8.4, height: 18 } as const;
const COLOURS = ["#1c1f26", "#e06c75", "#98c379", "#e5c07b", "#61afef", "#c678dd", "#56b6c2", "#dcdfe4"] as const;
const BACK = "#1c1f26";
const FRONT = "#dcdfe4";

interface Run {
  readonly column: number;
  readonly columns: number;
  readonly text: string;
  readonly style: string;
  readonly back: string | null;
  /** Where the background is drawn. */
  readonly ground?: { readonly column: number; readonly columns: number };
}

/** What a terminal shows, as an SVG picture with real text. */
export function svgOf(terminal: xterm.Terminal, label: string): string {
  const width = Math.ceil(terminal.cols * CELL.width) + 16;
  const height = terminal.rows * CELL.height + 16;
  const rows = Array.from({ length: terminal.rows }, (_, row) =>
    runsOf(terminal, row)
      .map(({ column, columns, text, style, back, ground: under = { column, columns } }) => {
        const x = (8 + column * CELL.width).toFixed(1);
        const y = 8 + row * CELL.height;
        const size = (columns * CELL.width).toFixed(1);
        const left = (8 + under.column * CELL.width).toFixed(1);
        const wide = (under.columns * CELL.width).toFixed(1);
        const ground =
          back === null ? "" : `<rect x="${left}" y="${y}" width="${wide}" height="${CELL.height}" fill="${back}"/>`;
        const drawn =
          text === "" ? "" : `<text x="${x}" y="${y + 13}" textLength="${size}" ${style}>${escaped(text)}</text>`;
        return ground + drawn;
      })
      .join(""),
  ).filter((row) => row !== "");
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-label="${escaped(label)}">`,
    `<rect width="${width}" height="${height}" rx="6" fill="${BACK}"/>`,
    `<g font-family="ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace" font-size="14" fill="${FRONT}">`,
    ...rows,
    "</g></svg>",
    "",
  ].join("\n");
}

/** A row as pieces of one style each. */
function runsOf(terminal: xterm.Terminal, row: number): readonly Run[] {
  const line = terminal.buffer.active.getLine(terminal.buffer.active.baseY + row);
  const runs: Run[] = [];
  for (let column = 0; column < terminal.cols; column += 1) {
    const cell = line?.getCell(column);
    if (cell === undefined || cell.getWidth() === 0) continue;
    const colour = cell.isFgPalette() ? (COLOURS[cell.getFgColor() % 8] ?? FRONT) : FRONT;
    const inverse = cell.isInverse() !== 0;
    const style = [
      `fill="${inverse ? BACK : colour}"`,
      cell.isBold() !== 0 ? 'font-weight="bold"' : "",
      cell.isDim() !== 0 ? 'opacity="0.6"' : "",
    ].join(" ");
    const back = inverse ? colour : null;
    const text = cell.getChars() === "" ? " " : cell.getChars();
    const last = runs.at(-1);
    if (last !== undefined && last.style === style && last.back === back) {
      runs[runs.length - 1] = { ...last, columns: last.columns + cell.getWidth(), text: last.text + text };
    } else {
      runs.push({ column, columns: cell.getWidth(), text, style, back });
    }
  }
  return runs.map(trimmed).filter(({ text, back }) => text !== "" || back !== null);
}

/** Spaces at the ends are left out and those inside kept, for a viewer stretches a text to its length. */
function trimmed(run: Run): Run {
  const text = run.text.trim();
  const lead = run.text.length - run.text.trimStart().length;
  const inside = { column: run.column + lead, columns: run.columns - (run.text.length - text.length) };
  return {
    ...run,
    ...inside,
    text: text.replaceAll(" ", "\u00a0"),
    ground: { column: run.column, columns: run.columns },
  };
}

const escaped = (text: string): string =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");
