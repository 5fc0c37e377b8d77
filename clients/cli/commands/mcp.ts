import type { Command } from "commander";
import type { Address } from "../../agent/desk.js";
import { runMcp } from "../../agent/mcp.js";
import { type Cli, leaf } from "../cli.js";
import { EXIT, Failure } from "../exit.js";
import { type ConnectionFlags, connectionOf } from "../settings.js";

interface McpFlags extends ConnectionFlags {
  readonly conversation?: string;
}

/** `clankie mcp`: the agent's side for any agent that speaks the Model Context Protocol. Contract section 10. */
export function addMcp(program: Command, cli: Cli): void {
  leaf(program, "mcp", "serve an agent the tools to ask its owner, as an MCP server on standard input and output", [
    "mcp",
    "mcp --conversation ID --token-file FILE",
  ])
    .option("--conversation <id>", "the conversation (CLANKIE_CONVERSATION; without it, the one the token is bound to)")
    .action(async (_: unknown, command: Command) => {
      const { stdin, stdout, stderr } = cli.surroundings;
      const env = expanded(cli.surroundings.env);
      const flags: McpFlags = command.optsWithGlobals();
      const status = await runMcp({
        address: addressOf(flags, env),
        conversationId: flags.conversation ?? set(env["CLANKIE_CONVERSATION"]),
        agent: set(env["CLANKIE_RUN"]) === undefined ? "attached" : "in_run",
        version: program.version() ?? "",
        stdin,
        stdout,
        log: (text) => stderr.write(`clankie mcp: ${text}\n`),
      });
      cli.exitWith(status === 0 ? EXIT.done : EXIT.failed);
    });
}

/**
 * The agent's token comes from its environment or from a file that is named, never from the service's data directory: an
 * agent does not become the operator because it was given nothing. What is missing is told at the first call.
 */
function addressOf(flags: McpFlags, env: NodeJS.ProcessEnv): Address {
  if (flags.tokenFile === undefined && set(env["CLANKIE_TOKEN"]) === undefined)
    return {
      kind: "unknown",
      problem:
        "This agent has no token: it was not started by a run of Clankie, or its client does not pass its environment on.",
      remedy:
        "Do not try again; ask your user in the terminal. Tell your user: an agent that Clankie starts (clankie conversations send) gets its token from the environment; one of your own gets one from `clankie credentials issue agent --conversation ID`, by CLANKIE_TOKEN or --token-file.",
    };
  try {
    return { kind: "known", ...connectionOf(flags, env) };
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    return { kind: "unknown", problem: `${error.message}.`, remedy: `Tell your user: ${error.hints.join("; ")}` };
  }
}

/**
 * The environment without values such as `$CLANKIE_TOKEN` and `${CLANKIE_TOKEN}`: clients that pass a variable on by its
 * name leave that there when it is not set.
 */
const expanded = (env: NodeJS.ProcessEnv): NodeJS.ProcessEnv =>
  Object.fromEntries(Object.entries(env).filter(([name, value]) => value !== `$${name}` && value !== `\${${name}}`));

const set = (value: string | undefined): string | undefined => (value === "" ? undefined : value);
