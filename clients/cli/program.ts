import { readFileSync } from "node:fs";
import { Command } from "commander";
import { addConnectionOptions, type Cli } from "./cli.js";
import { addAgents } from "./commands/agents.js";
import { addAsk } from "./commands/ask.js";
import { addConversations } from "./commands/conversations.js";
import { addCredentials } from "./commands/credentials.js";
import { addDevices } from "./commands/devices.js";
import { addMcp } from "./commands/mcp.js";
import { addProjects } from "./commands/projects.js";
import { addRuns } from "./commands/runs.js";
import { addStatus } from "./commands/status.js";
import { addTui } from "./commands/tui.js";
import { EXIT_HELP } from "./exit.js";
import { addBackup } from "./local/backup.js";
import { addChart } from "./local/chart.js";
import { addDoctor } from "./local/doctor.js";
import { addRestore } from "./local/restore.js";
import { addServe } from "./local/serve.js";
import { addStart } from "./local/start.js";

/** Adds a command, or a group of them, to the program. */
type AddCommand = (program: Command, cli: Cli) => void;

/** In the order of `clankie --help`. The commands of `local/` stand first: they need the server's own code. */
const COMMANDS: readonly AddCommand[] = [
  addStart,
  addServe,
  addStatus,
  addConversations,
  addTui,
  addAsk,
  addMcp,
  addAgents,
  addRuns,
  addDevices,
  addCredentials,
  addProjects,
  addChart,
  addDoctor,
  addBackup,
  addRestore,
];

/** The whole command line, for one process. */
export function makeProgram(cli: Cli): Command {
  const { stdout, stderr } = cli.surroundings;
  const program = new Command("clankie")
    .description("An agent asks its owner one question; the owner answers it once.")
    .version(version(), "--version")
    .enablePositionalOptions()
    .exitOverride()
    .showHelpAfterError("(add --help for what it takes)")
    .configureOutput({ writeOut: (text) => stdout.write(text), writeErr: (text) => stderr.write(text) })
    .addHelpText("after", `\n${EXIT_HELP}`);
  addConnectionOptions(program);
  for (const add of COMMANDS) add(program, cli);
  return program;
}

function version(): string {
  const manifest: unknown = JSON.parse(readFileSync(new URL("../../../package.json", import.meta.url), "utf8"));
  return String(typeof manifest === "object" && manifest !== null ? Reflect.get(manifest, "version") : "");
}
