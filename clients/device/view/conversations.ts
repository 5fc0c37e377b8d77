import { h, type Node } from "../html.js";
import type { Paired, State } from "../state.js";
import { conversationWords } from "./words.js";

/** Every conversation, those with a waiting question first. */
export function conversationsView(_state: State, session: Paired, chosen: string | undefined): Node {
  const list = session.conversations;
  return h(
    "section",
    { key: "conversations", class: "list", "aria-labelledby": "conversations-heading" },
    h("h1", { id: "conversations-heading", tabindex: -1 }, "Conversations"),
    list === undefined
      ? h("p", { key: "unread", class: "quiet" }, session.connection.kind === "lost" ? "Not read yet." : "Reading…")
      : list.conversations.length === 0
        ? h("p", { key: "none", class: "quiet" }, "There is no conversation yet.")
        : h(
            "ul",
            { key: "some", class: "rows" },
            ...list.conversations
              .toSorted((a, b) => Number(b.question !== null) - Number(a.question !== null))
              .map((snapshot) =>
                h(
                  "li",
                  { key: snapshot.conversationId },
                  h(
                    "a",
                    {
                      class: "row",
                      href: `#/conversation/${encodeURIComponent(snapshot.conversationId)}`,
                      "aria-current": snapshot.conversationId === chosen ? "true" : undefined,
                    },
                    h(
                      "span",
                      { class: "row-head" },
                      h("span", { class: "row-title", dir: "auto" }, snapshot.title),
                      h(
                        "span",
                        { class: snapshot.question === null ? "row-when" : "tag tag-waiting" },
                        conversationWords(snapshot),
                      ),
                    ),
                    h("span", { class: "row-path" }, h("bdi", {}, snapshot.scope.workspaceId ?? snapshot.scope.kind)),
                  ),
                ),
              ),
          ),
    list?.next !== undefined &&
      h(
        "button",
        {
          key: "more",
          class: "secondary",
          type: "button",
          disabled: list.loading,
          on: { click: () => ({ type: "more_conversations_pressed" }) },
        },
        "Show more",
      ),
  );
}
