import { graphemes } from "./layout.js";

/** What is being typed: the text and where the cursor stands in it, in UTF-16 code units, between two graphemes. */
export interface Editor {
  readonly text: string;
  readonly cursor: number;
}

export const EMPTY: Editor = { text: "", cursor: 0 };

/** More than a message may hold; what is longer is cut with a notice. Contract section 3. */
export const INPUT_LIMIT = 16_384;

/** Text as an input holds it: line feeds for line breaks, no other control characters than tab, well-formed. */
export const cleaned = (text: string): string =>
  text
    .replaceAll(/\r\n?/g, "\n")
    .replaceAll(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g, "")
    .replaceAll(/\p{Surrogate}/gu, "\ufffd");

/** Puts text at the cursor; what goes over the limit is left out. */
export function insert({ text, cursor }: Editor, added: string): Editor {
  const kept = cleaned(added)
    .slice(0, Math.max(0, INPUT_LIMIT - text.length))
    .replaceAll(/\p{Surrogate}/gu, "\ufffd");
  return { text: text.slice(0, cursor) + kept + text.slice(cursor), cursor: cursor + kept.length };
}

const before = ({ text, cursor }: Editor): string => text.slice(0, cursor);
const after = ({ text, cursor }: Editor): string => text.slice(cursor);
const lastGrapheme = (text: string): string => graphemes(text.slice(-200)).at(-1) ?? "";
const firstGrapheme = (text: string): string => graphemes(text.slice(0, 200))[0] ?? "";

export const left = (editor: Editor): Editor => move(editor, editor.cursor - lastGrapheme(before(editor)).length);
export const right = (editor: Editor): Editor => move(editor, editor.cursor + firstGrapheme(after(editor)).length);
export const wordLeft = (editor: Editor): Editor => move(editor, before(editor).search(/\S+\s*$/));
export const wordRight = (editor: Editor): Editor =>
  move(editor, editor.cursor + (/^\s*\S+/.exec(after(editor))?.[0].length ?? after(editor).length));
export const lineStart = (editor: Editor): Editor => move(editor, before(editor).lastIndexOf("\n") + 1);
export function lineEnd(editor: Editor): Editor {
  const end = after(editor).indexOf("\n");
  return move(editor, end === -1 ? editor.text.length : editor.cursor + end);
}

function move(editor: Editor, cursor: number): Editor {
  return { text: editor.text, cursor: Math.min(editor.text.length, Math.max(0, cursor)) };
}

export const backspace = (editor: Editor): Editor => cut(left(editor).cursor, editor.cursor, editor);
export const remove = (editor: Editor): Editor => cut(editor.cursor, right(editor).cursor, editor);
export const removeWord = (editor: Editor): Editor => cut(wordLeft(editor).cursor, editor.cursor, editor);
export const removeToStart = (editor: Editor): Editor => cut(lineStart(editor).cursor, editor.cursor, editor);
export const removeToEnd = (editor: Editor): Editor => cut(editor.cursor, lineEnd(editor).cursor, editor);

function cut(from: number, to: number, { text }: Editor): Editor {
  return { text: text.slice(0, from) + text.slice(to), cursor: from };
}

/** The cursor one line up or down, or null where there is no such line. */
export function vertical(editor: Editor, direction: -1 | 1): Editor | null {
  const start = lineStart(editor).cursor;
  const column = graphemes(editor.text.slice(start, editor.cursor)).length;
  if (direction === -1 && start === 0) return null;
  const target = direction === -1 ? lineStart(move(editor, start - 1)).cursor : lineEnd(editor).cursor + 1;
  if (target > editor.text.length) return null;
  const there = editor.text.slice(target).split("\n", 1)[0] ?? "";
  return move(editor, target + graphemes(there).slice(0, column).join("").length);
}

/** Lines typed before, oldest first; `at` is where the reader stands in it, null at the line being typed. */
export interface History {
  readonly entries: readonly string[];
  readonly at: number | null;
  /** What was being typed when the reader went back. */
  readonly unsent: string;
}

export const NO_HISTORY: History = { entries: [], at: null, unsent: "" };
const HISTORY_LIMIT = 500;

export function remember(history: History, text: string): History {
  const entries = history.entries.filter((entry) => entry !== text);
  return { entries: [...entries, text].slice(-HISTORY_LIMIT), at: null, unsent: "" };
}

/** One step through the history, or null where there is nothing further. */
export function recall(
  history: History,
  current: string,
  direction: -1 | 1,
): { readonly history: History; readonly editor: Editor } | null {
  const at = (history.at ?? history.entries.length) + direction;
  const unsent = history.at === null ? current : history.unsent;
  if (at < 0 || at > history.entries.length || (history.at === null && direction === 1)) return null;
  const text = history.entries[at] ?? unsent;
  return {
    history: { entries: history.entries, at: at === history.entries.length ? null : at, unsent },
    editor: { text, cursor: text.length },
  };
}
