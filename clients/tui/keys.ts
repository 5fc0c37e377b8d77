/**
 * Splits what a terminal sends into pastes, texts and single sequences, so that no read boundary tears a character or a
 * sequence apart and a paste is never taken for typing. terminal-kit names the sequences; it knows no bracketed paste
 * and drops what follows a sequence it does not know.
 */
export type Token =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "paste"; readonly text: string }
  | { readonly kind: "sequence"; readonly code: string };

export interface Decoder {
  /** The beginning of a sequence that has not come whole. */
  readonly rest: string;
  /** What has come of a bracketed paste that has not ended. */
  readonly paste: string | null;
}

export const DECODER: Decoder = { rest: "", paste: null };

export const PASTE_ON = "\x1b[?2004h";
export const PASTE_OFF = "\x1b[?2004l";
const PASTE_START = "\x1b[200~";
const PASTE_END = "\x1b[201~";
/** A paste that goes on for longer than any field is cut there. */
const PASTE_LIMIT = 262_144;
const REST_LIMIT = 4_096;

/**
 * CSI, SS3, Alt with one of the keys that mean something with it. Before any other character Escape is a key of its
 * own: a hand that goes on typing at once after it has not held Alt, and what it types is not lost.
 */
const WHOLE = [/^\x1b\[[0-?]*[ -/]*[@-~]/, /^\x1bO[0-9;]*[@-~]/, /^\x1b[\r\nbf\x7f\x08]/];
/** What a terminal answers with (OSC, DCS, APC, PM, SOS), which is dropped. */
const STRING = /^\x1b[P\]X^_][^\x07\x1b]*(?:\x07|\x1b\\)/;
const PARTIAL = /^\x1b(?:\[[0-?]*[ -/]*|O[0-9;]*|[P\]X^_][^\x07\x1b]*\x1b?)?$/;

/** Takes in one read. */
export function decode(
  decoder: Decoder,
  chunk: string,
): { readonly decoder: Decoder; readonly tokens: readonly Token[] } {
  const tokens: Token[] = [];
  let data = decoder.rest + chunk;
  let paste = decoder.paste;
  while (data !== "") {
    if (paste !== null) {
      const end = data.indexOf(PASTE_END);
      if (end === -1) {
        const held = heldBack(data);
        paste = (paste + data.slice(0, data.length - held)).slice(0, PASTE_LIMIT);
        return { decoder: { rest: data.slice(data.length - held), paste }, tokens: unbracketed(tokens) };
      }
      tokens.push({ kind: "paste", text: (paste + data.slice(0, end)).slice(0, PASTE_LIMIT) });
      paste = null;
      data = data.slice(end + PASTE_END.length);
    } else if (data.startsWith(PASTE_START)) {
      paste = "";
      data = data.slice(PASTE_START.length);
    } else if (data.startsWith("\x1b")) {
      const string = STRING.exec(data)?.[0];
      const whole = WHOLE.map((pattern) => pattern.exec(data)?.[0]).find((found) => found !== undefined);
      if (string !== undefined) {
        data = data.slice(string.length);
      } else if (whole !== undefined) {
        tokens.push({ kind: "sequence", code: whole });
        data = data.slice(whole.length);
      } else if (PARTIAL.test(data) && data.length <= REST_LIMIT) {
        return { decoder: { rest: data, paste }, tokens: unbracketed(tokens) };
      } else {
        tokens.push({ kind: "sequence", code: "\x1b" });
        data = data.slice(1);
      }
    } else {
      const text = /^[^\x00-\x1f\x7f]+/.exec(data)?.[0];
      if (text === undefined) tokens.push({ kind: "sequence", code: data.slice(0, 1) });
      else tokens.push({ kind: "text", text });
      data = data.slice(text?.length ?? 1);
    }
  }
  return { decoder: { rest: "", paste }, tokens: unbracketed(tokens) };
}

/** Nothing more came for a while: what looked like the beginning of a sequence was the Escape key. */
export function flush(decoder: Decoder): { readonly decoder: Decoder; readonly tokens: readonly Token[] } {
  if (decoder.paste !== null || decoder.rest === "") return { decoder, tokens: [] };
  const again = decode(DECODER, decoder.rest.slice(1));
  return {
    decoder: DECODER,
    tokens: decoder.rest === "\x1b" ? [{ kind: "sequence", code: "\x1b" }, ...again.tokens] : [],
  };
}

/** How much of the end may be the beginning of the end mark. */
function heldBack(data: string): number {
  for (let size = Math.min(PASTE_END.length - 1, data.length); size > 0; size -= 1) {
    if (PASTE_END.startsWith(data.slice(-size))) return size;
  }
  return 0;
}

const isBreak = (token: Token): boolean => token.kind === "sequence" && (token.code === "\r" || token.code === "\n");
const isTyped = (token: Token): boolean =>
  token.kind === "text" || isBreak(token) || (token.kind === "sequence" && token.code === "\t");

/**
 * A terminal without bracketed paste sends a paste as if it were typed, in one read: text that goes on after a line
 * break in the same read is a paste, with every line break around it.
 */
function unbracketed(tokens: readonly Token[]): readonly Token[] {
  const out: Token[] = [];
  for (let index = 0; index < tokens.length; ) {
    let end = index;
    while (end < tokens.length && isTyped(tokens[end] as Token)) end += 1;
    const run = tokens.slice(index, end);
    const firstBreak = run.findIndex(isBreak);
    if (firstBreak !== -1 && run.slice(firstBreak).some(({ kind }) => kind === "text")) {
      out.push({
        kind: "paste",
        text: run.map((token) => (token.kind === "sequence" ? token.code : token.text)).join(""),
      });
    } else {
      out.push(...run);
    }
    const next = tokens[end];
    if (next !== undefined) out.push(next);
    index = end + 1;
  }
  return out;
}
