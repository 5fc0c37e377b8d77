import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { json } from "node:stream/consumers";

/** A message of an OpenAI-style chat, as far as a script reads it. */
export interface ChatMessage {
  readonly role: "system" | "user" | "assistant" | "tool";
  readonly content: string;
}

export type ModelReply =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "tool"; readonly name: string; readonly given: Readonly<Record<string, unknown>> };

/** What the model says next: `last` is the latest message of the user, `results` are the tools' results since then. */
export type Script = (turn: Turn) => ModelReply;

export interface Turn {
  readonly last: string;
  readonly results: readonly string[];
  /** Everything the user said in this session, oldest first. */
  readonly said: readonly string[];
  readonly tools: readonly string[];
}

/** A model of a script: a server on loopback that streams OpenAI-style chat completions. */
export class ScriptedModel {
  readonly #server: Server;
  readonly #script: Script;
  /** What it was asked and what it said, for a transcript. */
  readonly turns: { readonly turn: Turn; readonly reply: ModelReply }[] = [];

  private constructor(server: Server, script: Script) {
    this.#server = server;
    this.#script = script;
    server.on("request", (request, response) => {
      this.#answer(request, response).catch((error: unknown) => {
        response.writeHead(500).end(String(error));
      });
    });
  }

  static async start(script: Script): Promise<ScriptedModel> {
    const server = createServer();
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    return new ScriptedModel(server, script);
  }

  get url(): string {
    const address = this.#server.address();
    if (address === null || typeof address === "string") throw new Error("the model has no port");
    return `http://127.0.0.1:${address.port}/v1`;
  }

  end(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = (await json(request)) as ChatRequest;
    const turn = turnOf(body);
    // a new session is named first, by a request that offers no tools
    const isTitle = turn.tools.length === 0;
    const reply: ModelReply = isTitle ? { kind: "text", text: "A session" } : this.#script(turn);
    if (!isTitle) this.turns.push({ turn, reply });
    response.writeHead(200, { "content-type": "text/event-stream" });
    for (const chunk of chunksOf(reply, this.turns.length)) response.write(`data: ${JSON.stringify(chunk)}\n\n`);
    response.end("data: [DONE]\n\n");
  }
}

interface ChatRequest {
  readonly messages: readonly { readonly role: ChatMessage["role"]; readonly content: unknown }[];
  readonly tools?: readonly { readonly function: { readonly name: string } }[];
}

function turnOf({ messages, tools = [] }: ChatRequest): Turn {
  const texts = messages.map(({ role, content }): ChatMessage => ({ role, content: textOf(content) }));
  const at = texts.findLastIndex(({ role }) => role === "user");
  return {
    last: texts[at]?.content ?? "",
    results: texts.slice(at + 1).flatMap(({ role, content }) => (role === "tool" ? [content] : [])),
    said: texts.flatMap(({ role, content }) => (role === "user" ? [content] : [])),
    tools: tools.map(({ function: { name } }) => name),
  };
}

function textOf(content: unknown): string {
  if (typeof content === "string") return content;
  const parts = Array.isArray(content) ? (content as readonly { readonly text?: string }[]) : [];
  return parts.map(({ text = "" }) => text).join("");
}

function chunksOf(reply: ModelReply, turn: number): readonly object[] {
  const chunk = (choices: readonly object[], more: object = {}): object => ({
    id: `turn-${turn}`,
    object: "chat.completion.chunk",
    created: 0,
    model: "scripted",
    choices,
    ...more,
  });
  const usage = chunk([], { usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 } });
  switch (reply.kind) {
    case "text":
      return [
        chunk([{ index: 0, delta: { role: "assistant", content: reply.text }, finish_reason: null }]),
        chunk([{ index: 0, delta: {}, finish_reason: "stop" }]),
        usage,
      ];
    case "tool": {
      const call = { name: reply.name, arguments: JSON.stringify(reply.given) };
      const calls = [{ index: 0, id: `call_${turn}`, type: "function", function: call }];
      return [
        chunk([{ index: 0, delta: { role: "assistant", content: null, tool_calls: calls }, finish_reason: null }]),
        chunk([{ index: 0, delta: {}, finish_reason: "tool_calls" }]),
        usage,
      ];
    }
    default:
      return reply satisfies never;
  }
}
