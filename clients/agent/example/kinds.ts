import { basename, extname } from "node:path";

/** What a file is, in a person's words. */
export type Kind = string;

const BY_EXTENSION: Readonly<Record<string, Kind>> = {
  ".ts": "TypeScript",
  ".tsx": "TypeScript",
  ".mts": "TypeScript",
  ".js": "JavaScript",
  ".jsx": "JavaScript",
  ".mjs": "JavaScript",
  ".cjs": "JavaScript",
  ".py": "Python",
  ".go": "Go",
  ".rs": "Rust",
  ".java": "Java",
  ".rb": "Ruby",
  ".c": "C",
  ".h": "C",
  ".cpp": "C++",
  ".sh": "shell script",
  ".md": "Markdown",
  ".txt": "plain text",
  ".json": "JSON",
  ".yaml": "YAML",
  ".yml": "YAML",
  ".toml": "TOML",
  ".csv": "comma-separated table",
  ".tsv": "tab-separated table",
  ".html": "HTML",
  ".css": "CSS",
  ".sql": "SQL",
  ".xml": "XML",
  ".svg": "SVG picture",
  ".png": "PNG picture",
  ".jpg": "JPEG picture",
  ".jpeg": "JPEG picture",
  ".gif": "GIF picture",
  ".pdf": "PDF document",
  ".zip": "ZIP archive",
  ".gz": "gzip archive",
  ".lock": "lock file",
  ".log": "log",
};

const BY_NAME: Readonly<Record<string, Kind>> = {
  makefile: "Makefile",
  dockerfile: "Dockerfile",
  license: "licence",
  readme: "plain text",
};

/** The kind that a file's name says. */
export function kindOfName(path: string): Kind {
  const name = basename(path).toLowerCase();
  return BY_NAME[name] ?? BY_EXTENSION[extname(name)] ?? "file";
}

const MAGIC: readonly (readonly [signature: string, kind: Kind])[] = [
  ["89504e470d0a1a0a", "PNG picture"],
  ["ffd8ff", "JPEG picture"],
  ["474946383761", "GIF picture"],
  ["474946383961", "GIF picture"],
  ["255044462d", "PDF document"],
  ["504b0304", "ZIP archive"],
  ["1f8b", "gzip archive"],
  ["7f454c46", "ELF program or library"],
  ["53514c69746520666f726d6174203300", "SQLite database"],
  ["0061736d", "WebAssembly module"],
];

/** The kind that a file's first bytes say, if they say one. */
export function kindOfBytes(start: Buffer): Kind | undefined {
  const hex = start.subarray(0, 16).toString("hex");
  return MAGIC.find(([signature]) => hex.startsWith(signature))?.[1];
}

/** `1 234 567` bytes as `1.2 MB`. */
export function sizeInWords(bytes: number): string {
  if (bytes < 1_000) return bytes === 1 ? "1 byte" : `${bytes} bytes`;
  const units = ["kB", "MB", "GB", "TB"] as const;
  let value = bytes / 1_000;
  let unit = 0;
  while (value >= 999.5 && unit < units.length - 1) {
    value /= 1_000;
    unit += 1;
  }
  return `${value < 9.95 ? value.toFixed(1) : Math.round(value)} ${units[unit]}`;
}
