import type { QuestionResult } from "../../protocol/question.js";
import type { ConnectionFlags } from "./settings.js";

/** Makes a word that a POSIX shell reads back as exactly `word`. */
export function shellWord(word: string): string {
  return /^[A-Za-z0-9_@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}

/** Writes command lines that a person can copy: they carry the flags of this one, so that they reach the same service. */
export class CommandLines {
  readonly #tail: readonly string[];

  constructor(
    flags: ConnectionFlags = {},
    /** How the program is called, as words of a shell. */
    readonly program = "clankie",
  ) {
    this.#tail = [...flag("--url", flags.url), ...flag("--token-file", flags.tokenFile), ...flag("--data", flags.data)];
  }

  /** The line for these words. */
  of(...words: string[]): string {
    return [this.program, ...[...words, ...this.#tail].map(shellWord)].join(" ");
  }

  /** Reads a question again. */
  question(conversationId: string, requestId?: string): string {
    const request = requestId === undefined ? [] : ["--request", requestId];
    return this.of("conversations", "questions", conversationId, ...request);
  }

  /** Answers the question of a result with one of its options, at the revision that was read. */
  option(result: QuestionResult, optionId: string): string {
    return this.of("conversations", "answer", ...target(result), "--option", optionId);
  }

  /** Answers it with a text from standard input. */
  text(result: QuestionResult): string {
    return this.of("conversations", "answer", ...target(result), "--stdin");
  }

  /** Cancels it. */
  cancel(result: QuestionResult): string {
    return this.of("conversations", "cancel-question", ...target(result));
  }
}

function flag(name: string, value: string | undefined): readonly string[] {
  return value === undefined ? [] : [name, value];
}

function target({ conversationId, incarnationId, revision, question }: QuestionResult): readonly string[] {
  return [
    conversationId,
    question?.requestId ?? "REQUEST_UUID",
    "--incarnation",
    incarnationId ?? question?.incarnationId ?? "UUID",
    "--revision",
    String(revision ?? "N"),
  ];
}
