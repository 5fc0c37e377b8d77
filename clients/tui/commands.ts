/** What a submitted line asks for. Ordinary text is a message and never an answer. */
export type Intent =
  | { readonly kind: "message"; readonly text: string }
  | { readonly kind: "question"; readonly action: "read" | "list" | "cancel" }
  | { readonly kind: "answer"; readonly option: number }
  | { readonly kind: "answerText"; readonly text: string }
  /** `/question text` with nothing behind it. */
  | { readonly kind: "answerMissing" }
  | { readonly kind: "open"; readonly which: string }
  | { readonly kind: "new"; readonly directory: string; readonly command: readonly string[] }
  | { readonly kind: "help" }
  | { readonly kind: "quit" }
  | { readonly kind: "invalid"; readonly say: string };

interface CommandHelp {
  readonly usage: string;
  readonly does: string;
}

/** Every command, in the order of the help page. */
export const COMMANDS: readonly CommandHelp[] = [
  { usage: "/question", does: "read the question that waits here; only then can it be answered" },
  { usage: "/question answer N", does: "choose option N of the question on screen" },
  { usage: "/question text WORDS", does: "answer the question on screen in your own words" },
  { usage: "/question cancel", does: "cancel the question on screen: the agent gets no answer" },
  { usage: "/question list", does: "everything that waits, in all conversations" },
  { usage: "/open [N | ID | TITLE]", does: "open a conversation; without one, show them all" },
  { usage: "/new [DIRECTORY] [-- COMMAND…]", does: "start a conversation in a directory (default: this one)" },
  { usage: "/help", does: "this page" },
  { usage: "/quit", does: "leave; nothing is cancelled" },
];

const invalid = (say: string): Intent => ({ kind: "invalid", say });

/**
 * Reads a submitted line. A line is a command only when it begins with `/`; a leading space makes it a message. A text
 * of several lines is never a command, but for `/question text`, whose answer may have as many lines as it likes.
 */
export function parse(input: string): Intent {
  if (!input.startsWith("/")) return { kind: "message", text: input };
  const text = /^\/question\s+text(?:\s([\s\S]*))?$/.exec(input);
  if (text !== null) {
    const words = (text[1] ?? "").trim();
    return words === "" ? { kind: "answerMissing" } : { kind: "answerText", text: words };
  }
  const entered = input.trim();
  if (entered.includes("\n")) {
    return invalid("A command has one line; nothing was run. To send this as a message, put a space before the /.");
  }
  const [name = "", ...words] = entered.split(/ +/);
  const rest = entered.slice(name.length).trim();
  switch (name) {
    case "/question":
      return parseQuestion(words);
    case "/open":
      return { kind: "open", which: rest };
    case "/new":
      return parseNew(rest);
    case "/help":
      return rest === "" ? { kind: "help" } : invalid("/help takes nothing behind it.");
    case "/quit":
      return rest === "" ? { kind: "quit" } : invalid("/quit takes nothing behind it.");
    default:
      return invalid(`There is no command ${name}. /help shows all; a space before the / sends it as a message.`);
  }
}

function parseQuestion(words: readonly string[]): Intent {
  const [action, ...more] = words;
  if (action === undefined) return { kind: "question", action: "read" };
  if (action === "answer") {
    const [number] = more;
    if (more.length !== 1 || number === undefined || !/^[1-9]\d?$/.test(number)) {
      return invalid("Say the number of one option: /question answer 1");
    }
    return { kind: "answer", option: Number(number) };
  }
  if (action === "list" || action === "cancel") {
    return more.length === 0 ? { kind: "question", action } : invalid(`/question ${action} takes nothing behind it.`);
  }
  if (more.length === 0 && /^[1-9]\d?$/.test(action)) {
    return invalid(`Nothing was sent. To choose option ${action}: /question answer ${action}`);
  }
  return invalid("There is /question, and /question answer N, text WORDS, cancel, list.");
}

function parseNew(rest: string): Intent {
  const [, directory = "", command] = /^(.*?)(?:(?:^| )-- (.+))?$/.exec(rest) ?? [];
  return {
    kind: "new",
    directory: directory.trim(),
    command: command === undefined ? [] : command.split(/ +/).filter((word) => word !== ""),
  };
}

/** Whether a text is on its way to be an answer or a cancellation: a draft of the question on screen. */
export const isQuestionDraft = (text: string): boolean => /^\/question\s+(answer|text|cancel)(\s|$)/.test(text);

/** What may stand behind a word, as far as the words can be completed. */
export interface CompletionContext {
  readonly options: number;
  readonly conversations: readonly { readonly number: number; readonly title: string }[];
}

/** Every line that what was typed can become; none where it is not the beginning of a command. */
export function candidates(typed: string, context: CompletionContext): readonly string[] {
  if (!typed.startsWith("/") || typed.includes("\n")) return [];
  const all = [
    "/question",
    ...Array.from({ length: context.options }, (_, index) => `/question answer ${index + 1}`),
    ...(context.options === 0 ? ["/question answer "] : []),
    "/question text ",
    "/question cancel",
    "/question list",
    "/open ",
    ...context.conversations.map(({ number }) => `/open ${number}`),
    "/new ",
    "/help",
    "/quit",
  ];
  return all.filter((candidate) => candidate.startsWith(typed) && candidate !== typed);
}

/** The longest line all candidates share, or the typed text where there is none. */
export function complete(typed: string, context: CompletionContext): string {
  const [first, ...others] = candidates(typed, context);
  if (first === undefined) return typed;
  let shared = first;
  for (const other of others) {
    while (!other.startsWith(shared)) shared = shared.slice(0, -1);
  }
  if (shared.length > typed.length) return shared;
  // `/question` is a command and the beginning of others: a space opens the way to those
  return others.length > 0 && [first, ...others].every((other) => other.startsWith(`${typed} `)) ? `${typed} ` : typed;
}
