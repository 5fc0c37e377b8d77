import type { Command } from "commander";
import { type Cli, group, leaf } from "../cli.js";

/** `clankie runs …`. */
export function addRuns(program: Command, cli: Cli): void {
  leaf(group(program, "runs", "the agent's turns"), "cancel", "end a run, or take it out of the queue", [
    "runs cancel RUN_ID",
  ])
    .argument("<run>", "its id")
    .action((runId: string, _options: unknown, command: Command) =>
      cli.remote(command, async (session) => {
        const result = await session.call("run_cancel", { runId });
        session.console.result(result, (style) => `Run ${style.plain(runId)} is cancelled.`);
        return undefined;
      }),
    );
}
