import fc from "fast-check";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { applyMergePatch } from "../../protocol/merge-patch.js";

const test = suite("merge patch");

/** RFC 7396, appendix A. */
const EXAMPLES: ReadonlyArray<readonly [string, string, string]> = [
  ['{"a":"b"}', '{"a":"c"}', '{"a":"c"}'],
  ['{"a":"b"}', '{"b":"c"}', '{"a":"b","b":"c"}'],
  ['{"a":"b"}', '{"a":null}', "{}"],
  ['{"a":"b","b":"c"}', '{"a":null}', '{"b":"c"}'],
  ['{"a":["b"]}', '{"a":"c"}', '{"a":"c"}'],
  ['{"a":"c"}', '{"a":["b"]}', '{"a":["b"]}'],
  ['{"a":{"b":"c"}}', '{"a":{"b":"d","c":null}}', '{"a":{"b":"d"}}'],
  ['{"a":[{"b":"c"}]}', '{"a":[1]}', '{"a":[1]}'],
  ['["a","b"]', '["c","d"]', '["c","d"]'],
  ['{"a":"b"}', '["c"]', '["c"]'],
  ['{"a":"foo"}', "null", "null"],
  ['{"a":"foo"}', '"bar"', '"bar"'],
  ['{"e":null}', '{"a":1}', '{"e":null,"a":1}'],
  ["[1,2]", '{"a":"b","c":null}', '{"a":"b"}'],
  ["{}", '{"a":{"bb":{"ccc":null}}}', '{"a":{"bb":{}}}'],
];

test("[5] the examples of RFC 7396 hold", () => {
  for (const [target, patch, result] of EXAMPLES)
    assert.is(JSON.stringify(applyMergePatch(JSON.parse(target), JSON.parse(patch))), result, `${target} + ${patch}`);
});

test("members called __proto__ or constructor are members like any other", () => {
  const patch = JSON.parse('{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}}}') as unknown;
  const result = applyMergePatch({ a: 1 }, patch);
  assert.is(Reflect.get({}, "polluted"), undefined);
  assert.is(Object.getPrototypeOf(result), Object.prototype);
  assert.equal(Object.keys(Object(result)).sort(), ["__proto__", "a", "constructor"]);
  // a member that is inherited is not one to merge into
  assert.equal(applyMergePatch({}, JSON.parse('{"toString":{"a":1}}')), { toString: { a: 1 } });
});

test("neither argument is changed", () => {
  fc.assert(
    fc.property(fc.jsonValue(), fc.jsonValue(), (target, patch) => {
      const before = JSON.stringify([target, patch]);
      try {
        applyMergePatch(target, patch);
      } catch (error) {
        assert.instance(error, RangeError);
      }
      assert.is(JSON.stringify([target, patch]), before);
    }),
  );
});

test("a patch that is nested too deep ends in a RangeError, which the mirror takes for a gap", () => {
  const deep: unknown = JSON.parse(`${'{"a":'.repeat(50_000)}1${"}".repeat(50_000)}`);
  assert.throws(
    () => applyMergePatch({}, deep),
    (error: unknown) => error instanceof RangeError,
  );
});

test.run();
