import { realpathSync } from "node:fs";
import { delimiter, isAbsolute, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { Argument, type Command } from "commander";
import { CannotEdit } from "../../agent/setup/edit.js";
import {
  AGENT_NAMES,
  AGENTS,
  type Agent,
  type AgentName,
  INSTRUCTION,
  type McpCommand,
} from "../../agent/setup/known.js";
import { carryOut, changeInLines, changes, type Plan, planFor } from "../../agent/setup/plan.js";
import { type Cli, group } from "../cli.js";
import { shellWord } from "../command-line.js";
import type { Style } from "../console.js";
import { EXIT, Failure } from "../exit.js";

interface SetupFlags {
  readonly directory: string;
  readonly dryRun?: boolean;
  readonly remove?: boolean;
  readonly json?: boolean;
}

/** `clankie agents setup`: gives an agent that people run the tools to ask, in one project. */
export function addAgents(program: Command, cli: Cli): void {
  group(program, "agents", "the agents that people run")
    .command("setup")
    .summary("add `clankie mcp` to an agent's configuration in a project")
    .description(
      "add `clankie mcp` to an agent's configuration in a project; keeps what is there, shows the change, does nothing twice",
    )
    .addArgument(new Argument("<name>", "the agent").choices(AGENT_NAMES))
    .option("--directory <dir>", "the project", ".")
    .option("--dry-run", "show the change and make none")
    .option("--remove", "take it out again")
    .option("--json", "print one JSON document on standard output")
    .addHelpText("after", "\nExamples:\n  clankie agents setup opencode --dry-run\n  clankie agents setup opencode\n")
    .action(async (name: AgentName, _: unknown, command: Command) => {
      await setUp(AGENTS[name], command.optsWithGlobals(), cli);
    });
}

async function setUp(agent: Agent, flags: SetupFlags, cli: Cli): Promise<void> {
  const { env, cwd } = cli.surroundings;
  const directory = resolve(cwd(), flags.directory);
  const clankie = ownCommand(env);
  const console = cli.console(flags.json);
  let plan: Plan;
  try {
    plan = await planFor(agent, directory, [...clankie, "mcp"], flags.remove === true ? "remove" : "add");
  } catch (error) {
    if (error instanceof CannotEdit)
      throw new Failure(EXIT.failed, "cannot_edit", error.message, [
        "nothing was changed; docs/agents.md shows what to write",
      ]);
    throw error;
  }
  const made = changes(plan) && flags.dryRun !== true;
  if (made && console.json) await carryOut(plan);
  const next = flags.remove === true ? [] : nextSteps(agent, directory, clankie);
  console.result(
    { agent: agent.name, file: plan.file, changed: made, before: plan.before ?? null, after: plan.after ?? null, next },
    (style) =>
      [...changeText(plan, directory, flags, style), ...(next.length === 0 ? [] : ["", ...next.map(style.plain)])].join(
        "\n",
      ),
  );
  if (made && !console.json) await carryOut(plan); // a person sees it first
}

function changeText(plan: Plan, directory: string, flags: SetupFlags, style: Style): readonly string[] {
  if (!changes(plan)) {
    const state = flags.remove === true ? "nothing of this in" : "already set up in";
    return [style.bold(`${state} ${plan.file}; nothing was changed`)];
  }
  const head = flags.dryRun === true ? "this would change" : "changing";
  return [
    style.bold(`${head} ${plan.file}`),
    ...changeInLines(plan, directory).map((line) => style.plain(line.replaceAll("\t", "  "))),
  ];
}

/** What is left for a person to do, with commands that can be copied. */
function nextSteps(agent: Agent, directory: string, clankie: readonly string[]): readonly string[] {
  const program = clankie.map(shellWord).join(" ");
  return [
    ...agent.notes,
    `Make a conversation whose runs start ${agent.title} (the service has to run: ${program} serve):`,
    `  ${program} conversations create --directory ${shellWord(directory)} -- ${agent.run.map(shellWord).join(" ")}`,
    "Send it a message, and answer what it asks:",
    `  ${program} conversations send CONVERSATION "What to do"`,
    `  ${program} tui`,
    `So that it asks here and not in its terminal, put this into ${agent.instructions}:`,
    ...INSTRUCTION.split("\n").map((line) => `  ${line}`),
  ];
}

/** How this program is called: by its name where PATH leads to this very file, else by Node and the file. */
function ownCommand(env: NodeJS.ProcessEnv): McpCommand {
  const own = realpathSync(fileURLToPath(new URL("../bin.js", import.meta.url)));
  const isOwn = (folder: string): boolean => {
    try {
      return isAbsolute(folder) && realpathSync(join(folder, "clankie")) === own;
    } catch {
      return false;
    }
  };
  const onPath = (env["PATH"] ?? "").split(delimiter).some(isOwn);
  return onPath ? ["clankie"] : [process.execPath, own];
}
