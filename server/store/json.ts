const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** A JSON value as the bytes of its text in UTF-8. */
export function toBytes(value: unknown): Uint8Array {
  return encoder.encode(JSON.stringify(value));
}

/** The JSON value that the bytes hold; throws where they are not JSON in UTF-8. What it is, the caller checks. */
export function fromBytes(bytes: Uint8Array): unknown {
  return JSON.parse(decoder.decode(bytes));
}
