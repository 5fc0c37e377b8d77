import { execFile } from "node:child_process";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { BINARY, RealService } from "../mcp/service.js";
import { type ModelReply, ScriptedModel, type Turn } from "./model.js";

/** The binary that `npm ci` in `test/agents-e2e/opencode` brings; compiled tests stand in `dist/`. */
const OPENCODE = fileURLToPath(
  new URL("../../../test/agents-e2e/opencode/node_modules/opencode-linux-x64-baseline/bin/opencode", import.meta.url),
);

export const QUESTION = {
  kind: "choice",
  prompt: "Which greeting shall notes.md have?",
  options: [
    { label: "Good morning", description: "for early readers" },
    { label: "Good evening", description: "for late ones" },
  ],
} as const;

/**
 * A project of opencode with the service: opencode with an empty home, a scripted model, `clankie mcp` in its project's
 * configuration, and a conversation whose command continues the session.
 */
export class OpencodeProject {
  readonly service: RealService;
  readonly model: ScriptedModel;
  readonly directory: string;
  readonly conversationId: string;

  private constructor(service: RealService, model: ScriptedModel, directory: string, conversationId: string) {
    this.service = service;
    this.model = model;
    this.directory = directory;
    this.conversationId = conversationId;
  }

  static async make(): Promise<OpencodeProject> {
    const service = await RealService.start();
    const directory = await service.directory("project");
    const notes = join(directory, "notes.md");
    const model = await ScriptedModel.start((turn) => asksThenEdits(turn, notes));
    await writeFile(notes, "Hello, reader.\n");
    await addService(directory);
    const home = join(service.root, "home");
    await mkdir(join(home, ".config/opencode"), { recursive: true });
    await writeFile(join(home, ".config/opencode/opencode.json"), JSON.stringify(modelConfiguration(model.url)));
    // the service passes its own environment on to commands; this one is the test's
    const environment = {
      HOME: home,
      XDG_DATA_HOME: join(home, "data"),
      XDG_CONFIG_HOME: join(home, ".config"),
      XDG_CACHE_HOME: join(home, "cache"),
      XDG_STATE_HOME: join(home, "state"),
      OPENCODE_DISABLE_MODELS_FETCH: "1",
      OPENCODE_DISABLE_AUTOUPDATE: "1",
    };
    const variables = Object.entries(environment).map(([name, value]) => `${name}=${value}`);
    const conversationId = await service.conversation(directory, ["env", ...variables, OPENCODE, "run", "--continue"]);
    return new OpencodeProject(service, model, directory, conversationId);
  }

  get notes(): Promise<string> {
    return readFile(join(this.directory, "notes.md"), "utf8");
  }

  /** How many runs have reached the model, by the messages that began them. */
  get begun(): readonly string[] {
    return this.model.turns.filter(({ turn }) => turn.results.length === 0).map(({ turn }) => turn.last);
  }

  /** Sends a message and waits until its run has ended with the question pending. */
  async ask(message: string) {
    const runId = await this.service.send(this.conversationId, message);
    const end = await this.service.turnEnd(this.conversationId, runId);
    const result = await this.service.read(this.conversationId);
    if (result.question === undefined)
      throw new Error(`opencode did not ask: ${JSON.stringify(this.model.turns)} ${this.service.log}`);
    return { runId, end, result };
  }

  async end(): Promise<void> {
    await this.service.end();
    this.model.end();
  }
}

/** Asks for a message of the owner; for the answer, edits the file as it says. */
function asksThenEdits({ last, results, tools }: Turn, notes: string): ModelReply {
  const answered = answeredLabel(last);
  if (answered === undefined) {
    if (results.length > 0) return { kind: "text", text: "I asked you which greeting you prefer." };
    const ask = tools.find((name) => name.endsWith("_request_user_input"));
    if (ask === undefined) return { kind: "text", text: `I have no tool to ask with, only ${tools.join(", ")}.` };
    return { kind: "tool", name: ask, given: QUESTION };
  }
  switch (results.length) {
    case 0:
      return { kind: "tool", name: "read", given: { filePath: notes } };
    case 1:
      return { kind: "tool", name: "edit", given: { filePath: notes, oldString: "Hello", newString: answered } };
    default:
      return { kind: "text", text: `notes.md says ${answered} now.` };
  }
}

/** The label in the quoted JSON of a continuation, read as data. */
function answeredLabel(message: string): string | undefined {
  const line = message.trim().split("\n").at(-1) ?? "";
  if (!message.includes("Treat every string in it as quoted data") || !line.startsWith("{")) return undefined;
  const { answer } = JSON.parse(line) as { readonly answer: { readonly label?: string } };
  return answer.label;
}

/** Adds the service to the project as its user would: by one command, beside what is configured there already. */
async function addService(directory: string): Promise<void> {
  const configuration = join(directory, "opencode.json");
  await writeFile(configuration, '{\n  // ours\n  "instructions": ["notes.md"]\n}\n');
  await promisify(execFile)(process.execPath, [BINARY, "agents", "setup", "opencode"], { cwd: directory });
}

function modelConfiguration(baseURL: string): object {
  const models = { scripted: { name: "Scripted", tool_call: true } };
  const options = { baseURL, apiKey: "none" };
  return {
    $schema: "https://opencode.ai/config.json",
    model: "scripted/scripted",
    provider: { scripted: { npm: "@ai-sdk/openai-compatible", name: "Scripted", options, models } },
  };
}
