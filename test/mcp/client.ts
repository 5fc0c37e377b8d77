import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import type { QuestionResult } from "../../protocol/question.js";
import { BINARY } from "./service.js";

export type Env = Readonly<Record<string, string>>;

const home = (): Env => ({ HOME: process.env["HOME"] ?? "/", PATH: process.env["PATH"] ?? "" });

/** What a tool gave: its text, its data, and whether it is an error. */
export interface Given {
  readonly isError: boolean;
  readonly text: string;
  readonly data: Readonly<Record<string, unknown>>;
  /** `data` as a question's result, for those tools that give one. */
  readonly result: QuestionResult & { readonly guidance: string };
}

/** The official SDK's client on a `clankie mcp` of its own, over real stdio. */
export class McpClient {
  readonly sdk: Client;
  readonly #transport: StdioClientTransport;

  private constructor(sdk: Client, transport: StdioClientTransport) {
    this.sdk = sdk;
    this.#transport = transport;
  }

  static async start(env: Env, args: readonly string[] = []): Promise<McpClient> {
    const sdk = new Client({ name: "test", version: "1" });
    const transport = new StdioClientTransport({
      command: process.execPath,
      args: [BINARY, "mcp", ...args],
      env: { ...home(), ...env },
      stderr: "pipe",
    });
    await sdk.connect(transport);
    return new McpClient(sdk, transport);
  }

  get pid(): number {
    return this.#transport.pid ?? 0;
  }

  async call(name: string, given: Readonly<Record<string, unknown>> = {}, signal?: AbortSignal): Promise<Given> {
    const reply = await this.sdk.callTool(
      { name, arguments: { ...given } },
      undefined,
      signal === undefined ? {} : { signal },
    );
    const [block] = reply.content as readonly { readonly type: string; readonly text: string }[];
    const data = (reply.structuredContent ?? {}) as Given["data"];
    return {
      isError: reply.isError === true,
      text: block?.text ?? "",
      data,
      result: data as unknown as Given["result"],
    };
  }

  end(): Promise<void> {
    return this.sdk.close();
  }
}

/** A `clankie mcp` and what it says, line by line, for clients that do not behave. */
export class RawMcp {
  readonly #child: ChildProcessWithoutNullStreams;
  readonly #exit: Promise<unknown[]>;
  readonly lines: string[] = [];
  #stderr = "";
  #wake: () => void = () => {};

  constructor(env: Env, args: readonly string[] = []) {
    this.#child = spawn(process.execPath, [BINARY, "mcp", ...args], { env: { ...home(), ...env } });
    this.#exit = once(this.#child, "exit");
    this.#child.stderr.setEncoding("utf8").on("data", (text: string) => {
      this.#stderr += text;
    });
    createInterface({ input: this.#child.stdout }).on("line", (line) => {
      this.lines.push(line);
      this.#wake();
    });
  }

  get stderr(): string {
    return this.#stderr;
  }

  write(text: string): void {
    this.#child.stdin.write(text);
  }

  send(message: object): void {
    this.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
  }

  /** The first handshake of the protocol; returns what the server said. */
  async initialize(protocolVersion: string): Promise<Readonly<Record<string, unknown>>> {
    const params = { protocolVersion, capabilities: {}, clientInfo: { name: "raw", version: "1" } };
    this.send({ id: "first", method: "initialize", params });
    const reply = await this.reply("first");
    this.send({ method: "notifications/initialized" });
    return reply["result"] as Readonly<Record<string, unknown>>;
  }

  /** The reply to a request; every line on stdout has to be a message of the protocol. */
  async reply(id: string | number): Promise<Readonly<Record<string, unknown>>> {
    for (;;) {
      const reply = this.messages().find((message) => message["id"] === id);
      if (reply !== undefined) return reply;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  messages(): readonly Readonly<Record<string, unknown>>[] {
    return this.lines.map((line) => {
      const message = JSON.parse(line) as Readonly<Record<string, unknown>>;
      if (message["jsonrpc"] !== "2.0") throw new Error(`not of the protocol: ${line}`);
      return message;
    });
  }

  /** Ends its stdin and waits for its end; the exit status. */
  async endOfInput(): Promise<number | null> {
    this.#child.stdin.end();
    return this.exit();
  }

  async exit(): Promise<number | null> {
    const [code] = await this.#exit;
    return code as number | null;
  }

  /** Goes away without reading on. */
  hangUp(): void {
    this.#child.stdout.destroy();
  }
}
