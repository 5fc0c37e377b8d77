import { constants } from "node:fs";
import { type FileHandle, lstat, open, rename, rm } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import type { Command } from "commander";
import { type BackupSummary, BadBackup, checkBackup } from "../../../server/backup.js";
import { type Cli, leaf } from "../cli.js";
import { EXIT, Failure } from "../exit.js";
import { facts } from "../render.js";
import { type Connection, connectionOf, unreachable } from "../settings.js";

/** `clankie backup FILE`. */
export function addBackup(program: Command, cli: Cli): void {
  leaf(program, "backup", "write one consistent state of the running service to a file", ["backup clankie.backup"])
    .argument("<file>", "the file to make; one that is there is never replaced")
    .action(async (given: string, _options: unknown, command: Command) => {
      const flags = command.optsWithGlobals();
      const console = cli.console(flags["json"] === true);
      const file = resolve(cli.surroundings.cwd(), given);
      const summary = await runBackup(file, connectionOf(flags, cli.surroundings.env));
      console.result({ file, ...summary }, (style) =>
        facts(
          [
            ["backup", file],
            ["commits", String(summary.commits)],
            ["entries", String(summary.entries)],
          ],
          style,
        ),
      );
    });
}

/**
 * Reads a backup from the service into a new file (mode 0600), syncs it and checks all of it before it gets its name.
 *
 * @throws {Failure}
 */
export async function runBackup(file: string, { url, token }: Connection): Promise<BackupSummary> {
  if (await isThere(file)) {
    throw new Failure(EXIT.usage, "file_exists", `${file} is there already`, ["give another name, or move it away"]);
  }
  const part = `${file}.part`;
  await rm(part, { force: true });
  const output = await open(part, constants.O_CREAT | constants.O_EXCL | constants.O_WRONLY, 0o600).catch(cannotWrite);
  try {
    await receive(url, token, output);
    await output.sync();
    const summary = await checkBackup(part);
    await rename(part, file);
    await syncDirectory(dirname(file));
    return summary;
  } catch (error) {
    await rm(part, { force: true });
    if (!(error instanceof BadBackup)) throw error;
    throw new Failure(EXIT.failed, "bad_backup", `${error.message}; no backup was made`, ["see: clankie doctor"]);
  } finally {
    await output.close().catch(() => undefined);
  }
}

async function receive(url: string, token: string, output: FileHandle): Promise<void> {
  const address = new URL("/v1/backup", url.replace(/^ws/, "http"));
  const response = await fetch(address, {
    headers: { authorization: `Bearer ${token}` },
    redirect: "error",
  }).catch((error: unknown) => {
    throw unreachable(`the service at ${url} cannot be reached: ${causeOf(error)}`);
  });
  if (response.status === 401 || response.status === 403) {
    await response.body?.cancel();
    const words = "only an operator may make a backup, and this token is not one's";
    throw new Failure(EXIT.notPermitted, "forbidden", words, ["give the operator's with --token-file FILE"]);
  }
  if (!response.ok || response.body === null) {
    throw new Failure(EXIT.failed, "no_backup", `the service answered with HTTP status ${response.status}`, [
      "see: clankie status",
    ]);
  }
  try {
    for await (const chunk of response.body) await output.writeFile(chunk);
  } catch (error) {
    throw new Failure(EXIT.failed, "no_backup", `the backup broke off: ${causeOf(error)}`, ["nothing was kept of it"]);
  }
}

const causeOf = (error: unknown): string => {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  return cause instanceof Error ? cause.message : String(cause);
};

function cannotWrite(error: unknown): never {
  throw new Failure(EXIT.failed, "cannot_write", `the backup cannot be written: ${causeOf(error)}`);
}

async function isThere(path: string): Promise<boolean> {
  return lstat(path).then(
    () => true,
    () => false,
  );
}

async function syncDirectory(path: string): Promise<void> {
  const directory = await open(path, constants.O_RDONLY | constants.O_DIRECTORY);
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
}
