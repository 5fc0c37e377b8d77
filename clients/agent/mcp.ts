import type { Readable, Writable } from "node:stream";
import { Server } from "@modelcontextprotocol/sdk/server/index.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import {
  CallToolRequestSchema,
  type CallToolResult,
  ErrorCode,
  ListToolsRequestSchema,
  McpError,
} from "@modelcontextprotocol/sdk/types.js";
import { type Address, Desk } from "./desk.js";
import { type AgentKind, ToolFailure } from "./guidance.js";
import { type Call, type Report, Toolbox } from "./toolbox.js";
import { INSTRUCTIONS, toolsFor } from "./tools.js";

export interface McpOptions {
  readonly address: Address;
  /** Without one, the conversation that the token is bound to. */
  readonly conversationId: string | undefined;
  readonly agent: AgentKind;
  readonly version: string;
  readonly stdin: Readable;
  readonly stdout: Writable;
  /** Takes what is for people; never stdout, which belongs to the protocol. */
  readonly log: (text: string) => void;
}

/** Calls that go on when stdin ends have so long, in milliseconds, to send their results. */
const LAST_RESULTS_MS = 7_000;
/** Milliseconds between signs of life to a client that asked for them; clients give a silent call up after a minute. */
const PROGRESS_MS = 10_000;

/**
 * `clankie mcp`: serves the Model Context Protocol on stdio until stdin ends. Contract section 10. Returns the exit
 * status: 0, or 1 where the connection to the client broke otherwise. The tools are listed also when the service is not
 * there; a call then says so.
 */
export async function runMcp(options: McpOptions): Promise<number> {
  const { stdin, stdout, log } = options;
  const desk = new Desk(options.address, options.conversationId, log);
  const toolbox = new Toolbox(desk, options.agent);
  const tools = toolsFor(options.agent);
  const stop = new AbortController();
  const going = new Set<Promise<unknown>>();

  // the low-level server takes JSON Schema as it is; the high-level one would make it from zod, in a larger dialect
  const server = new Server(
    { name: "clankie", title: "Clankie questions", version: options.version },
    { capabilities: { tools: {} }, instructions: INSTRUCTIONS },
  );
  server.onerror = (error) => log(`mcp: ${error.message}`);
  server.setRequestHandler(ListToolsRequestSchema, () => ({ tools: [...tools] }));
  server.setRequestHandler(CallToolRequestSchema, async ({ params }, { signal, _meta, sendNotification }) => {
    const tool = tools.find(({ name }) => name === params.name);
    if (tool === undefined)
      throw new McpError(ErrorCode.InvalidParams, `there is no tool ${JSON.stringify(params.name)}`);
    const token = _meta?.progressToken;
    const report: Report = ({ progress, total }) => {
      if (token === undefined) return;
      const message = "still waiting for the owner";
      sendNotification({
        method: "notifications/progress",
        params: { progressToken: token, progress, total, message },
      }).catch((error: unknown) => log(`mcp: ${String(error)}`));
    };
    const result = called(toolbox, {
      name: params.name,
      given: params.arguments ?? {},
      signal: AbortSignal.any([signal, stop.signal]),
      report,
      reportEveryMs: PROGRESS_MS,
    });
    going.add(result);
    return result.finally(() => going.delete(result));
  });

  const ended = new Promise<number>((resolve) => {
    stdin.once("end", () => resolve(0));
    stdin.once("close", () => resolve(0));
    stdout.on("error", () => resolve(1)); // nobody reads the results any more
    server.onclose = () => resolve(1);
  });
  await server.connect(new StdioServerTransport(stdin, stdout));
  const status = await ended;
  stop.abort();
  await Promise.race([
    Promise.allSettled(going),
    new Promise((resolve) => setTimeout(resolve, LAST_RESULTS_MS).unref()),
  ]);
  // the results are written after their calls have settled
  await new Promise((resolve) => setImmediate(resolve));
  if (status === 0) await new Promise((resolve) => stdout.write("", resolve));
  desk.close();
  await server.close();
  return status;
}

async function called(toolbox: Toolbox, call: Call): Promise<CallToolResult> {
  try {
    const value = { ...(await toolbox.call(call)) };
    // the text for clients that show only text, the same as data for the others
    return { content: [{ type: "text", text: JSON.stringify(value) }], structuredContent: value };
  } catch (error) {
    if (!(error instanceof ToolFailure)) throw error;
    return { content: [{ type: "text", text: `${error.code}: ${error.message}\n${error.remedy}` }], isError: true };
  }
}
