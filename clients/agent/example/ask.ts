import { fileURLToPath } from "node:url";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import type { QuestionDraft } from "../../../protocol/question.js";

/** What came back: the text of the tool's result, and whether the question was asked. */
export interface Asked {
  readonly ok: boolean;
  readonly text: string;
}

/**
 * Asks through `clankie mcp`, as any agent does that speaks the Model Context Protocol: starts it as a child with this
 * environment, lists its tools, calls one, ends it.
 */
export async function ask(draft: QuestionDraft): Promise<Asked> {
  const transport = new StdioClientTransport({
    command: process.execPath,
    args: [fileURLToPath(new URL("../../cli/bin.js", import.meta.url)), "mcp"],
    env: Object.fromEntries(
      Object.entries(process.env).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
    ),
    stderr: "inherit",
  });
  const client = new Client({ name: "clankie-example-agent", version: "1.0.0" });
  try {
    await client.connect(transport);
    const result = await client.callTool({ name: "request_user_input", arguments: { ...draft } });
    return { ok: result.isError !== true, text: textOf(result.content) };
  } finally {
    await client.close();
  }
}

function textOf(content: unknown): string {
  const blocks: readonly unknown[] = Array.isArray(content) ? content : [];
  return blocks
    .flatMap((block) => {
      const text: unknown = typeof block === "object" && block !== null && "text" in block ? block.text : undefined;
      return typeof text === "string" ? [text] : [];
    })
    .join("\n");
}
