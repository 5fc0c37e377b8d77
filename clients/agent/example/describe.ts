import { constants } from "node:fs";
import { open, realpath } from "node:fs/promises";
import { join, sep } from "node:path";
import { type Kind, kindOfBytes, kindOfName, sizeInWords } from "./kinds.js";
import { type Entry, type Found, filesOf } from "./look.js";

/** So much of a file is read, in bytes; what is said of a longer one is said of its beginning. */
const MOST_BYTES = 262_144;
const MOST_NAMES = 12;
const LONGEST = 120;

/** Describes something that was found in the workspace, in lines for a person. Reads nothing outside of the workspace. */
export async function describe(workspace: string, found: Found, entry: Entry): Promise<readonly string[]> {
  return entry.type === "folder" ? describeFolder(found, entry.path) : describeFile(workspace, entry.path);
}

/** Describes everything that was found. */
export function describeAll(found: Found): readonly string[] {
  return ["The directory as a whole:", ...summary(found)];
}

function describeFolder(found: Found, path: string): readonly string[] {
  const inside = found.entries.filter((entry) => entry.path.startsWith(`${path}/`));
  return [`${path}/: folder`, ...summary({ entries: inside, complete: found.complete })];
}

function summary(found: Found): readonly string[] {
  const files = filesOf(found);
  const folders = found.entries.length - files.length;
  if (found.entries.length === 0) return ["  nothing that is not hidden"];
  const bytes = files.reduce((sum, file) => sum + file.bytes, 0);
  const kinds = new Map<Kind, number>();
  for (const { kind } of files) kinds.set(kind, (kinds.get(kind) ?? 0) + 1);
  const often = [...kinds].sort(([, one], [, other]) => other - one).slice(0, 5);
  const largest = files.toSorted((one, other) => other.bytes - one.bytes).at(0);
  const newest = files.toSorted((one, other) => other.changed.getTime() - one.changed.getTime()).at(0);
  return [
    `  ${found.complete ? "" : "at least "}${filesAndFolders(files.length, folders)}, ${sizeInWords(bytes)}`,
    ...(often.length === 0 ? [] : [`  kinds: ${often.map(([kind, times]) => `${kind} (${times})`).join(", ")}`]),
    ...(largest === undefined ? [] : [`  largest: ${largest.path} (${sizeInWords(largest.bytes)})`]),
    ...(newest === undefined ? [] : [`  changed last: ${newest.path} (${newest.changed.toISOString()})`]),
  ];
}

async function describeFile(workspace: string, path: string): Promise<readonly string[]> {
  const read = await readStart(workspace, path);
  if (typeof read === "string") return [`${path}: ${read}`];
  const { start, bytes, changed } = read;
  const magic = kindOfBytes(start);
  const text = magic === undefined ? textOf(start, bytes) : undefined;
  const kind = magic ?? (text === undefined ? "binary file" : kindOfName(path));
  return [
    `${path}: ${kind}, ${sizeInWords(bytes)}, changed last ${changed.toISOString()}`,
    ...(text === undefined ? aboutBytes(magic, start) : aboutText(path, text, bytes > MOST_BYTES)),
  ];
}

interface Start {
  readonly start: Buffer;
  readonly bytes: number;
  readonly changed: Date;
}

/** The beginning of a regular file inside the workspace, or why it is not read. */
async function readStart(workspace: string, path: string): Promise<Start | string> {
  try {
    const root = await realpath(workspace);
    const real = await realpath(join(root, path));
    if (!real.startsWith(root.endsWith(sep) ? root : root + sep))
      return "it leads out of the directory; I leave it alone.";
    // a pipe or a device in its place would hold the reader
    const file = await open(real, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    try {
      const stats = await file.stat();
      if (!stats.isFile()) return "it is not a file any more.";
      const buffer = Buffer.alloc(Math.min(stats.size, MOST_BYTES));
      let length = 0;
      while (length < buffer.length) {
        const { bytesRead } = await file.read(buffer, length, buffer.length - length, length);
        if (bytesRead === 0) break;
        length += bytesRead;
      }
      return { start: buffer.subarray(0, length), bytes: stats.size, changed: stats.mtime };
    } finally {
      await file.close();
    }
  } catch (error) {
    const code = error instanceof Error && "code" in error ? String(error.code) : "unknown reason";
    return code === "ENOENT" ? "it is gone." : `it cannot be read (${code}).`;
  }
}

/** The text, if it is text: well-formed UTF-8 without NUL. The last character of a cut beginning may be cut too. */
function textOf(start: Buffer, bytes: number): string | undefined {
  if (start.includes(0)) return undefined;
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(start, { stream: bytes > start.length });
  } catch {
    return undefined;
  }
}

function aboutBytes(magic: Kind | undefined, start: Buffer): readonly string[] {
  if (magic === "PNG picture" && start.length >= 24)
    return [`  ${start.readUInt32BE(16)} × ${start.readUInt32BE(20)} pixels`];
  if (magic === "GIF picture" && start.length >= 10)
    return [`  ${start.readUInt16LE(6)} × ${start.readUInt16LE(8)} pixels`];
  return start.length === 0 ? [] : [`  it begins with the bytes ${start.subarray(0, 8).toString("hex")}`];
}

