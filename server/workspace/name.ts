import { basename } from "node:path";
import { BOUNDS } from "../../protocol/bounds.js";

/**
 * What a directory is called where nobody gave it a name. A file system allows names that no title may hold: control
 * characters become U+FFFD, and a blank name gives way to the path.
 */
export function nameOf(path: string): string {
  return fitted(basename(path)) ?? fitted(path) ?? "directory";
}

function fitted(text: string): string | null {
  const clean = text
    .replace(/[\u0000-\u001f\u007f-\u009f]/g, "\ufffd")
    .trim()
    .slice(0, BOUNDS.title)
    .replace(/[\ud800-\udbff]$/, "");
  return clean === "" ? null : clean;
}
