import { cells } from "../../clients/tui/layout.js";
import type { Happening } from "../../clients/tui/session.js";
import { type Command, cardKey, initial, type State, shownCard } from "../../clients/tui/state.js";
import { update } from "../../clients/tui/update.js";
import { type Frame, view } from "../../clients/tui/view.js";
import type { ConversationEvent } from "../../protocol/events.js";
import type { Question, QuestionResult } from "../../protocol/question.js";
import type { ConversationSnapshot, Inbox } from "../../protocol/snapshot.js";

export const CONVERSATION = "c-1";
export const uuid = (n: number): string => `00000000-0000-4000-8000-${String(n).padStart(12, "0")}`;
const INCARNATION = uuid(900);
const START = Date.parse("2026-05-01T10:00:00.000Z");

export function question(n: number, changes: Partial<Question> = {}): Question {
  return {
    requestId: uuid(n),
    incarnationId: INCARNATION,
    conversationId: CONVERSATION,
    workspace: "/home/o/project",
    purpose: "preference",
    kind: "choice",
    prompt: `Question number ${n}?`,
    options: [
      { optionId: uuid(n * 10 + 1), label: "First", description: "the one on top" },
      { optionId: uuid(n * 10 + 2), label: "Second" },
    ],
    allowFreeform: true,
    createdAt: "2026-05-01T09:59:00.000Z",
    originRunId: "run-1",
    status: "pending",
    ...changes,
  };
}

export const receipt = (asked: Question, changes: Partial<Question> = {}): Question => ({
  ...asked,
  status: "submitted",
  resolvedAt: "2026-05-01T10:00:05.000Z",
  resolvedBy: { kind: "device", id: "phone" },
  answer: { kind: "choice", optionId: asked.options[1]?.optionId ?? uuid(1) },
  continuation: { runId: "run-2", state: "accepted" },
  ...changes,
});

export const cancelled = (asked: Question): Question => ({
  ...asked,
  status: "cancelled",
  resolvedAt: "2026-05-01T10:00:05.000Z",
  resolvedBy: { kind: "operator", id: "operator" },
  reason: "cancelled_by_owner",
});

export function snapshot(changes: Partial<ConversationSnapshot> = {}): ConversationSnapshot {
  return {
    schemaVersion: 1,
    conversationId: CONVERSATION,
    title: "Project",
    scope: { kind: "workspace", workspaceId: "/home/o/project" },
    driver: { kind: "service" },
    incarnationId: INCARNATION,
    revision: 4,
    safeCursor: "0004",
    eligible: true,
    question: null,
    receipts: {},
    activeRun: null,
    queuedRuns: 0,
    ...changes,
  };
}

export const ready = (asked: Question, revision = 4): QuestionResult => ({
  status: "ready",
  conversationId: asked.conversationId,
  incarnationId: asked.incarnationId,
  revision,
  safeCursor: "0004",
  question: asked,
});

export const inboxOf = (...questions: readonly Question[]): Inbox =>
  Object.fromEntries(
    questions.map((asked) => [
      asked.requestId,
      { conversationId: asked.conversationId, title: "Project", question: asked },
    ]),
  );

export const message = (text: string, changes: Partial<ConversationEvent> = {}): ConversationEvent =>
  ({
    schemaVersion: 1,
    conversationId: CONVERSATION,
    cursor: "0005",
    revision: 4,
    occurredAt: "2026-05-01T10:00:00.000Z",
    type: "message",
    role: "agent",
    text,
    streaming: false,
    ...changes,
  }) as ConversationEvent;

/** What a screen shows, row by row, as a terminal would put it. */
export function screenOf(frame: Frame): readonly string[] {
  return frame.rows.map((pieces) =>
    pieces.reduce((row, { at, line }) => {
      const padded = row + " ".repeat(Math.max(0, at - cells(row)));
      return padded + line.map(({ text }) => text).join("");
    }, ""),
  );
}

/** Somebody in front of the terminal: a state, a clock that moves by hand, and what the shell would have been told. */
export class Sitting {
  state: State;
  at = START;
  commands: Command[] = [];

  constructor(columns = 80, rows = 24, conversation: string | null = CONVERSATION) {
    this.state = initial({ now: this.at, columns, rows, bell: true, conversation });
  }

  /** Connected, one conversation open, what has been painted is known. */
  static open(columns = 80, rows = 24, first: ConversationSnapshot = snapshot()): Sitting {
    const sitting = new Sitting(columns, rows);
    sitting.connect(first);
    return sitting;
  }

  connect(first: ConversationSnapshot = snapshot()): void {
    this.tell({ type: "link", connection: { kind: "connected" } });
    this.tell({ type: "principal", principal: { kind: "operator", id: "operator" } });
    this.tell({ type: "inbox", inbox: first.question === null ? {} : inboxOf(first.question) });
    this.tell({ type: "conversations", conversations: [first] });
    this.tell({ type: "history", conversationId: CONVERSATION, events: [], gap: false });
    this.tell({ type: "snapshot", conversationId: CONVERSATION, snapshot: first });
  }

  tell(happening: Happening): void {
    const { state, commands } = update(this.state, { ...happening, at: this.at } as Parameters<typeof update>[1]);
    this.state = state;
    this.commands.push(...commands);
  }

  wait(milliseconds: number): void {
    this.at += milliseconds;
    this.tell({ type: "tick" });
  }

  paint(): void {
    const card = shownCard(this.state);
    this.tell({ type: "painted", cardKey: card === null ? null : cardKey(card) });
  }

  key(...names: readonly string[]): void {
    for (const name of names) this.tell({ type: "key", name });
  }

  type(text: string): void {
    for (const character of text) {
      this.at += 5;
      this.tell({ type: "text", text: character });
    }
    this.at += 50;
  }

  paste(text: string): void {
    this.tell({ type: "paste", text });
  }

  /** Types a line and presses Enter. */
  line(text: string): void {
    this.type(text);
    this.key("ENTER");
  }

  /** `/question`, its reply, and a moment to look at it. */
  read(asked: Question, revision = 4): void {
    this.line("/question");
    this.reply(ready(asked, revision));
    this.look();
  }

  look(): void {
    this.paint();
    this.wait(1_000);
  }

  reply(result: QuestionResult): void {
    const reading = this.taken("readQuestion").at(-1);
    if (reading === undefined) throw new Error("no question was asked for");
    this.tell({
      type: "questionRead",
      conversationId: reading.conversationId,
      sequence: reading.sequence,
      outcome: { kind: "result", result },
    });
  }

  /** The commands of one kind that the shell was given. */
  taken<T extends Command["type"]>(type: T): readonly (Command & { readonly type: T })[] {
    return this.commands.filter((command): command is Command & { readonly type: T } => command.type === type);
  }

  get screen(): string {
    return screenOf(view(this.state)).join("\n");
  }

  get input(): string {
    return this.state.editor.text;
  }

  get notice(): string {
    return this.state.notice?.text ?? "";
  }
}
