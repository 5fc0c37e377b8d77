import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import type { IncomingMessage, ServerResponse } from "node:http";
import { gzipSync } from "node:zlib";

/** A file of the page, as it is sent. */
interface PageFile {
  readonly type: string;
  readonly content: Buffer;
  /** Absent where compressing saves nothing. */
  readonly gzipped: Buffer | undefined;
  readonly etag: string;
  /** Its name changes with its content. */
  readonly isForever: boolean;
}

/** The files of the Take Control page by their exact path. */
export type Page = ReadonlyMap<string, PageFile>;

/** Where the build leaves the page. */
const BUILT = new URL("../clients/device/public/", import.meta.url);

/** Nothing but this service: no inline script or style, no other host, no frame around it. */
const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "manifest-src 'self'",
  "worker-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join("; ");

const SECURITY_HEADERS = {
  "content-security-policy": CONTENT_SECURITY_POLICY,
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
  "referrer-policy": "no-referrer",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  "permissions-policy":
    "accelerometer=(), autoplay=(), camera=(), display-capture=(), geolocation=(), gyroscope=(), hid=(), magnetometer=(), microphone=(), midi=(), payment=(), publickey-credentials-get=(), serial=(), usb=()",
} as const;

/**
 * Reads the built page into memory, once: it is small, and what is served cannot change under a browser that has half
 * of it. Without a built page there is none, and `GET /` is nobody's.
 */
export function loadPage(directory: URL = BUILT): Page {
  const list = readList(directory);
  return new Map(list.map(({ path, file, type, isForever }) => [path, readFile(directory, file, type, isForever)]));
}

interface Listed {
  readonly path: string;
  readonly file: string;
  readonly type: string;
  readonly isForever: boolean;
}

function readList(directory: URL): readonly Listed[] {
  try {
    // written by our own build beside the files it names
    return JSON.parse(readFileSync(new URL("files.json", directory), "utf8")) as readonly Listed[];
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return [];
    throw error;
  }
}

function readFile(directory: URL, file: string, type: string, isForever: boolean): PageFile {
  const content = readFileSync(new URL(file, directory));
  const gzipped = /^(text|application|image\/svg)/.test(type) ? gzipSync(content, { level: 9 }) : undefined;
  const isSmaller = gzipped !== undefined && gzipped.length < content.length;
  const etag = createHash("sha256").update(content).digest("base64url").slice(0, 22);
  return { type, content, gzipped: isSmaller ? gzipped : undefined, etag, isForever };
}

/**
 * Serves a file of the page. `false`: the path is none of its own, and nothing was sent. The caller has already refused
 * a `Host` that is not this service's. Contract section 5.
 */
export function servePage(page: Page, request: IncomingMessage, response: ServerResponse): boolean {
  const [path = ""] = (request.url ?? "").split("?", 1);
  const file = page.get(path);
  if (file === undefined) return false;
  for (const [name, value] of Object.entries(SECURITY_HEADERS)) response.setHeader(name, value);
  if (request.method !== "GET" && request.method !== "HEAD") {
    response.writeHead(405, { allow: "GET, HEAD", "content-type": "text/plain; charset=utf-8" });
    response.end("Only GET and HEAD.\n");
    return true;
  }
  const isGzip = file.gzipped !== undefined && accepts(request.headers["accept-encoding"], "gzip");
  const body = isGzip ? file.gzipped : file.content;
  // one tag for each encoding, as they are different bytes
  const etag = isGzip ? `"${file.etag}-gz"` : `"${file.etag}"`;
  response.setHeader("etag", etag);
  response.setHeader("vary", "accept-encoding");
  response.setHeader("cache-control", file.isForever ? "public, max-age=31536000, immutable" : "no-cache");
  if (matches(request.headers["if-none-match"], etag)) {
    response.writeHead(304);
    response.end();
    return true;
  }
  response.setHeader("content-type", file.type);
  response.setHeader("content-length", body.length);
  if (isGzip) response.setHeader("content-encoding", "gzip");
  response.writeHead(200);
  response.end(request.method === "HEAD" ? undefined : body);
  return true;
}

function accepts(header: string | string[] | undefined, encoding: string): boolean {
  return String(header ?? "")
    .split(",")
    .map((part) => part.trim().toLowerCase().replaceAll(" ", ""))
    .some((part) => part === encoding || (part.startsWith(`${encoding};`) && !/;q=0(\.0*)?$/.test(part)));
}

function matches(header: string | undefined, etag: string): boolean {
  return (header ?? "")
    .split(",")
    .map((part) => part.trim().replace(/^W\//, ""))
    .some((part) => part === "*" || part === etag);
}
