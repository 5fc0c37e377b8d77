import * as fc from "fast-check";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { DECODER, type Decoder, decode, flush, type Token } from "../../clients/tui/keys.js";

const test = suite("terminal keys");

function all(...chunks: readonly string[]): readonly Token[] {
  let decoder: Decoder = DECODER;
  const tokens: Token[] = [];
  for (const chunk of chunks) {
    const next = decode(decoder, chunk);
    decoder = next.decoder;
    tokens.push(...next.tokens);
  }
  return [...tokens, ...flush(decoder).tokens];
}

const key = (code: string): Token => ({ kind: "sequence", code });
const text = (content: string): Token => ({ kind: "text", text: content });
const paste = (content: string): Token => ({ kind: "paste", text: content });

test("a bracketed paste is one paste, wherever the reads end", () => {
  const sent = "a\u001b[200~one\r\ntwo\u001b[31m\rthree\u001b[201~b";
  const expected = [text("a"), paste("one\r\ntwo\u001b[31m\rthree"), text("b")];
  assert.equal(all(sent), expected);
  for (let at = 1; at < sent.length; at += 1) {
    const joined = all(sent.slice(0, at), sent.slice(at));
    assert.equal(
      joined.filter(({ kind }) => kind === "paste"),
      [expected[1]],
      `read at ${at}`,
    );
    assert.not.ok(
      joined.some((token) => token.kind === "sequence"),
      `read at ${at}`,
    );
  }
});

test("a paste without brackets is known by the text that follows a line break in the same read", () => {
  assert.equal(all("one\rtwo\rthree\r"), [paste("one\rtwo\rthree\r")]);
  assert.equal(all("/quit\r/quit"), [paste("/quit\r/quit")]);
});

test("a line and its Enter in one read are a line and its Enter", () => {
  assert.equal(all("hello\r"), [text("hello"), key("\r")]);
  assert.equal(all("\r\r"), [key("\r"), key("\r")]);
});

test("keys are single whole sequences", () => {
  assert.equal(all("\u001b[A\u001bOB\u001b[1;5D\u001b\r\u007fx\t"), [
    key("\u001b[A"),
    key("\u001bOB"),
    key("\u001b[1;5D"),
    key("\u001b\r"),
    key("\u007f"),
    text("x"),
    key("\t"),
  ]);
  assert.equal(all("\u001b[", "5~"), [key("\u001b[5~")]);
});

test("an Escape that nothing follows is the key", () => {
  assert.equal(all("\u001b"), [key("\u001b")]);
  assert.equal(all("a", "\u001b"), [text("a"), key("\u001b")]);
});

test("what follows an Escape at once is typed, unless it is a key that means something with Alt", () => {
  assert.equal(all("\u001b/question list\r"), [key("\u001b"), text("/question list"), key("\r")]);
  assert.equal(all("\u001b", "/question"), [key("\u001b"), text("/question")]);
  assert.equal(all("\u001bé"), [key("\u001b"), text("é")]);
  assert.equal(all("\u001bb\u001bf\u001b\u007f"), [key("\u001bb"), key("\u001bf"), key("\u001b\u007f")]);
});

test("what a terminal answers is not typed text", () => {
  assert.equal(all("\u001b]11;rgb:0000/0000/0000\u0007a\u001bP1+r\u001b\\b"), [text("a"), text("b")]);
});

test("whatever is sent in whatever pieces, nothing is lost in a loop and text never holds a control character", () => {
  const pieces = fc.constantFrom(
    "a",
    "é",
    "日",
    "👍",
    "\r",
    "\n",
    "\u001b",
    "[",
    "200~",
    "\u001b[200~",
    "\u001b[201~",
    "O",
    "]",
    "\u0007",
    "\u0003",
    "5~",
    "\u001b[M",
  );
  return fc.assert(
    fc.property(fc.array(fc.array(pieces).map((part) => part.join(""))), (chunks) => {
      for (const token of all(...chunks)) {
        if (token.kind === "text") assert.not.match(token.text, /[\u0000-\u001f\u007f]/);
      }
    }),
  );
});

test.run();