function aboutText(path: string, text: string, cut: boolean): readonly string[] {
  if (text === "") return ["  it is empty"];
  const lines = text.split(/\r\n|\n|\r/);
  if (lines.at(-1) === "") lines.pop();
  const words = text.match(/\S+/g)?.length ?? 0;
  const more = cut ? "more than " : "";
  return [
    `  ${more}${count(lines.length, "line")}, ${more}${count(words, "word")}`,
    ...(cut ? [`  (I read the first ${sizeInWords(MOST_BYTES)})`] : []),
    ...contents(kindOfName(path), path, text, lines),
  ];
}

/** What stands out in a text of this kind; for any other, its first line. */
function contents(kind: Kind, path: string, text: string, lines: readonly string[]): readonly string[] {
  const first = lines.find((line) => line.trim() !== "")?.trim() ?? "";
  const begins = first === "" ? [] : [`  begins: ${quote(first)}`];
  switch (kind) {
    case "Markdown": {
      const headings = lines.flatMap((line) => line.match(/^#{1,6}[ \t]+(\S.*)$/)?.[1] ?? []);
      return headings.length === 0
        ? begins
        : [`  first heading: ${quote(headings[0] ?? "")}`, ...list("headings", headings.slice(1))];
    }
    case "TypeScript":
    case "JavaScript":
      return or(list("exports", all(text, EXPORTS)), list("declares", all(text, DECLARES)), begins);
    case "Python":
      return or(list("defines", all(text, /^(?:async[ \t]+)?(?:def|class)[ \t]+(\w+)/gm)), begins);
    case "Go":
      return or(list("declares", all(text, /^(?:func(?:[ \t]*\([^)\n]*\))?|type)[ \t]+(\w+)/gm)), begins);
    case "Rust":
      return or(
        list("public", all(text, /^[ \t]*pub[ \t]+(?:async[ \t]+)?(?:fn|struct|enum|trait|mod|type)[ \t]+(\w+)/gm)),
        begins,
      );
    case "JSON":
      return or(jsonMembers(path, text), begins);
    case "TOML":
      return or(list("tables", all(text, /^\[+([^[\]\n]+)\]/gm)), begins);
    case "YAML":
      return or(list("keys", all(text, /^([A-Za-z_][\w.-]*)[ \t]*:/gm)), begins);
    case "comma-separated table":
      return list("columns", first.split(","));
    case "tab-separated table":
      return list("columns", first.split("\t"));
    case "HTML":
      return or(list("title", all(text, /<title[^<>]{0,200}>([^<]+)/gi)), begins);
    case "Makefile":
      return or(list("targets", all(text, /^([A-Za-z][\w.-]*)[ \t]*:(?!=)/gm)), begins);
    default:
      return begins;
  }
}

const EXPORTS =
  /^export[ \t]+(?:default[ \t]+)?(?:declare[ \t]+)?(?:abstract[ \t]+)?(?:async[ \t]+)?(?:function\*?|class|const|let|var|interface|type|enum)[ \t]+([\w$]+)/gm;
const DECLARES = /^(?:async[ \t]+)?(?:function\*?|class)[ \t]+([\w$]+)/gm;

function jsonMembers(path: string, text: string): readonly string[] {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return ["  it is not one valid JSON document (or it was cut)"];
  }
  if (Array.isArray(value)) return [`  an array of ${value.length}`];
  if (typeof value !== "object" || value === null) return [];
  const members = new Map<string, unknown>(Object.entries(value));
  const named = /(^|\/)package\.json$/.test(path) ? members.get("name") : undefined;
  const scripts = members.get("scripts");
  return [
    ...(typeof named === "string" ? [`  package: ${quote(named)}`] : []),
    ...(named !== undefined && typeof scripts === "object" && scripts !== null
      ? list("scripts", Object.keys(scripts))
      : list("members", [...members.keys()])),
  ];
}

const all = (text: string, pattern: RegExp): readonly string[] => [
  ...new Set([...text.matchAll(pattern)].map((match) => match[1] ?? "")),
];

function list(name: string, items: readonly string[]): readonly string[] {
  if (items.length === 0) return [];
  const more = items.length > MOST_NAMES ? ` and ${items.length - MOST_NAMES} more` : "";
  return [`  ${name}: ${items.slice(0, MOST_NAMES).map(short).join(", ")}${more}`];
}

// every pattern below takes one line at a time and no run of anything twice: a file cannot make it slow
const or = (...choices: readonly (readonly string[])[]): readonly string[] =>
  choices.find(({ length }) => length > 0) ?? [];

function short(text: string): string {
  const line = text.trim();
  return line.length <= LONGEST ? line : `${[...line.slice(0, LONGEST * 2)].slice(0, LONGEST).join("")}…`;
}

const quote = (text: string): string => `“${short(text)}”`;

const count = (number: number, thing: string): string => `${number} ${thing}${number === 1 ? "" : "s"}`;

export const filesAndFolders = (files: number, folders: number): string =>
  [
    ...(files > 0 || folders === 0 ? [count(files, "file")] : []),
    ...(folders > 0 ? [count(folders, "folder")] : []),
  ].join(" and ");
