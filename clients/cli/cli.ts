import type { Readable, Writable } from "node:stream";
import type { Command } from "commander";
import { Console, wantsColor } from "./console.js";
import { EXIT, EXIT_HELP, type Exit } from "./exit.js";
import { Session } from "./session.js";
import type { ConnectionFlags } from "./settings.js";

/** The process as the commands see it; a test brings its own. */
export interface Surroundings {
  readonly env: NodeJS.ProcessEnv;
  readonly cwd: () => string;
  readonly stdin: Readable & { readonly isTTY?: boolean };
  readonly stdout: Writable & { readonly isTTY?: boolean };
  readonly stderr: Writable;
}

export interface CommonFlags extends ConnectionFlags {
  readonly json?: boolean;
}

/** A command's work with the service; without a status it is done. */
export type Task = (session: Session) => Promise<Exit | undefined>;

/** What every command is made with. */
export class Cli {
  #exit: Exit = EXIT.done;
  #console: Console | undefined;

  constructor(readonly surroundings: Surroundings) {}

  /** The exit status so far. */
  get exit(): Exit {
    return this.#exit;
  }

  /** Sets the exit status of a command that does not go through `remote`. */
  exitWith(exit: Exit): void {
    this.#exit = exit;
  }

  /** Where output goes; `json` is settled by the first call. */
  console(json = false): Console {
    const { env, stdout, stderr } = this.surroundings;
    this.#console ??= new Console({ stdout, stderr, json, color: wantsColor(env, stdout.isTTY === true) });
    return this.#console;
  }

  /** Runs a command that speaks to the service, and closes the link after it. */
  async remote(command: Command, task: Task): Promise<void> {
    const flags: CommonFlags = command.optsWithGlobals();
    const session = new Session(this.console(flags.json), flags, this.surroundings.env);
    try {
      this.#exit = (await task(session)) ?? EXIT.done;
    } finally {
      session.close();
    }
  }
}

/** A command that holds others. */
export function group(parent: Command, name: string, summary: string): Command {
  return parent.command(name).summary(summary).description(summary).enablePositionalOptions();
}

/**
 * A command of its own, with the options that say where the service is, its examples (without `clankie`) and the exit
 * statuses in its help.
 */
export function leaf(parent: Command, usage: string, summary: string, examples: readonly string[] = []): Command {
  const command = parent.command(usage).summary(summary).description(summary);
  addConnectionOptions(command);
  const lines = examples.map((example) => `  clankie ${example}`).join("\n");
  command.addHelpText("after", `${lines === "" ? "" : `\nExamples:\n${lines}\n`}\n${EXIT_HELP}`);
  return command;
}

/** `--url`, `--token-file`, `--data` and `--json`. Contract section 9. */
export function addConnectionOptions(command: Command): Command {
  return command
    .option("--url <url>", "where the service is (CLANKIE_URL)")
    .option("--token-file <file>", "a file with the token (or the token itself in CLANKIE_TOKEN)")
    .option("--data <dir>", "the data directory of the service (CLANKIE_DATA)")
    .option("--json", "print one JSON document on standard output");
}
