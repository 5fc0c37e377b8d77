import { fromBytes } from "./store/json.js";

/** The document that stored bytes hold, or `undefined` where they hold none. */
export function parsed(value: Uint8Array): unknown {
  try {
    return fromBytes(value);
  } catch {
    return undefined;
  }
}
