import type { FaultData, FieldError } from "../../protocol/refusals.js";

/** The service answered a request with a JSON-RPC error. Contract section 5. */
export class FaultError extends Error {
  override readonly name = "FaultError";

  constructor(
    /** The contract's code; `protocol` where JSON-RPC itself was at fault, such as an unknown method. */
    readonly code: FaultData["code"] | "protocol",
    message: string,
    readonly data: FaultData | undefined,
    /** JSON-RPC's number. */
    readonly number: number,
  ) {
    super(message);
  }
}

/** There is no reply, and there will be none: the connection went first. */
export class LinkLost extends Error {
  override readonly name = "LinkLost";

  constructor(
    /** Whether the request had left this side: then nobody here knows what became of it. */
    readonly sent: boolean,
    detail: string,
  ) {
    super(detail);
  }
}

/** The service sent a reply that is not what the contract says: its outcome is unknown. */
export class BadReply extends Error {
  override readonly name = "BadReply";

  constructor(
    readonly method: string,
    readonly errors: readonly FieldError[],
  ) {
    super(`the reply to ${method} is not what the contract says`);
  }
}

export type CallError = FaultError | LinkLost | BadReply;
