import { McpClient } from "./client.js";
import { RealService } from "./service.js";

export const CHOICE = {
  kind: "choice",
  prompt: "Which first?",
  options: [{ label: "tests", description: "what is covered" }, { label: "docs" }],
} as const;

/** One real service for the tests of a file, with a conversation of its own for each agent. */
export class World {
  #service: RealService | undefined;
  #conversations = 0;

  get service(): RealService {
    if (this.#service === undefined) throw new Error("the world has not begun");
    return this.#service;
  }

  readonly begin = async (): Promise<void> => {
    this.#service = await RealService.start();
  };

  readonly end = async (): Promise<void> => {
    await this.#service?.end();
  };

  /** A conversation with an attached agent, and that agent's environment. */
  async attached(url = this.service.url) {
    this.#conversations += 1;
    const directory = await this.service.directory(`workspace-${this.#conversations}`);
    const conversationId = await this.service.conversation(directory);
    const { token, credentialId } = await this.service.agentToken(conversationId);
    const env = { CLANKIE_URL: url, CLANKIE_TOKEN: token, CLANKIE_CONVERSATION: conversationId };
    return { conversationId, credentialId, env };
  }

  /** A test of an attached agent with its `clankie mcp`. */
  withMcp(body: (given: Attached) => Promise<void>): () => Promise<void> {
    return async () => {
      const given = await this.attached();
      const mcp = await McpClient.start(given.env);
      try {
        await body({ ...given, mcp });
      } finally {
        await mcp.end();
      }
    };
  }
}

type Attached = Awaited<ReturnType<World["attached"]>> & { readonly mcp: McpClient };

/** The names of the tools that a client is offered. */
export const toolNames = async (mcp: McpClient): Promise<readonly string[]> =>
  (await mcp.sdk.listTools()).tools.map(({ name }) => name).sort();
