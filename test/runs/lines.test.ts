import fc from "fast-check";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { LineSplitter, lineLimit } from "../../server/runs/lines.js";

const test = suite("output lines");

function linesOf(...chunks: readonly (string | Uint8Array)[]): readonly string[] {
  const splitter = new LineSplitter();
  return [...chunks.flatMap((chunk) => splitter.push(Buffer.from(chunk))), ...splitter.end()];
}

test("[10] lines end with a line feed, with or without a return, and the last one need not end", () => {
  assert.equal(linesOf("one\ntwo\r\n\nfour"), ["one", "two", "", "four"]);
  assert.equal(linesOf("one\n"), ["one"]);
  assert.equal(linesOf("on", "e\r", "\ntwo\r"), ["one", "two"]);
  assert.equal(linesOf(), []);
});

test("[10] a line is passed on with the chunk that ends it", () => {
  const splitter = new LineSplitter();
  assert.equal(splitter.push(Buffer.from("one\ntw")), ["one"]);
  assert.equal(splitter.push(Buffer.from("o\n")), ["two"]);
  assert.equal(splitter.end(), []);
});

test("[3] a line over the bound of a message comes in pieces that keep characters whole", () => {
  assert.equal(linesOf("x".repeat(lineLimit), "\r", "\n"), ["x".repeat(lineLimit)]);
  assert.equal(linesOf(`${"x".repeat(lineLimit)}y`), ["x".repeat(lineLimit), "y"]);
  assert.equal(linesOf(`${"x".repeat(lineLimit - 1)}😀\n`), ["x".repeat(lineLimit - 1), "😀"]);
});

test("[3] what is not UTF-8 and what is a control character is replaced, escape sequences are left out", () => {
  assert.equal(linesOf(Buffer.from([0x61, 0xff, 0x62, 0x0a])), ["a\ufffdb"]);
  assert.equal(linesOf(Buffer.from([0xed, 0xa0, 0x80])), ["\ufffd\ufffd\ufffd"]);
  assert.equal(linesOf(Buffer.from("😀").subarray(0, 3)), ["\ufffd"]);
  assert.equal(linesOf("\u001b[31mred\u001b[0m\tand \u001b]0;title\u0007plain"), ["red\tand plain"]);
  assert.equal(linesOf("a\0b\rc\u009bd\u007f"), ["a\ufffdb\ufffdc\ufffdd\ufffd"]);
  assert.equal(linesOf("\u001b\u001b[31m[31mred"), ["\ufffd[31mred"]);
});

test("[3] whatever the bytes and however they are cut, the same well-formed lines come out", () => {
  const bytes = fc.oneof(
    fc.uint8Array({ maxLength: 200 }),
    fc.string({ unit: "binary" }).map((text) => new Uint8Array(Buffer.from(text))),
    fc.constantFrom("\r\n", "\r", "\n", "\u001b[1m", "x".repeat(lineLimit - 1), "😀").map((text) => Buffer.from(text)),
  );
  fc.assert(
    fc.property(fc.array(bytes, { maxLength: 8 }), fc.array(fc.nat(40_000), { maxLength: 8 }), (parts, cuts) => {
      const all = Buffer.concat(parts);
      const at = [0, ...cuts.map((cut) => cut % (all.length + 1)).sort((a, b) => a - b), all.length];
      const lines = linesOf(...at.slice(1).map((to, index) => all.subarray(at[index], to)));
      assert.equal(lines, linesOf(all));
      for (const line of lines) {
        assert.ok(line.length <= lineLimit);
        assert.is(Buffer.from(line).toString(), line, "well-formed");
        assert.not.match(line, /[\u0000-\u0008\u000a-\u001f\u007f-\u009f]/);
      }
    }),
    { numRuns: 300 },
  );
});

test.run();
