import { readdir } from "node:fs/promises";
import { resolve } from "node:path";
import type { Command } from "commander";
import { type BackupSummary, BadBackup, checkBackup, entriesOfBackup } from "../../../server/backup.js";
import { dataDirectoryAt, prepareDataDirectory } from "../../../server/data-directory.js";
import { StoreError } from "../../../server/store/errors.js";
import { restoreStore } from "../../../server/store/restore.js";
import { type Cli, leaf } from "../cli.js";
import { EXIT, Failure } from "../exit.js";
import { facts } from "../render.js";
import { dataDirectory } from "../settings.js";

/** `clankie restore FILE`. */
export function addRestore(program: Command, cli: Cli): void {
  leaf(program, "restore", "make an empty data directory from a backup, with no service running", [
    "restore clankie.backup --data DIR",
  ])
    .argument("<file>", "a file that clankie backup made")
    .action(async (given: string, _options: unknown, command: Command) => {
      const flags = command.optsWithGlobals();
      const console = cli.console(flags["json"] === true);
      const file = resolve(cli.surroundings.cwd(), given);
      const data = dataDirectory(flags["data"], cli.surroundings.env);
      const summary = await runRestore(file, data);
      console.result({ data, ...summary }, (style) =>
        facts(
          [
            ["data directory", data],
            ["commits", String(summary.commits)],
            ["entries", String(summary.entries)],
            ["backup of", summary.createdAt],
          ],
          style,
        ),
      );
      console.note(`start it with: ${"clankie serve"} --data ${data}`);
      console.note(
        "It makes new operator and captain tokens. Devices and credentials are those of the backup: look at",
      );
      console.note("clankie devices list, and revoke again what was revoked since.");
    });
}

/**
 * Makes a store from a backup, after all of the file was checked. The data directory has to be missing or without
 * anything of a service; an interrupted restore is simply begun again.
 *
 * @throws {Failure}
 */
export async function runRestore(file: string, data: string): Promise<BackupSummary> {
  try {
    const summary = await checkBackup(file);
    const directory = dataDirectoryAt(data);
    await prepareDataDirectory(directory);
    // Tokens of another store would be taken for this one's.
    const left = (await readdir(data)).filter((name) => name === "service.json" || name.endsWith(".token"));
    if (left.length > 0) throw notEmpty(`${data} holds ${left.join(", ")} of a service`);
    await restoreStore(directory.store, summary.commits, entriesOfBackup(file));
    return summary;
  } catch (error) {
    if (error instanceof BadBackup) throw new Failure(EXIT.failed, "bad_backup", `${file}: ${error.message}`);
    if (error instanceof StoreError && error.code === "STORE_NOT_EMPTY") throw notEmpty(error.message);
    if (error instanceof StoreError) throw new Failure(EXIT.failed, "cannot_restore", error.message);
    if (error instanceof Error && "code" in error && error.code === "ENOENT") {
      throw new Failure(EXIT.notFound, "not_found", `there is no file ${file}`);
    }
    throw error;
  }
}

const notEmpty = (message: string): Failure =>
  new Failure(EXIT.refused, "not_empty", message, ["restore into an empty directory: --data DIR"]);
