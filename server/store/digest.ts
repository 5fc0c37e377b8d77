import { hash } from "node:crypto";

/** Bytes of a record's digest that are stored in front of its value. */
const SEAL_BYTES = 8;

const NUL = Buffer.from([0]);

/** SHA-256 of a text, as 64 hex digits. */
export function sha256(text: string): string {
  return hash("sha256", text, "hex");
}

/** SHA-256 over key and value, as 64 hex digits: bytes that belong to another key do not pass for this one's. */
export function digestOf(key: string, value: Uint8Array): string {
  return hash("sha256", Buffer.concat([Buffer.from(key, "latin1"), NUL, value]), "hex");
}

/**
 * The stored form of a value: the head of its digest, then the value. LevelDB checks its log but, through this
 * binding, not its tables: without this a flipped byte in a table would be read as if it had been written.
 */
export function seal(digest: string, value: Uint8Array): Buffer {
  const stored = Buffer.allocUnsafe(SEAL_BYTES + value.length);
  stored.write(digest, 0, SEAL_BYTES, "hex");
  stored.set(value, SEAL_BYTES);
  return stored;
}

/** The value and its digest, or null where the stored bytes are not what was sealed for this key. */
export function unseal(
  key: string,
  stored: Uint8Array,
): { readonly value: Uint8Array; readonly digest: string } | null {
  if (stored.length < SEAL_BYTES) return null;
  // A plain Uint8Array, so that no reader sees from which adapter it came.
  const value = new Uint8Array(stored.buffer, stored.byteOffset + SEAL_BYTES, stored.length - SEAL_BYTES);
  const digest = digestOf(key, value);
  return sealed(digest) === Buffer.from(stored.buffer, stored.byteOffset, SEAL_BYTES).toString("hex")
    ? { value, digest }
    : null;
}

/** The part of a digest that is stored with a value, as hex. */
export function sealed(digest: string): string {
  return digest.slice(0, SEAL_BYTES * 2);
}
