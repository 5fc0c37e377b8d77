import {
  createScanner,
  findNodeAtLocation,
  getNodeValue,
  type Node,
  type ParseError,
  parseTree,
  printParseErrorCode,
} from "jsonc-parser";
import type { JsonMember } from "./known.js";

/** A configuration file that cannot be changed without guessing what its owner meant. */
export class CannotEdit extends Error {
  override readonly name = "CannotEdit";
}

export const isBlank = (text: string): boolean => text.replace(/^\ufeff/, "").trim() === "";

/** The value of a JSON text with comments; a blank text is an empty object. */
export function jsonValue(text: string): unknown {
  return isBlank(text) ? {} : getNodeValue(rootOf(text));
}

function rootOf(text: string): Node {
  const errors: ParseError[] = [];
  const root = parseTree(text, errors, { allowTrailingComma: true });
  const [first] = errors;
  if (first !== undefined) {
    const line = text.slice(0, first.offset).split("\n").length;
    throw new CannotEdit(`line ${line} is no JSON (${printParseErrorCode(first.error)})`);
  }
  if (root?.type !== "object") throw new CannotEdit("it holds no JSON object");
  return root;
}

/** The text with a member put in or replaced; everything else, comments and layout too, stays as it is. */
export function withMember(
  text: string,
  { path, value }: JsonMember,
  preamble: Readonly<Record<string, string>>,
): string {
  if (isBlank(text)) return `${JSON.stringify({ ...preamble, ...nested(path, value) }, null, 2)}\n`;
  const root = rootOf(text);
  const there = findNodeAtLocation(root, [...path]);
  if (there !== undefined) {
    if (sameJson(getNodeValue(there), value)) return text;
    return splice(text, there.offset, there.length, valueText(text, value, indentAt(text, there.offset)));
  }
  let depth = path.length - 1;
  while (findNodeAtLocation(root, path.slice(0, depth)) === undefined) depth -= 1;
  const parent = findNodeAtLocation(root, path.slice(0, depth));
  if (parent?.type !== "object") throw new CannotEdit(`its member ${path.slice(0, depth).join(".")} is no object`);
  return inserted(text, parent, path[depth] ?? "", nested(path.slice(depth + 1), value));
}

/** The text without a member, and without the objects that this leaves empty. */
export function withoutMember(text: string, path: readonly string[]): string {
  if (isBlank(text)) return text;
  let left = text;
  for (let depth = path.length; depth > 0; depth -= 1) {
    const member = findNodeAtLocation(rootOf(left), path.slice(0, depth));
    const isLeftEmpty = member?.type === "object" && (member.children ?? []).length === 0;
    if (member?.parent === undefined || (depth < path.length && !isLeftEmpty)) break;
    left = taken(left, member.parent);
  }
  return left;
}

/** Whether nothing is there but what a new file begins with. */
export function isBare(text: string, preamble: Readonly<Record<string, string>>): boolean {
  return sameJson(jsonValue(text), preamble) && !hasComment(text, 0, text.length);
}

/** Puts a member after the last one: on a line of its own, unless the object stands on one line. */
function inserted(text: string, parent: Node, name: string, value: unknown): string {
  const last = parent.children?.at(-1);
  const end = parent.offset + parent.length - 1; // its closing brace
  const closing = indentAt(text, parent.offset);
  const eol = eolOf(text);
  if (last === undefined) {
    const indent = closing + unitOf(text);
    const member = `${eol}${indent}${JSON.stringify(name)}: ${valueText(text, value, indent)}`;
    const inside = text.slice(parent.offset + 1, end);
    return splice(
      text,
      parent.offset + 1,
      isBlank(inside) ? inside.length : 0,
      `${member}${isBlank(inside) ? `${eol}${closing}` : ""}`,
    );
  }
  const lastEnd = last.offset + last.length;
  const comma = commaAfter(text, lastEnd, end);
  if (!startsLine(text, last.offset)) {
    const member = `, ${JSON.stringify(name)}: ${JSON.stringify(value)}`;
    return splice(text, lastEnd, 0, member);
  }
  const indent = indentAt(text, last.offset);
  const member = `${eol}${indent}${JSON.stringify(name)}: ${valueText(text, value, indent)}${comma === undefined ? "" : ","}`;
  // behind what is written on the last line, such as a comment on it
  const lineEnd = endOfLine(text, comma === undefined ? lastEnd : comma + 1, end);
  const withMemberIn = splice(text, lineEnd, 0, member);
  return comma === undefined ? splice(withMemberIn, lastEnd, 0, ",") : withMemberIn;
}

/** Takes a property out, with its comma and, where it has lines of its own, with these. */
function taken(text: string, property: Node): string {
  const siblings = property.parent?.children ?? [];
  const at = siblings.indexOf(property);
  const [previous, next] = [siblings[at - 1], siblings[at + 1]];
  const parentEnd = (property.parent?.offset ?? 0) + (property.parent?.length ?? 0) - 1;
  const end = property.offset + property.length;
  const comma = commaAfter(text, end, next?.offset ?? parentEnd);
  const to = comma === undefined ? end : comma + 1;
  const from = beforeLine(text, property.offset);
  if (previous === undefined && next === undefined) {
    const inside = text.slice((property.parent?.offset ?? 0) + 1, property.offset) + text.slice(to, parentEnd);
    return isBlank(inside)
      ? splice(text, (property.parent?.offset ?? 0) + 1, parentEnd - (property.parent?.offset ?? 0) - 1, "")
      : splice(text, from, to - from, "");
  }
  if (next === undefined && comma === undefined && previous !== undefined) {
    const left = splice(text, from, to - from, "");
    const before = commaAfter(text, previous.offset + previous.length, property.offset);
    return before === undefined ? left : splice(left, before, 1, "");
  }
  if (startsLine(text, property.offset)) return splice(text, from, to - from, "");
  const spaces = /^[ \t]*/.exec(text.slice(to))?.[0].length ?? 0;
  return splice(text, property.offset, to + spaces - property.offset, "");
}

