import { type Logger, pino } from "pino";

export type Log = Logger;

/** Structured logs on stderr: ids and causes, never a token and never what people wrote. */
export const openLog = (level: string): Log =>
  pino({ level, base: null, timestamp: pino.stdTimeFunctions.isoTime }, pino.destination({ dest: 2, sync: true }));
