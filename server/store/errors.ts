export type StoreErrorCode =
  /** Another process, or this one, has the directory open. */
  | "STORE_LOCKED"
  /** The directory cannot be made or written. */
  | "STORE_UNWRITABLE"
  /** The directory is not one of ours: a link, a file, or another user's. */
  | "STORE_DIRECTORY"
  /** Stored bytes cannot be trusted; `key` says which where it is one record. */
  | "STORE_DAMAGED"
  /** A write failed before; `reopen()` first. */
  | "STORE_FAULTED"
  | "STORE_CLOSED"
  /** A watcher is too far behind to be told every change. */
  | "STORE_BEHIND"
  /** The call itself is malformed: a fault of the program. */
  | "STORE_INVALID"
  /** Restoring into a directory that holds a store. */
  | "STORE_NOT_EMPTY"
  /** Any other failure of the disk or the database; see `cause`. */
  | "STORE_IO";

/** Every error of the store. Tell them apart by `code`, never by message. */
export class StoreError extends Error {
  override readonly name = "StoreError";

  constructor(
    readonly code: StoreErrorCode,
    message: string,
    options: { readonly cause?: unknown; readonly key?: string } = {},
  ) {
    super(message, options.cause === undefined ? {} : { cause: options.cause });
    if (options.key !== undefined) this.key = options.key;
  }

  /** The key concerned, where there is one. */
  readonly key?: string;
}

/** The `code` of an error of Node or of the database, or undefined. */
export function codeOf(error: unknown): string | undefined {
  if (typeof error !== "object" || error === null || !("code" in error)) return undefined;
  return typeof error.code === "string" ? error.code : undefined;
}

/** The error itself, or one that carries what was thrown. */
export function asError(thrown: unknown): Error {
  return thrown instanceof Error ? thrown : new StoreError("STORE_IO", String(thrown), { cause: thrown });
}
