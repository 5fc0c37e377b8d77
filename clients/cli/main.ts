import { CommanderError } from "commander";
import { Cli, type Surroundings } from "./cli.js";
import { EXIT, type Exit, Failure } from "./exit.js";
import { makeProgram } from "./program.js";

/** Runs one command line (without the program's own name) and returns its exit status. Never throws. */
export async function main(args: readonly string[], surroundings: Surroundings): Promise<Exit> {
  const cli = new Cli(surroundings);
  try {
    await makeProgram(cli).parseAsync(args, { from: "user" });
    return cli.exit;
  } catch (error) {
    if (error instanceof CommanderError) return misused(error, args, cli);
    const failure = error instanceof Failure ? error : unexpected(error);
    return cli.console(wantsJson(args)).failure(failure);
  }
}

/** commander has said on stderr what is wrong, or shown the help. */
function misused(error: CommanderError, args: readonly string[], cli: Cli): Exit {
  if (error.exitCode === 0) return EXIT.done;
  const message = error.message.replace(/^error: /, "");
  if (wantsJson(args)) cli.console(true).result({ error: { code: "usage", message } }, () => "");
  return EXIT.usage;
}

/** Where options could not be read, `--json` counts wherever it stands before `--`. */
function wantsJson(args: readonly string[]): boolean {
  const end = args.indexOf("--");
  return args.slice(0, end < 0 ? args.length : end).includes("--json");
}

function unexpected(error: unknown): Failure {
  const message = error instanceof Error ? error.message : String(error);
  const where = error instanceof Error && error.stack !== undefined ? error.stack.split("\n").slice(1, 3) : [];
  return new Failure(
    EXIT.failed,
    "unexpected",
    `unexpected: ${message}`,
    where.map((line) => line.trim()),
  );
}
