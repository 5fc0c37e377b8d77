import type { Result } from "../../protocol/operations.js";
import type { Session } from "./session.js";

/** Reads every page of a list, one after the other. */
export async function everyPage<M extends "conversation_list" | "input_list">(
  read: (after: { readonly after?: string }) => Promise<Result<M>>,
): Promise<readonly Result<M>[]> {
  const pages = [await read({})];
  for (let next = pages[0]?.next; next !== undefined; ) {
    const page = await read({ after: next });
    pages.push(page);
    next = page.next;
  }
  return pages;
}

/** The retained events after a cursor, as one page. */
export async function everyEvent(
  session: Session,
  conversationId: string,
  after: string | undefined,
): Promise<Result<"conversation_tail">> {
  const limit = 500;
  let page = await session.call("conversation_tail", { conversationId, limit, ...(after !== undefined && { after }) });
  const first = page;
  const events = [...page.events];
  while (page.events.length > 0) {
    page = await session.call("conversation_tail", { conversationId, limit, after: page.next });
    events.push(...page.events);
  }
  return { ...first, events, next: page.next };
}
