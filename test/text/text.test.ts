import fc from "fast-check";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { safeJson, safeLine, safeText } from "../../clients/text.js";

const test = suite("text");

const everything = fc.string({
  unit: fc.oneof(
    fc.nat(0xffff).map((n) => String.fromCharCode(n)),
    fc.string({ unit: "binary", minLength: 1, maxLength: 1 }),
  ),
});

test("[3] nothing that acts comes through: terminal escapes, bidi controls, hidden characters", () => {
  for (const [text, shown] of [
    ["\u001b[2Jgone", "\\u{1b}[2Jgone"],
    ["\u009b2J", "\\u{9b}2J"],
    ["\u001b]0;title\u0007", "\\u{1b}]0;title\\u{7}"],
    ["a\rb\bc\u007f", "a\\u{d}b\\u{8}c\\u{7f}"],
    ["file\u202egnp.exe", "file\\u{202e}gnp.exe"],
    ["\u2066\u2067\u2068\u2069\u200e\u200f\u061c", "\\u{2066}\\u{2067}\\u{2068}\\u{2069}\\u{200e}\\u{200f}\\u{61c}"],
    ["ye\u200bs\u2060\ufeff\u00ad", "ye\\u{200b}s\\u{2060}\\u{feff}\\u{ad}"],
    ["a\u200db\u200cc", "a\\u{200d}b\\u{200c}c"],
    ["x\ufe0f", "x\\u{fe0f}"],
    ["hi\u{e0069}\u{e007f}", "hi\\u{e0069}\\u{e007f}"],
    ["\u{1f3f4}\u{e0078}\u{e007f}", "\u{1f3f4}\\u{e0078}\\u{e007f}"],
    ["a\u2028b\u2029c\u0085d", "a\\u{2028}b\\u{2029}c\\u{85}d"],
    ["\ud800x\udfff", "\\u{d800}x\\u{dfff}"],
    ["\u3164\u115f\uffa0", "\\u{3164}\\u{115f}\\u{ffa0}"],
  ] as const)
    assert.is(safeText(text), shown);
});

test("what people write stays as it is", () => {
  for (const text of [
    "plain\ttext\nof two lines",
    "Grüße, Ελλάδα, 漢字, 한국어, עברית, العربية",
    "می\u200cخواهم",
    "क्\u200dष श्\u200cर",
    "👩\u200d💻 👩🏽\u200d🚀 ❤\ufe0f\u200d🔥 🏳\ufe0f\u200d🌈 1\ufe0f\u20e3 👨\u200d👩\u200d👧",
    "🏴\u{e0067}\u{e0062}\u{e0073}\u{e0063}\u{e0074}\u{e007f}",
    "e\u0301 non\u00a0breaking ۝",
  ])
    assert.is(safeText(text), text);
});

test("[3] whatever the text, what is shown has no control but line feed and tab, is well-formed and stays as it is", () => {
  fc.assert(
    fc.property(everything, (text) => {
      const safe = safeText(text);
      assert.not.match(
        safe,
        /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u2028-\u202e\u2066-\u2069\u200e\u200f\u061c\u200b]/,
      );
      assert.not.match(safe, /\p{Cs}/u);
      assert.is(safeText(safe), safe);
      assert.not.match(safeLine(text), /[\n\t]/);
    }),
    { numRuns: 2_000 },
  );
});

test("visible text is never lost: only what acts is replaced", () => {
  fc.assert(
    fc.property(fc.string({ unit: "grapheme" }), (text) => {
      const visible = text.replace(/[\u0000-\u001f\u007f-\u009f]|\p{Default_Ignorable_Code_Point}/gu, "");
      const left = safeText(text)
        .replace(/\\u\{[0-9a-f]+\}/g, "")
        .replace(/[\t\n]|\p{Default_Ignorable_Code_Point}/gu, "");
      assert.is(left, visible.replace(/\\u\{[0-9a-f]+\}/g, ""));
    }),
  );
});

test("[9] JSON keeps its value and cannot act on a terminal either", () => {
  fc.assert(
    fc.property(everything, (text) => {
      const json = safeJson(JSON.stringify({ text }));
      assert.equal(JSON.parse(json), { text });
      assert.not.match(json, /[\u0000-\u001f\u007f-\u009f\u2028-\u202e\u2066-\u2069]/);
    }),
    { numRuns: 1_000 },
  );
  assert.is(safeJson('"\u{e0069}"'), '"\\udb40\\udc69"');
});

test.run();
