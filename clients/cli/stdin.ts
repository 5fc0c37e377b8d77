import type { Readable } from "node:stream";
import { usage } from "./exit.js";

/**
 * All of a stream as text: strict UTF-8, CRLF as LF, one line feed at the end dropped. Three lines are one text.
 * Throws a usage `Failure` for more than `limit` bytes and for what is no UTF-8.
 */
export async function readText(stream: Readable, limit: number): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of stream) {
    const bytes = Buffer.from(chunk);
    size += bytes.length;
    if (size > limit) throw usage(`standard input holds more than ${limit} bytes`);
    chunks.push(bytes);
  }
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(Buffer.concat(chunks));
    return text.replaceAll("\r\n", "\n").replace(/\n$/, "");
  } catch {
    throw usage("standard input is not UTF-8 text");
  }
}