/** Kinds of the scanner's tokens; its own enum is there for compilers only. */
const KIND = { comma: 5, lineComment: 12, blockComment: 13, lineBreak: 14, end: 17 } as const;

/** Where a comma stands between two offsets, outside of comments. */
function commaAfter(text: string, from: number, to: number): number | undefined {
  const scanner = createScanner(text, false);
  scanner.setPosition(from);
  for (let kind = scanner.scan(); kind !== KIND.end && scanner.getTokenOffset() < to; kind = scanner.scan()) {
    if (kind === KIND.comma) return scanner.getTokenOffset();
  }
  return undefined;
}

function hasComment(text: string, from: number, to: number): boolean {
  const scanner = createScanner(text, false);
  scanner.setPosition(from);
  for (let kind = scanner.scan(); kind !== KIND.end && scanner.getTokenOffset() < to; kind = scanner.scan()) {
    if (kind === KIND.lineComment || kind === KIND.blockComment) return true;
  }
  return false;
}

/** The end of the line an offset is on, before its line break, or `limit` where that comes first. */
function endOfLine(text: string, from: number, limit: number): number {
  const scanner = createScanner(text, false);
  scanner.setPosition(from);
  for (let kind = scanner.scan(); kind !== KIND.end && scanner.getTokenOffset() < limit; kind = scanner.scan()) {
    if (kind === KIND.lineBreak) return scanner.getTokenOffset();
  }
  return from;
}

const lineStart = (text: string, offset: number): number => text.lastIndexOf("\n", offset - 1) + 1;

const startsLine = (text: string, offset: number): boolean =>
  lineStart(text, offset) > 0 && text.slice(lineStart(text, offset), offset).trim() === "";

/** The indentation of the line an offset is on. */
const indentAt = (text: string, offset: number): string =>
  /^[ \t]*/.exec(text.slice(lineStart(text, offset), offset))?.[0] ?? "";

/** Where what begins a line is cut: before the line break ahead of it. Elsewhere at the spaces ahead of it. */
function beforeLine(text: string, offset: number): number {
  const start = lineStart(text, offset);
  if (startsLine(text, offset)) return text.slice(0, start).endsWith("\r\n") ? start - 2 : start - 1;
  return offset - (/[ \t]*$/.exec(text.slice(start, offset))?.[0].length ?? 0);
}

const unitOf = (text: string): string => /^([ \t]+)\S/m.exec(text)?.[1] ?? "  ";
const eolOf = (text: string): string => (text.includes("\r\n") ? "\r\n" : "\n");

const valueText = (text: string, value: unknown, indent: string): string =>
  JSON.stringify(value, null, unitOf(text)).replaceAll("\n", `${eolOf(text)}${indent}`);

const nested = (path: readonly string[], value: unknown): object =>
  path.reduceRight((inner: unknown, name) => ({ [name]: inner }), value) as object;

const splice = (text: string, offset: number, length: number, content: string): string =>
  text.slice(0, offset) + content + text.slice(offset + length);

const sameJson = (one: unknown, other: unknown): boolean => JSON.stringify(one) === JSON.stringify(other);

const BEGIN = "# >>> clankie: made by `clankie agents setup codex`, taken out by --remove";
const END = "# <<< clankie";

/** The text with a TOML table between two marks, where the marks are or at its end. */
export function withTable(text: string, name: string, table: string): string {
  const block = `${BEGIN}\n${table}\n${END}\n`;
  const marked = markedPart(text);
  const rest = marked === undefined ? text : text.slice(0, marked.from) + text.slice(marked.to);
  const header = new RegExp(`^[ \\t]*\\[[ \\t]*${name.replaceAll(".", "[ \\t]*\\.[ \\t]*")}[ \\t]*\\]`, "m");
  if (header.test(rest)) throw new CannotEdit(`it has a table [${name}] of its own; take that out first`);
  if (marked !== undefined) return splice(text, marked.from, marked.to - marked.from, block);
  return isBlank(text) ? block : `${text.endsWith("\n") ? text : `${text}\n`}\n${block}`;
}

/** The text without what stands between the marks. */
export function withoutTable(text: string): string {
  const marked = markedPart(text);
  if (marked === undefined) return text;
  const before = text.slice(0, marked.from);
  // with the empty line that was put before it
  return (before.endsWith("\n\n") ? before.slice(0, -1) : before) + text.slice(marked.to);
}

function markedPart(text: string): { readonly from: number; readonly to: number } | undefined {
  const from = text.indexOf(BEGIN);
  if (from < 0) return undefined;
  const end = text.indexOf(END, from);
  if (end < 0) throw new CannotEdit(`the end of what is marked with "${BEGIN}" is missing`);
  const to = end + END.length;
  return { from, to: to + (/^\r?\n/.exec(text.slice(to, to + 2))?.[0].length ?? 0) };
}
