import type { Command } from "commander";
import { runTui, terminalRefusal } from "../../tui/main.js";
import { type Cli, type CommonFlags, leaf } from "../cli.js";
import { usage } from "../exit.js";
import { connectionOf } from "../settings.js";

interface TuiFlags extends CommonFlags {
  readonly bell: boolean;
  readonly title: boolean;
}

/** `clankie tui`. */
export function addTui(program: Command, cli: Cli): void {
  leaf(program, "tui [conversation]", "read and answer questions on this terminal", ["tui", "tui 2", "tui my-project"])
    .option("--no-bell", "do not ring the bell when a question arrives")
    .option("--no-title", "leave the terminal's title alone")
    .action(async (conversation: string | undefined, _options: unknown, command: Command) => {
      const flags: TuiFlags = command.optsWithGlobals();
      const { env, stdin, stdout } = cli.surroundings;
      const refusal = terminalRefusal(stdin, stdout);
      if (refusal !== null) {
        throw usage(refusal, "without one: clankie conversations questions, and clankie conversations answer");
      }
      const { url, token } = connectionOf(flags, env);
      const named = conversation === undefined ? {} : { conversation };
      cli.exitWith(await runTui({ url, token, bell: flags.bell, title: flags.title, ...named }));
    });
}
