import type { FaultCode, FaultData } from "../protocol/refusals.js";

/** What a request is answered with instead of a result. Contract section 5. */
export class Fault extends Error {
  readonly data: FaultData;

  constructor(code: FaultCode, message: string, more: Omit<FaultData, "code"> = {}) {
    super(message);
    this.name = "Fault";
    this.data = { code, ...more };
  }
}

/** A fault of one field that only the shell can see. Contract section 5, `invalid_params`. */
export const invalid = (path: string, expected: string): Fault =>
  new Fault("invalid_params", `${path}: expected ${expected}`, { errors: [{ path, expected }] });
