import { lstat, mkdir, open, readFile, realpath, rename, rm, stat } from "node:fs/promises";
import { dirname, join, relative } from "node:path";
import { CannotEdit, isBare, isBlank, jsonValue, withMember, withoutMember, withoutTable, withTable } from "./edit.js";
import type { Agent, McpCommand } from "./known.js";

/** A change of one file, before it is made. `undefined` is a file that is not there. */
export interface Plan {
  readonly file: string;
  readonly before: string | undefined;
  readonly after: string | undefined;
}

export const changes = ({ before, after }: Plan): boolean => before !== after;

/**
 * What `clankie agents setup` would do in a project.
 *
 * @throws {CannotEdit} where the file there is not what the agent could read either, or cannot be read here.
 */
export async function planFor(
  agent: Agent,
  directory: string,
  command: McpCommand,
  action: "add" | "remove",
): Promise<Plan> {
  const { target } = agent;
  switch (target.kind) {
    case "json": {
      const file = await firstThere(directory, target.files);
      const before = await textOf(file);
      const isLink = await isSymbolicLink(file);
      return inFile(file, () => {
        const member = target.member(jsonValue(before ?? ""), command);
        if (action === "add") return { file, before, after: withMember(before ?? "", member, target.preamble) };
        if (before === undefined) return { file, before, after: before };
        const after = withoutMember(before, member.path);
        // what was made for this goes with it; what somebody linked here stays
        return {
          file,
          before,
          after: after !== before && !isLink && isBare(after, target.preamble) ? undefined : after,
        };
      });
    }
    case "toml": {
      const file = join(directory, target.file);
      const before = await textOf(file);
      const isLink = await isSymbolicLink(file);
      return inFile(file, () => {
        if (action === "add")
          return { file, before, after: withTable(before ?? "", "mcp_servers.clankie", target.table(command)) };
        if (before === undefined) return { file, before, after: before };
        const after = withoutTable(before);
        return { file, before, after: after !== before && !isLink && isBlank(after) ? undefined : after };
      });
    }
    default:
      return target satisfies never;
  }
}

/** Makes the change, whole or not at all; a file keeps its mode, a link stays a link. */
export async function carryOut({ file, before, after }: Plan): Promise<void> {
  const real = before === undefined ? file : await realpath(file);
  if (after === undefined) {
    await rm(real);
    return;
  }
  await mkdir(dirname(real), { recursive: true });
  const mode = before === undefined ? 0o644 : (await stat(real)).mode & 0o777;
  const temporary = `${real}.clankie-${process.pid}`;
  try {
    const handle = await open(temporary, "wx", mode);
    try {
      await handle.writeFile(after);
      await handle.sync();
    } finally {
      await handle.close();
    }
    await rename(temporary, real);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
}

/** The change in lines, as `diff` shows it: what stays around it, `-` for what goes, `+` for what comes. */
export function changeInLines({ file, before, after }: Plan, directory: string): readonly string[] {
  const name = relative(directory, file);
  const old = linesOf(before);
  const young = linesOf(after);
  let first = 0;
  while (first < old.length && first < young.length && old[first] === young[first]) first += 1;
  let last = 0;
  while (last < old.length - first && last < young.length - first && old.at(-1 - last) === young.at(-1 - last))
    last += 1;
  const context = 3;
  return [
    `--- ${before === undefined ? "(no file)" : name}`,
    `+++ ${after === undefined ? "(no file)" : name}`,
    ...old.slice(Math.max(0, first - context), first).map((line) => `  ${line}`),
    ...old.slice(first, old.length - last).map((line) => `- ${line}`),
    ...young.slice(first, young.length - last).map((line) => `+ ${line}`),
    ...old.slice(old.length - last, old.length - last + context).map((line) => `  ${line}`),
  ];
}

const linesOf = (text: string | undefined): readonly string[] => {
  if (text === undefined || text === "") return [];
  const lines = text.split(/\r?\n/);
  if (lines.at(-1) === "") lines.pop();
  return lines;
};

const isSymbolicLink = async (file: string): Promise<boolean> =>
  (await lstat(file).catch(() => undefined))?.isSymbolicLink() === true;

async function firstThere(directory: string, files: readonly [string, ...string[]]): Promise<string> {
  for (const name of files) {
    if (await lstat(join(directory, name)).catch(() => undefined)) return join(directory, name);
  }
  return join(directory, files[0]);
}

async function textOf(file: string): Promise<string | undefined> {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(await readFile(file));
  } catch (error) {
    const code = error instanceof Error && "code" in error ? String(error.code) : "";
    if (code === "ENOENT") return undefined;
    throw new CannotEdit(
      `${file}: ${code === "ERR_ENCODING_INVALID_ENCODED_DATA" ? "it is no UTF-8 text" : `it cannot be read (${code})`}`,
    );
  }
}

function inFile(file: string, make: () => Plan): Plan {
  try {
    return make();
  } catch (error) {
    throw error instanceof CannotEdit ? new CannotEdit(`${file}: ${error.message}`) : error;
  }
}
