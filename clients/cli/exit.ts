import type { QuestionResult } from "../../protocol/question.js";
import type { FaultCode } from "../../protocol/refusals.js";

/** Exit statuses. Contract section 9. */
export const EXIT = {
  done: 0,
  failed: 1,
  usage: 2,
  refused: 3,
  conflict: 4,
  uncertain: 5,
  notFound: 6,
  unreachable: 7,
  notPermitted: 8,
} as const;

/** Ended by SIGHUP, SIGINT or SIGTERM, as a shell tells it. */
type EndedBySignal = 129 | 130 | 143;

export type Exit = (typeof EXIT)[keyof typeof EXIT] | EndedBySignal;

/** The statuses as `--help` shows them. */
export const EXIT_HELP = `Exit status: 0 done, 1 unexpected failure, 2 usage, 3 refused, 4 revision conflict, 5 outcome uncertain,
6 not found, 7 service unreachable, 8 not authenticated or not permitted`;

/** What ends a command, with what to do next. */
export class Failure extends Error {
  override readonly name = "Failure";

  constructor(
    readonly exit: Exit,
    /** Stable, for programs: the contract's code where there is one. */
    readonly code: string,
    message: string,
    /** What to do next, a line each. */
    readonly hints: readonly string[] = [],
    readonly data?: unknown,
  ) {
    super(message);
  }
}

export const usage = (message: string, ...hints: string[]): Failure => new Failure(EXIT.usage, "usage", message, hints);

/** The exit status of a fault of the socket. */
export function exitOfFault(code: FaultCode | "internal_error" | "protocol"): Exit {
  switch (code) {
    case "invalid_params":
    case "frame_too_large":
      return EXIT.usage;
    case "unauthenticated":
    case "forbidden":
      return EXIT.notPermitted;
    case "unknown_conversation":
      return EXIT.notFound;
    case "ineligible_conversation":
    case "question_pending":
    case "queue_full":
    case "rate_limited":
      return EXIT.refused;
    case "shutting_down":
      return EXIT.unreachable;
    case "question_state_unavailable":
    case "storage_unavailable":
    case "internal_error":
    case "protocol":
      return EXIT.failed;
    default:
      return code satisfies never;
  }
}

/** The exit status of a question's result. Contract sections 4, 6 and 9. */
export function exitOfResult({ status, reason }: QuestionResult): Exit {
  switch (status) {
    case "ready":
    case "resolved":
      return EXIT.done;
    case "revision_conflict":
      return EXIT.conflict;
    case "refused":
      return reason !== undefined && NOT_PERMITTED.includes(reason) ? EXIT.notPermitted : EXIT.refused;
    default:
      return status satisfies never;
  }
}

const NOT_PERMITTED: readonly string[] = [
  "not_permitted",
  "device_read_only",
  "device_revoked",
  "credential_expired",
] satisfies QuestionResult["reason"][];
