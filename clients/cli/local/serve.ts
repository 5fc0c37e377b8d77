import { type Command, Option } from "commander";
import { BOUNDS } from "../../../protocol/bounds.js";
import type { RunningService } from "../../../server/main.js";
import type { Cli } from "../cli.js";
import type { Console } from "../console.js";
import { EXIT_HELP } from "../exit.js";
import { dataDirectory } from "../settings.js";
import { wholeNumber } from "../values.js";
import { endAsked, startService } from "./service.js";

interface ServeFlags {
  readonly data?: string;
  readonly host: string;
  readonly port: number;
  readonly retainEvents: number;
  readonly allowOrigin: readonly string[];
  readonly allowHost: readonly string[];
  readonly runTimeout: number;
  readonly logLevel: string;
}

const collect = (value: string, before: readonly string[]): readonly string[] => [...before, value];

/** `clankie serve`. Contract section 9. */
export function addServe(program: Command, cli: Cli): void {
  program
    .command("serve")
    .summary("run the service in the foreground")
    .description("run the service in the foreground, until SIGINT or SIGTERM")
    .option("--data <dir>", "where everything is kept (CLANKIE_DATA)")
    .option("--host <address>", "the address to listen on", "127.0.0.1")
    .option("--port <number>", "the port; 0 takes a free one", wholeNumber(0, 65_535), 7420)
    .option("--retain-events <n>", "events kept per conversation", wholeNumber(1, 1_000_000), BOUNDS.retainedEvents)
    .option("--allow-origin <url>", "a further origin whose pages may connect (repeatable)", collect, [])
    .option("--allow-host <name>", "a further name that the service has (repeatable)", collect, [])
    .option("--run-timeout <seconds>", "time limit of an agent's run", wholeNumber(1, 2_000_000), 3_600)
    .addOption(
      new Option("--log-level <level>", "how much goes to the log on standard error")
        .choices(["trace", "debug", "info", "warn", "error", "silent"])
        .default("info"),
    )
    .option("--json", 'print {"url","data","operatorTokenFile","pid"} as the first line once it is ready')
    .addHelpText(
      "after",
      `
Examples:
  clankie serve
  clankie serve --port 0 --data ./data --json
  clankie serve --host 0.0.0.0 --allow-host box.example.net   (docs/devices.md says what this exposes)

${EXIT_HELP}`,
    )
    .action(async (flags: ServeFlags, command: Command) => {
      const { json, data }: { json?: boolean; data?: string } = command.optsWithGlobals();
      await runServe(flags, dataDirectory(data, cli.surroundings.env), cli.console(json));
    });
}

async function runServe(flags: ServeFlags, data: string, console: Console): Promise<void> {
  const ended = endAsked();
  const service = await startService({
    dataDirectory: data,
    host: flags.host,
    port: flags.port,
    retainEvents: flags.retainEvents,
    allowOrigins: flags.allowOrigin,
    allowHosts: flags.allowHost,
    runTimeoutMs: flags.runTimeout * 1_000,
    logLevel: flags.logLevel,
    progress: recoveryProgress(console),
  });
  const { url, operatorTokenFile, pid } = service;
  console.item({ url, data: service.dataDirectory, operatorTokenFile, pid }, (style) =>
    [
      `${style.bold(url)}  the service is ready; the Take Control page is at the same address`,
      `data:   ${style.plain(service.dataDirectory)}`,
      `token:  ${style.plain(operatorTokenFile)}`,
    ].join("\n"),
  );
  noteRecovery(service, console);
  await ended;
  console.note("stopping: what runs is ended");
  await service.stop();
}

/** Says what the last end of the service left behind, and what became of it. Contract section 8. */
export function noteRecovery({ recovered, damage }: RunningService, console: Console): void {
  for (const { conversationId, title, requestId, runIds } of recovered) {
    const question = requestId === undefined ? [] : [`question ${requestId} was pending and is cancelled`];
    const runs =
      runIds.length === 0 ? [] : [`${runIds.length} run(s) had not ended: they have failed and never start again`];
    console.note(`after the restart: ${title} (${conversationId}): ${[...question, ...runs].join("; ")}`);
  }
  for (const words of damage) console.note(`DAMAGED: ${words}; stop the service and run: clankie doctor`);
}

/** A long recovery says how far it is. */
export function recoveryProgress(console: Console): (done: number, of: number) => void {
  return (done, of) => {
    if (of >= 500 && (done === of || done % 500 === 0)) console.note(`recovering: ${done} of ${of} conversations`);
  };
}
