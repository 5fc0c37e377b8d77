import { CannotServe, type RunningService, type ServeOptions, serve } from "../../../server/main.js";
import { StoreError } from "../../../server/store/errors.js";
import { shellWord } from "../command-line.js";
import { EXIT, Failure } from "../exit.js";

/** Starts the service in this process. What stands in its way is a `Failure` that says what to do next. */
export async function startService(options: ServeOptions): Promise<RunningService> {
  try {
    return await serve(options);
  } catch (error) {
    if (error instanceof CannotServe) throw new Failure(EXIT.failed, error.reason, error.message);
    if (error instanceof StoreError) throw storeFailure(error, options.dataDirectory);
    throw error;
  }
}

function storeFailure({ code, message }: StoreError, directory: string): Failure {
  switch (code) {
    case "STORE_LOCKED":
      return new Failure(EXIT.failed, code, `another service has the data directory ${directory} open`, [
        `use that one: clankie status --data ${shellWord(directory)}`,
        "or start this one with a directory of its own: --data DIR",
      ]);
    case "STORE_UNWRITABLE":
    case "STORE_DIRECTORY":
      return new Failure(EXIT.failed, code, message, ["choose a directory that you own: --data DIR (CLANKIE_DATA)"]);
    default:
      return new Failure(EXIT.failed, code, message, [
        `look at it with: clankie doctor --data ${shellWord(directory)}`,
      ]);
  }
}

const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

/** Resolves with the first signal that asks the process to end; a second one ends it at once. */
export function endAsked(): Promise<(typeof SIGNALS)[number]> {
  return new Promise((resolve) => {
    let asked = false;
    for (const signal of SIGNALS) {
      process.on(signal, () => {
        if (asked) process.exit(EXIT.failed);
        asked = true;
        resolve(signal);
      });
    }
  });
}
