import { BOUNDS } from "../protocol/bounds.js";

/** What the items of one page may take as JSON, in bytes: a client accepts a frame of 1 MiB with what stands around them. */
export const PAGE_BYTES = BOUNDS.frameToClient - 65_536;

export const bytesOf = (item: unknown): number => Buffer.byteLength(JSON.stringify(item));

/** As many items, from the first on, as one frame takes; always one where there is one. Contract section 3. */
export function fitting<T>(items: readonly T[]): readonly T[] {
  let bytes = 0;
  const end = items.findIndex((item, index) => {
    bytes += bytesOf(item) + 1;
    return index > 0 && bytes > PAGE_BYTES;
  });
  return end < 0 ? items : items.slice(0, end);
}
