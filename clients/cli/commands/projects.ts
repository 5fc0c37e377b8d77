import { resolve } from "node:path";
import type { Command } from "commander";
import { type Cli, group, leaf } from "../cli.js";
import { facts, table } from "../render.js";

/** `clankie projects …`. */
export function addProjects(program: Command, cli: Cli): void {
  const projects = group(program, "projects", "the registered directories and what belongs to them");
  const here = (directory: string): string => resolve(cli.surroundings.cwd(), directory);

  leaf(projects, "add", "register a directory as a project", ["projects add . --name site"])
    .argument("<dir>", "the directory")
    .option("--name <name>", "its name (default: the directory's)")
    .action((directory: string, options: { readonly name?: string }, command: Command) =>
      cli.remote(command, async (session) => {
        const { name } = options;
        const result = await session.call("project_add", {
          path: here(directory),
          ...(name !== undefined && { name }),
        });
        session.console.result(result, (style) =>
          facts(
            [
              ["project", result.project.projectId],
              ["name", result.project.name],
              ["path", result.project.path],
            ],
            style,
          ),
        );
        return undefined;
      }),
    );

  leaf(projects, "list", "list the projects").action((_options: unknown, command: Command) =>
    cli.remote(command, async (session) => {
      const result = await session.call("project_list", {});
      session.console.result(result, (style) =>
        result.projects.length === 0
          ? "No project is registered."
          : table(
              ["PROJECT", "NAME", "PATH"],
              result.projects.map((one) => [one.projectId, one.name, one.path]),
              style,
            ),
      );
      return undefined;
    }),
  );

  leaf(projects, "remove", "take a project off the register; its directory stays as it is")
    .argument("<project>", "its id")
    .action((projectId: string, _options: unknown, command: Command) =>
      cli.remote(command, async (session) => {
        const result = await session.call("project_remove", { projectId });
        session.console.result(result, (style) => `${style.plain(projectId)} is not registered any more.`);
        return undefined;
      }),
    );

  leaf(projects, "membership", "say which project a directory belongs to: its id, unassigned or unknown")
    .argument("<dir>", "the directory")
    .action((directory: string, _options: unknown, command: Command) =>
      cli.remote(command, async (session) => {
        const result = await session.call("project_membership", { path: here(directory) });
        session.console.result(result, (style) =>
          facts(
            [
              ["workspace", result.workspace],
              ["project", result.project],
            ],
            style,
          ),
        );
        return undefined;
      }),
    );
}
