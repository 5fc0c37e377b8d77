import type { HistoryRecord, Violation, ViolationKind } from "./records.js";

/** A request with what became of it. `open`: nothing is known, it may have happened or may yet. */
export interface Operation {
  readonly op: number;
  readonly client: string;
  readonly method: string;
  readonly params: Readonly<Record<string, unknown>>;
  readonly invokedAt: number;
  /** Index of the reply; Infinity where there was none. */
  endedAt: number;
  outcome:
    | { readonly kind: "open" }
    | { readonly kind: "result"; readonly result: unknown }
    | { readonly kind: "error"; readonly code: string; readonly reason?: string };
}

/** The members of a question that the checker reads. */
export interface QuestionSeen {
  readonly requestId: string;
  readonly conversationId: string;
  readonly status: "pending" | "submitted" | "cancelled";
  readonly resolvedAt?: string;
  readonly answer?: AnswerSeen;
  readonly continuation?: { readonly runId: string; readonly state: string; readonly reasonCode?: string };
}

export type AnswerSeen = { readonly kind: string; readonly optionId?: string; readonly text?: string };

export interface SnapshotSeen {
  readonly conversationId: string;
  readonly incarnationId: string;
  readonly revision: number;
  readonly safeCursor: string;
  readonly question?: QuestionSeen | null;
  readonly receipts: Readonly<Record<string, QuestionSeen>>;
  readonly activeRun?: { readonly runId: string } | null;
}

export interface QuestionResultSeen {
  readonly status: "ready" | "resolved" | "revision_conflict" | "refused";
  readonly conversationId: string;
  readonly incarnationId?: string;
  readonly revision?: number;
  readonly safeCursor?: string;
  readonly question?: QuestionSeen;
  readonly reason?: string;
}

export interface EventSeen {
  readonly conversationId: string;
  readonly cursor: string;
  readonly revision: number;
  readonly type: string;
  readonly requestId?: string;
  readonly runId?: string;
  readonly phase?: string;
}

export interface PageSeen {
  readonly events: readonly EventSeen[];
  readonly retainedFrom: string;
  readonly gap: boolean;
}

/** Everything a history says, sorted out once. */
export interface History {
  readonly records: readonly HistoryRecord[];
  readonly operations: readonly Operation[];
  readonly byOp: ReadonlyMap<number, Operation>;
  /** Indices of the `start` records. */
  readonly starts: readonly number[];
}

export class Findings {
  readonly violations: Violation[] = [];

  add(kind: ViolationKind, at: number, message: string): void {
    this.violations.push({ kind, at, message });
  }
}

export function historyOf(records: readonly HistoryRecord[], findings: Findings): History {
  const byOp = new Map<number, Operation>();
  const starts: number[] = [];
  records.forEach((record, at) => {
    switch (record.type) {
      case "start":
        starts.push(at);
        return;
      case "invoke": {
        const { op, client, method, params } = record;
        if (byOp.has(op)) findings.add("malformed", at, `op ${op} was invoked before`);
        byOp.set(op, {
          op,
          client,
          method,
          params,
          invokedAt: at,
          endedAt: Number.POSITIVE_INFINITY,
          outcome: { kind: "open" },
        });
        return;
      }
      case "return":
      case "error": {
        const operation = byOp.get(record.op);
        if (operation === undefined || operation.outcome.kind !== "open") {
          findings.add("malformed", at, `op ${record.op} ended without being under way`);
          return;
        }
        operation.endedAt = at;
        operation.outcome =
          record.type === "return"
            ? { kind: "result", result: record.result }
            : {
                kind: "error",
                code: record.code,
                ...(record.reason !== undefined && { reason: record.reason }),
              };
        return;
      }
      case "notify":
      case "closed":
      case "run":
      case "settled":
        return;
      default:
        record satisfies never;
    }
  });
  return { records, operations: [...byOp.values()], byOp, starts };
}

/** The result of an operation that returned one. The casts below are the only ones: a recorder writes what was sent. */
const resultOf = (operation: Operation): unknown =>
  operation.outcome.kind === "result" ? operation.outcome.result : undefined;

const QUESTION_METHODS = new Set(["request_user_input", "input_get", "input_answer", "input_cancel"]);

export function questionResultOf(operation: Operation): QuestionResultSeen | undefined {
  return QUESTION_METHODS.has(operation.method) ? (resultOf(operation) as QuestionResultSeen | undefined) : undefined;
}

export function snapshotsOf(operation: Operation): readonly SnapshotSeen[] {
  const result = resultOf(operation);
  if (typeof result !== "object" || result === null) return [];
  if ("conversation" in result) return [result.conversation as SnapshotSeen];
  if (operation.method === "conversation_subscribe") return [(result as { snapshot: SnapshotSeen }).snapshot];
  if (operation.method === "conversation_list") {
    return (result as { conversations: readonly SnapshotSeen[] }).conversations;
  }
  return [];
}

/** Every question a result shows, wherever. */
export function questionsOf(operation: Operation): readonly QuestionSeen[] {
  const found: QuestionSeen[] = [];
  const single = questionResultOf(operation)?.question;
  if (single !== undefined) found.push(single);
  for (const snapshot of snapshotsOf(operation)) found.push(...questionsIn(snapshot));
  const result = resultOf(operation);
  if (operation.method === "input_list" && result !== undefined) {
    for (const { question } of (result as { questions: readonly QuestionResultSeen[] }).questions) {
      if (question !== undefined) found.push(question);
    }
  }
  if (operation.method === "inbox_subscribe" && result !== undefined) {
    const { inbox } = result as { inbox: Readonly<Record<string, { question: QuestionSeen }>> };
    found.push(...Object.values(inbox).map(({ question }) => question));
  }
  return found;
}

export const questionsIn = (snapshot: SnapshotSeen): readonly QuestionSeen[] => [
  ...Object.values(snapshot.receipts ?? {}),
  ...(snapshot.question ? [snapshot.question] : []),
];

export function pageOf(operation: Operation): PageSeen | undefined {
  return operation.method === "conversation_tail" ? (resultOf(operation) as PageSeen | undefined) : undefined;
}

export const fieldOf = (value: unknown, name: string): unknown =>
  typeof value === "object" && value !== null && name in value
    ? (value as Readonly<Record<string, unknown>>)[name]
    : undefined;

export const returned = (operation: Operation, name: string): unknown => fieldOf(resultOf(operation), name);

/** JSON with sorted members, in which absent and null are the same (contract section 5). */
export function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value ?? null);
  const members = Object.entries(value)
    .filter(([, member]) => member !== null && member !== undefined)
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .map(([name, member]) => `${JSON.stringify(name)}:${canonical(member)}`);
  return `{${members.join(",")}}`;
}

/** The greatest of what was known up to an index; indices are added in order. */
export class Known<T extends number | string> {
  readonly #at: number[] = [];
  readonly #greatest: T[] = [];

  add(at: number, value: T): void {
    const last = this.#greatest.at(-1);
    if (last !== undefined && last >= value) return;
    this.#at.push(at);
    this.#greatest.push(value);
  }

  before(at: number): T | undefined {
    let low = 0;
    let high = this.#at.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#at[middle] ?? 0) < at) low = middle + 1;
      else high = middle;
    }
    return this.#greatest[low - 1];
  }
}

/** A value for each key, made when it is first asked for. */
export function entry<K, V>(map: Map<K, V>, key: K, make: () => V): V {
  const known = map.get(key);
  if (known !== undefined) return known;
  const made = make();
  map.set(key, made);
  return made;
}
