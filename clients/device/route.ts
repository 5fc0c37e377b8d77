import type { Route } from "./state.js";

/** What the part of the address after `#` says: a place in the page, or a one-time code to pair with. */
export function readFragment(fragment: string): Route | { readonly kind: "code"; readonly code: string } {
  const text = fragment.replace(/^#/, "");
  if (text !== "" && !text.startsWith("/")) return { kind: "code", code: decoded(text).slice(0, 64) };
  const [place, conversationId, requestId] = text.split("/").slice(1).map(decoded);
  if (place === "question" && conversationId && requestId) return { kind: "question", conversationId, requestId };
  if (place === "conversation" && conversationId) return { kind: "conversation", conversationId };
  if (place === "conversations") return { kind: "conversations" };
  if (place === "device") return { kind: "device" };
  return { kind: "inbox" };
}

export const questionFragment = (conversationId: string, requestId: string): string =>
  `#/question/${encodeURIComponent(conversationId)}/${encodeURIComponent(requestId)}`;

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
