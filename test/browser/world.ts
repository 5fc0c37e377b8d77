import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { nodeConnector } from "../../clients/link/node.js";
import { type Link, openLink } from "../../clients/link.js";
import type { DeviceMode } from "../../protocol/operations.js";
import type { OptionDraft, Question } from "../../protocol/question.js";
import { startServiceProcess } from "../service-process.js";

/** The real service as a process of its own, with its operator and whoever else a test needs. */
export interface World {
  readonly url: string;
  readonly operator: Link;
  /** A new conversation in a directory of its own, with an attached agent that may ask. */
  conversation(title: string): Promise<Talk>;
  pairingCode(mode?: DeviceMode): Promise<string>;
  devices(): Promise<readonly { readonly deviceId: string; readonly name: string }[]>;
  /** Ends the service's process at once, and starts it again on the same port and data. */
  restart(): Promise<void>;
  stop(): Promise<void>;
}

export interface Talk {
  readonly conversationId: string;
  readonly agent: Link;
  ask(prompt: string, options?: readonly (string | OptionDraft)[], more?: AskMore): Promise<Question>;
  /** The question of a request as the service has it now. */
  receipt(requestId: string): Promise<Question>;
  /** Resolves once the stored question fulfils the condition. */
  until(requestId: string, holds: (question: Question) => boolean): Promise<Question>;
}

interface AskMore {
  readonly allowFreeform?: boolean;
  readonly expiresInSeconds?: number;
}

export async function startWorld(): Promise<World> {
  const data = await mkdtemp(join(tmpdir(), "clankie-page-"));
  const state = join(data, "state");
  let service = await startServiceProcess(state);
  const { url } = service;
  const token = (await readFile(join(state, "operator.token"), "utf8")).trim();
  const operator = openLink({ url, token, connector: nodeConnector });
  await operator.ready();
  const links: Link[] = [operator];

  return {
    url,
    operator,
    async conversation(title) {
      const workspaceId = await mkdtemp(join(data, "workspace-"));
      const { conversation } = await operator.call("conversation_create", {
        scope: { kind: "workspace", workspaceId },
        title,
      });
      const { conversationId } = conversation;
      const credential = await operator.call("credential_issue", { kind: "agent", conversationId });
      const agent = openLink({ url, token: credential.token, connector: nodeConnector });
      links.push(agent);
      await agent.ready();
      return talk(operator, agent, conversationId);
    },
    async pairingCode(mode = "active") {
      return (await operator.call("device_pair_begin", { mode })).code;
    },
    async devices() {
      return (await operator.call("device_list", {})).devices;
    },
    async restart() {
      await service.kill();
      service = await startServiceProcess(state, ["--port", new URL(url).port]);
      await operator.ready();
    },
    async stop() {
      for (const link of links) link.close();
      await service.stop();
      await rm(data, { recursive: true, force: true });
    },
  };
}

function talk(operator: Link, agent: Link, conversationId: string): Talk {
  const receipt = async (requestId: string): Promise<Question> => {
    const { question } = await operator.call("input_get", { conversationId, requestId });
    if (question === undefined) throw new Error(`the service does not know ${requestId}`);
    return question;
  };
  return {
    conversationId,
    agent,
    async ask(prompt, options, more = {}) {
      const { question } = await agent.call(
        "request_user_input",
        options === undefined
          ? { conversationId, kind: "text", prompt }
          : {
              conversationId,
              kind: "choice",
              prompt,
              options: options.map((option) => (typeof option === "string" ? { label: option } : option)),
              ...more,
            },
      );
      if (question === undefined) throw new Error("nothing was asked");
      return question;
    },
    receipt,
    until(requestId, holds) {
      return new Promise((resolve) => {
        const watch = operator.watchConversation(conversationId, {}, (update) => {
          if (update.kind !== "snapshot") return;
          const { question, receipts } = update.snapshot;
          const found = question?.requestId === requestId ? question : receipts[requestId];
          if (found === undefined || !holds(found)) return;
          queueMicrotask(() => watch.close());
          resolve(found);
        });
      });
    },
  };
}
