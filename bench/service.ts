import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { Client } from "./client.js";

const BINARY = fileURLToPath(new URL("../clients/cli/bin.js", import.meta.url));

/** An answer that is ready to be sent: every one to a question of its own. */
export type Ready = object;

/** The real service as a process of its own. */
export class ServiceUnderTest {
  private constructor(
    readonly url: string,
    readonly token: string,
    readonly stop: () => Promise<void>,
  ) {}

  static async start(data: string): Promise<ServiceUnderTest> {
    const args = [BINARY, "serve", "--data", data, "--port", "0", "--json", "--log-level", "warn"];
    const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
    const exited = once(child, "exit");
    const [line] = (await once(createInterface({ input: child.stdout }), "line")) as [string];
    const { url, operatorTokenFile } = JSON.parse(line) as { readonly url: string; readonly operatorTokenFile: string };
    const token = (await readFile(operatorTokenFile, "utf8")).trim();
    return new ServiceUnderTest(`${url.replace(/^http/, "ws")}/v1/socket`, token, async () => {
      child.kill("SIGTERM");
      await exited;
    });
  }

  connect(): Promise<Client> {
    return Client.connect(this.url, this.token);
  }

  /** Opens `count` conversations in `directory`, each with a pending question, and returns their answers. */
  async prepare(client: Client, directory: string, count: number): Promise<Ready[]> {
    return Promise.all(
      Array.from({ length: count }, async (_, index): Promise<Ready> => {
        const { conversation } = await client.result<{ conversation: { conversationId: string } }>(
          "conversation_create",
          { scope: { kind: "workspace", workspaceId: directory }, title: `bench ${index}` },
        );
        const { conversationId } = conversation;
        const asked = await client.result<{
          readonly revision: number;
          readonly incarnationId: string;
          readonly question: { readonly requestId: string; readonly options: readonly { readonly optionId: string }[] };
        }>("request_user_input", {
          conversationId,
          kind: "choice",
          prompt: "Which of these should I describe first?",
          options: [{ label: "README.md" }, { label: "LICENSE", description: "the short one" }],
        });
        return {
          conversationId,
          incarnationId: asked.incarnationId,
          requestId: asked.question.requestId,
          expectedRevision: asked.revision,
          answer: { kind: "choice", optionId: asked.question.options[0]?.optionId },
        };
      }),
    );
  }
}
