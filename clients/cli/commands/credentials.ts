import type { Command } from "commander";
import { type Cli, group, leaf } from "../cli.js";
import { usage } from "../exit.js";
import { facts, table } from "../render.js";
import { oneOf, wholeNumber } from "../values.js";

/** `clankie credentials …`. */
export function addCredentials(program: Command, cli: Cli): void {
  const credentials = group(program, "credentials", "list, rotate, revoke and issue tokens");
  addList(credentials, cli);
  addRotate(credentials, cli);
  addRevoke(credentials, cli);
  addIssue(credentials, cli);
}

function addList(parent: Command, cli: Cli): void {
  leaf(parent, "list", "list the credentials, never their tokens").action((_options: unknown, command: Command) =>
    cli.remote(command, async (session) => {
      const result = await session.call("credential_list", {});
      session.console.result(result, (style) =>
        table(
          ["CREDENTIAL", "KIND", "CONVERSATION", "ISSUED", "STATE"],
          result.credentials.map((one) => [
            one.credentialId,
            one.kind,
            one.conversationId ?? "-",
            one.createdAt,
            one.revokedAt !== undefined
              ? `revoked ${one.revokedAt}`
              : one.expiresAt !== undefined
                ? `until ${one.expiresAt}`
                : "good",
          ]),
          style,
        ),
      );
      return undefined;
    }),
  );
}

function addRotate(parent: Command, cli: Cli): void {
  leaf(parent, "rotate", "make a new token for a credential; the old one is refused from now on", [
    "credentials rotate captain",
  ])
    .argument("<name>", "operator, captain or a credential's id")
    .action((credentialId: string, _options: unknown, command: Command) =>
      cli.remote(command, async (session) => {
        const result = await session.call("credential_rotate", { credentialId });
        session.console.result(result, (style) => style.plain(result.token));
        session.console.note("this token is shown only once");
        return undefined;
      }),
    );
}

function addRevoke(parent: Command, cli: Cli): void {
  leaf(parent, "revoke", "take a credential's rights away for good; questions asked under it are cancelled")
    .argument("<name>", "captain or a credential's id")
    .action((credentialId: string, _options: unknown, command: Command) =>
      cli.remote(command, async (session) => {
        const result = await session.call("credential_revoke", { credentialId });
        session.console.result(result, (style) => `${style.plain(credentialId)} is revoked.`);
        return undefined;
      }),
    );
}

function addIssue(parent: Command, cli: Cli): void {
  leaf(parent, "issue", "make a credential of its own for a captain, or for the agent of one conversation", [
    "credentials issue captain --expires-in 86400",
    "credentials issue agent --conversation CONVERSATION",
  ])
    .argument("<kind>", "captain or agent", oneOf("captain", "agent"))
    .option("--conversation <id>", "the conversation of the agent")
    .option("--expires-in <seconds>", "after so long it is refused", wholeNumber(1))
    .action(
      (
        kind: "captain" | "agent",
        options: { readonly conversation?: string; readonly expiresIn?: number },
        command: Command,
      ) =>
        cli.remote(command, async (session) => {
          const { conversation, expiresIn } = options;
          const expiry = expiresIn === undefined ? {} : { expiresInSeconds: expiresIn };
          if ((kind === "agent") !== (conversation !== undefined))
            throw usage("--conversation ID goes with agent, and only with agent");
          const result = await session.call(
            "credential_issue",
            kind === "agent" && conversation !== undefined
              ? { kind, conversationId: conversation, ...expiry }
              : { kind: "captain", ...expiry },
          );
          session.console.result(result, (style) => style.plain(result.token));
          const about = [
            ["credential", result.credentialId],
            ["kind", result.kind],
            ["expires", result.expiresAt],
          ] as const;
          session.console.note(`${facts(about, PLAIN)}\nthis token is shown only once`);
          return undefined;
        }),
    );
}

const PLAIN = { bold: String, dim: String, plain: String };
