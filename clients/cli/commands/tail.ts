import type { Command } from "commander";
import type { ConversationEvent } from "../../../protocol/events.js";
import type { LinkState } from "../../link.js";
import { type Cli, leaf } from "../cli.js";
import type { Exit } from "../exit.js";
import { everyEvent } from "../pages.js";
import { eventLine } from "../render.js";
import type { Session } from "../session.js";

/** `clankie conversations tail`. */
export function addTail(parent: Command, cli: Cli): void {
  leaf(parent, "tail", "print the retained events of a conversation and, with --follow, those that come", [
    "conversations tail CONVERSATION",
    'conversations tail CONVERSATION --follow --json   (one event a line; {"gap":true,…} where some are missing)',
  ])
    .argument("<conversation>", "its id")
    .option("--after <cursor>", "only the events after this one")
    .option("--follow", "go on as events come, until it is interrupted")
    .action(
      (conversationId: string, options: { readonly after?: string; readonly follow?: boolean }, command: Command) =>
        cli.remote(command, async (session) => {
          const page = await everyEvent(session, conversationId, options.after);
          if (options.follow === true) return follow(session, conversationId, page);
          if (page.gap) noteGap(session);
          session.console.result(page, (style) => page.events.map((event) => eventLine(event, style)).join("\n"));
          return undefined;
        }),
    );
}

function noteGap({ console }: Session): void {
  console.note("events before these have left the retained history");
}

async function follow(
  session: Session,
  conversationId: string,
  page: {
    readonly events: readonly ConversationEvent[];
    readonly next: string;
    readonly retainedFrom: string;
    readonly gap: boolean;
  },
): Promise<Exit | undefined> {
  const { console } = session;
  const print = (event: ConversationEvent): void => console.item(event, (style) => eventLine(event, style));
  const gap = (retainedFrom: string): void => {
    noteGap(session);
    if (console.json) console.item({ gap: true, retainedFrom }, () => "");
  };
  if (page.gap) gap(page.retainedFrom);
  for (const event of page.events) print(event);
  const link = await session.link();
  await new Promise<void>((resolve, reject) => {
    console.onGone(resolve);
    const look = (state: LinkState): void => {
      if (state.kind === "reconnecting" && state.attempt === 1) console.note(`${state.detail}; connecting again`);
      if (state.kind === "closed") reject(session.refused(state.reason));
    };
    link.onState(look);
    look(link.state);
    link.watchConversation(conversationId, { events: true, after: page.next }, (update) => {
      switch (update.kind) {
        case "event":
          return print(update.event);
        case "gap":
          return gap(update.retainedFrom);
        case "failed":
          return reject(session.failureOf("conversation_subscribe", update.error));
        case "snapshot":
        case "question":
        case "stale":
          return undefined;
        default:
          return update satisfies never;
      }
    });
  });
  return undefined;
}
