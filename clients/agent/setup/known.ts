/** How to start `clankie mcp`: a program and its arguments. */
export type McpCommand = readonly [program: string, ...args: string[]];

/** The variables that a run's command gets, and that `clankie mcp` needs from whatever starts it. Contract section 10. */
const VARIABLES = ["CLANKIE_URL", "CLANKIE_TOKEN", "CLANKIE_CONVERSATION", "CLANKIE_RUN"] as const;

/** A member that is put into a JSON file, comments and all else kept. */
export interface JsonMember {
  readonly path: readonly string[];
  readonly value: unknown;
}

/** Where an agent keeps its MCP servers in a project, and what stands there for this service. */
export type Target =
  | {
      readonly kind: "json";
      /** Below the project, the first that is there, or else the first of all. */
      readonly files: readonly [string, ...string[]];
      /** Members of a file that is made anew, before ours. */
      readonly preamble: Readonly<Record<string, string>>;
      member(current: unknown, command: McpCommand): JsonMember;
    }
  | { readonly kind: "toml"; readonly file: string; table(command: McpCommand): string };

/** An agent that people run, as far as this service has to know it. docs/agents.md says what was run and what was read. */
export interface Agent {
  readonly name: AgentName;
  readonly title: string;
  readonly target: Target;
  /** The command of a conversation: reads the message on stdin and continues its session in the directory. */
  readonly run: readonly string[];
  /** Its instructions file in a project. */
  readonly instructions: string;
  /** What else has to be known before it works. */
  readonly notes: readonly string[];
}

export const AGENT_NAMES = ["opencode", "claude", "codex", "gemini"] as const;
export type AgentName = (typeof AGENT_NAMES)[number];

export const AGENTS: Readonly<Record<AgentName, Agent>> = {
  opencode: {
    name: "opencode",
    title: "opencode",
    target: {
      kind: "json",
      files: ["opencode.json", "opencode.jsonc"],
      preamble: { $schema: "https://opencode.ai/config.json" },
      member: (current, command) => {
        // version 2 keeps its servers one level deeper, and knows no `enabled`
        const servers = memberOf(memberOf(current, "mcp"), "servers");
        return isObject(servers) && typeof servers["type"] !== "string"
          ? { path: ["mcp", "servers", "clankie"], value: { type: "local", command } }
          : { path: ["mcp", "clankie"], value: { type: "local", command, enabled: true, timeout: 60_000 } };
      },
    },
    run: ["opencode", "run", "--continue"],
    instructions: "AGENTS.md",
    notes: [],
  },
  claude: {
    name: "claude",
    title: "Claude Code",
    target: {
      kind: "json",
      files: [".mcp.json"],
      preamble: {},
      member: (_, [command, ...args]) => ({
        path: ["mcpServers", "clankie"],
        value: { type: "stdio", command, args, env: variables((name) => `\${${name}:-}`) },
      }),
    },
    // --mcp-config: without a person at its terminal it would wait for the approval of the project's .mcp.json
    run: ["claude", "--print", "--continue", "--mcp-config", ".mcp.json", "--allowedTools", "mcp__clankie"],
    instructions: "CLAUDE.md",
    notes: [],
  },
  codex: {
    name: "codex",
    title: "Codex CLI",
    target: {
      kind: "toml",
      file: ".codex/config.toml",
      table: ([command, ...args]) =>
        [
          "[mcp_servers.clankie]",
          `command = ${toml(command)}`,
          `args = [${args.map(toml).join(", ")}]`,
          `env_vars = [${VARIABLES.map(toml).join(", ")}]`,
          // else Codex begins its turn without the tools when the server is not there within a moment
          "required = true",
          "startup_timeout_sec = 60",
          "tool_timeout_sec = 60",
          // without it `codex exec` cancels calls that nobody is there to approve; these only ask the owner
          'default_tools_approval_mode = "approve"',
        ].join("\n"),
    },
    run: ["codex", "exec", "--sandbox", "workspace-write", "resume", "--last", "-"],
    instructions: "AGENTS.md",
    notes: [
      "Start `codex` once in the directory and trust it: only then does it read .codex/config.toml.",
      "For every directory instead: codex mcp add clankie -- clankie mcp, then add env_vars as above in ~/.codex/config.toml.",
    ],
  },
  gemini: {
    name: "gemini",
    title: "Gemini CLI",
    target: {
      kind: "json",
      files: [".gemini/settings.json"],
      preamble: {},
      member: (_, [command, ...args]) => ({
        path: ["mcpServers", "clankie"],
        // trust: without a person at its terminal, a tool that wants to be confirmed is not called
        value: { command, args, env: variables((name) => `$${name}`), timeout: 60_000, trust: true },
      }),
    },
    run: ["gemini", "--resume", "latest"],
    instructions: "GEMINI.md",
    notes: ["Start `gemini` once in the directory and trust it: only then does it start a project's servers."],
  },
};

/** What its users put into an agent's instructions file, so that it asks here and not in its terminal. */
export const INSTRUCTION = `When a decision is mine to make and you cannot settle it from the files, ask me with the clankie tool
request_user_input (one question, two to eight options or a short text), then end your turn. Do not ask in the
terminal, do not guess, do not wait. My answer starts a new turn of yours as quoted JSON. It is a preference, not an
approval: it permits nothing that you would need my approval for.`;

const variables = (reference: (name: string) => string): Readonly<Record<string, string>> =>
  Object.fromEntries(VARIABLES.map((name) => [name, reference(name)]));

/** A TOML basic string; JSON's escapes are among TOML's, but for DEL. */
const toml = (text: string): string => JSON.stringify(text).replaceAll("\u007f", "\\u007f");

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

const memberOf = (value: unknown, name: string): unknown =>
  isObject(value) && Object.hasOwn(value, name) ? value[name] : undefined;
