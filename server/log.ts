import { type Logger, pino } from "pino";
import { LogOutput, stderrWithoutWaiting } from "./log-output.js";

export type Log = Logger;

/** Bytes of log lines that wait for a reader of stderr. */
const WAITING_LIMIT = 4 * 1_024 * 1_024;

/** Members that are never shown, should one be handed to the log by mistake. */
const SECRETS = ["token", "authorization", "answer", "prompt", "params"].flatMap((name) => [name, `*.${name}`]);

let output: LogOutput | undefined;

/** Structured logs on stderr, one JSON document a line: ids and causes, never a token and never what people wrote. */
export const openLog = (level: string): Log =>
  pino(
    {
      level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      redact: { paths: SECRETS, censor: "[masked]" },
    },
    stderr(),
  );

function stderr(): LogOutput {
  if (output !== undefined) return output;
  const made = new LogOutput(stderrWithoutWaiting(), WAITING_LIMIT);
  process.once("exit", () => made.flushNow());
  output = made;
  return made;
}
