import type { Commit } from "../../server/store/port.js";
import { canonical } from "../history/operations.js";

/**
 * What is durable, seen at the disk, and so what may be said: a question, a receipt or an event that a client is shown
 * has to have been durable first, exactly as it is shown (contract 6.9, 8).
 */
export class Ledger {
  readonly #questions = new Set<string>();
  readonly #events = new Set<string>();
  /** Credentials that are durably revoked. */
  readonly #revoked = new Set<string>();
  readonly faults: string[] = [];

  written({ puts }: Commit): void {
    const documents = puts.map(({ key, value }) => ({ key, document: parsed(value) }));
    for (const { key, document } of documents) {
      if (isObject(document) && typeof document["revokedAt"] === "string") this.#revoked.add(String(document["id"]));
      if (key.startsWith("event/")) this.#events.add(canonical(document));
      walk(document, (value) => {
        if (!isQuestion(value)) return;
        const text = canonical(value);
        if (this.#questions.has(text)) return;
        this.#questions.add(text);
        this.#judge(value);
      });
    }
  }

  /** Looks at a frame that a client gets. */
  shown(frame: unknown): void {
    walk(frame, (value) => {
      if (isQuestion(value) && !this.#questions.has(canonical(value))) {
        this.faults.push(`shown before it was durable: ${canonical(value)}`);
      }
      if (isEvent(value) && !this.#events.has(canonical(value))) {
        this.faults.push(`told before it was durable: ${canonical(value)}`);
      }
    });
  }

  /** No answer becomes durable after its responder's revocation did (contract 6.1). */
  #judge(question: Readonly<Record<string, unknown>>): void {
    const { resolvedBy, status, continuation } = question;
    if (status !== "submitted" || !isObject(resolvedBy) || !isObject(continuation)) return;
    if (continuation["state"] === "accepted" && this.#revoked.has(String(resolvedBy["id"]))) {
      this.faults.push(`answered by one who was revoked: ${canonical(question)}`);
    }
  }
}

type Members = Readonly<Record<string, unknown>>;

const isObject = (value: unknown): value is Members =>
  typeof value === "object" && value !== null && !Array.isArray(value);

const isQuestion = (value: Members): boolean =>
  typeof value["requestId"] === "string" && typeof value["prompt"] === "string" && typeof value["status"] === "string";

const isEvent = (value: Members): boolean =>
  typeof value["cursor"] === "string" && typeof value["occurredAt"] === "string";

function walk(value: unknown, visit: (value: Members) => void): void {
  if (Array.isArray(value)) for (const each of value) walk(each, visit);
  if (!isObject(value)) return;
  visit(value);
  for (const each of Object.values(value)) walk(each, visit);
}

function parsed(value: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder().decode(value));
  } catch {
    return undefined;
  }
}
