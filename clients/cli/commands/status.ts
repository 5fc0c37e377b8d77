import type { Command } from "commander";
import { type Cli, leaf } from "../cli.js";
import { facts } from "../render.js";

/** `clankie status`. */
export function addStatus(program: Command, cli: Cli): void {
  leaf(program, "status", "show the service's version, uptime, counts and store", ["status", "status --json"]).action(
    (_options: unknown, command: Command) =>
      cli.remote(command, async (session) => {
        const status = await session.call("service_status", {});
        const { counts, store } = status;
        session.console.result(status, (style) =>
          facts(
            [
              ["version", status.version],
              ["started", status.startedAt],
              ["uptime", `${Math.floor(status.uptimeSeconds)} s`],
              ["data directory", status.dataDirectory],
              ["store", `${store.kind}, ${store.state}, ${store.commits} commits`],
              ...store.damage.map((words) => ["damage", words] as const),
              ["conversations", `${counts.conversations} (${counts.activeConversations} active)`],
              ["questions waiting", String(counts.pendingQuestions)],
              ["runs", String(counts.activeRuns)],
              ["connections", String(counts.connections)],
            ],
            style,
          ),
        );
        return undefined;
      }),
  );
}
