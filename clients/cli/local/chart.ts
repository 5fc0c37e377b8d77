import { type Command, Option } from "commander";
import { definitionJson } from "../../../machines/chart/definition.js";
import { chartOf, liveText, marksOf } from "../../../machines/chart/live.js";
import { NO_MARKS } from "../../../machines/chart/marks.js";
import { mermaid } from "../../../machines/chart/mermaid.js";
import { svg } from "../../../machines/chart/svg.js";
import { chartText } from "../../../machines/chart/text.js";
import type { ConversationSnapshot } from "../../../protocol/snapshot.js";
import { safeText } from "../../text.js";
import { type Cli, leaf } from "../cli.js";

export type ChartFormat = "mermaid" | "svg" | "json" | "text";

export interface ChartOptions {
  /** `text` where none is asked for. */
  readonly format?: ChartFormat;
  /** Marks where this conversation is, and what may happen next and for whom. Mermaid has no marks. */
  readonly conversation?: ConversationSnapshot;
  /** Standard output where none is given. */
  readonly write?: (text: string) => void;
}

interface ChartFlags {
  readonly format?: ChartFormat;
  readonly conversation?: string;
}

/** `clankie chart`. Contract section 9. Only `--conversation` needs a service. */
export function addChart(program: Command, cli: Cli): void {
  leaf(program, "chart", "show the state chart that the service runs on", [
    "chart",
    "chart --format svg > chart.svg",
    "chart --conversation ID",
  ])
    .addOption(new Option("--format <format>", "how (default: text)").choices(["mermaid", "svg", "json", "text"]))
    .option("--conversation <id>", "mark where it is, and say what may happen next and from whom")
    .action(async ({ format, conversation }: ChartFlags, command: Command) => {
      const { json }: { json?: boolean } = command.optsWithGlobals();
      const wanted = json === true ? "json" : (format ?? "text");
      const write = (text: string): void =>
        void cli.surroundings.stdout.write(wanted === "text" ? safeText(text) : text);
      if (conversation === undefined) {
        await runChart({ format: wanted, write });
        return;
      }
      await cli.remote(command, async (session) => {
        const shown = await session.call("conversation_show", { conversationId: conversation });
        await runChart({ format: wanted, conversation: shown.conversation, write });
        return undefined;
      });
    });
}

/** `clankie chart`: the chart of the machine in this very program. Contract section 9. Returns the exit status. */
export async function runChart(options: ChartOptions = {}): Promise<number> {
  const write = options.write ?? ((text: string) => void process.stdout.write(text));
  write(rendered(options.format ?? "text", options.conversation));
  return 0;
}

function rendered(format: ChartFormat, conversation: ConversationSnapshot | undefined): string {
  const live = conversation && chartOf(conversation);
  const marks = live ? marksOf(live) : NO_MARKS;
  switch (format) {
    case "mermaid":
      return mermaid();
    case "svg":
      return svg(marks);
    case "json":
      return live ? `${JSON.stringify(live, null, 2)}\n` : definitionJson();
    case "text":
      return live ? `${liveText(live)}\n${chartText(marks)}` : chartText(marks);
    default:
      return format satisfies never;
  }
}
