import fc from "fast-check";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { jsonValue, withMember, withoutMember } from "../../clients/agent/setup/edit.js";

const test = suite("changing one member of a JSON file with comments");

type Value = { readonly [name: string]: unknown };

const names = fc.constantFrom("mcp", "a", "servers", "x y");
const objects = fc.letrec((tie) => ({
  value: fc.oneof({ maxDepth: 3 }, fc.integer(), fc.string(), fc.array(fc.integer(), { maxLength: 2 }), tie("object")),
  object: fc.dictionary(names, tie("value"), { maxKeys: 3, noNullPrototype: true }),
})).object;
const layouts = fc.record({
  indent: fc.constantFrom(0, 2, 4, "\t"),
  crlf: fc.boolean(),
  trailingComma: fc.boolean(),
  comments: fc.constantFrom("none", "behind", "inside"),
  end: fc.constantFrom("", "\n"),
});

type Layout = typeof layouts extends fc.Arbitrary<infer T> ? T : never;

function written(value: Value, { indent, crlf, trailingComma, comments, end }: Layout): string {
  let text = JSON.stringify(value, null, indent);
  if (indent !== 0) {
    if (trailingComma) text = text.replace(/([^\s{[,])\n(\s*)([}\]])/g, "$1,\n$2$3");
    if (comments === "behind") text = text.replace(/,\n/g, ", // one, {\n");
    if (comments === "inside") text = text.replace(/\{\n/g, "{ /* two, } */\n");
    if (crlf) text = text.replace(/\n/g, "\r\n");
  }
  return text + end;
}

const isObject = (value: unknown): value is Value =>
  typeof value === "object" && value !== null && !Array.isArray(value);

test("for any object in any layout: the member is put in, nothing else changes, and taking it out gives back every byte", () => {
  const member = { path: ["mcp", "clankie"], value: { type: "local", command: ["clankie", "mcp"] } };
  fc.assert(
    fc.property(objects, layouts, (value, layout) => {
      const { mcp } = value as Value;
      fc.pre(mcp === undefined || isObject(mcp));
      const before = written(value as Value, layout);
      const after = withMember(before, member, {});
      const clankie = member.value;
      const expected = { ...(value as Value), mcp: { ...(isObject(mcp) ? mcp : {}), clankie } };
      assert.is(JSON.stringify(jsonValue(after)), JSON.stringify(expected));
      assert.is(withMember(after, member, {}), after, "a second time changes nothing");
      // an empty object that was there before is taken for ours
      if (!isObject(mcp) || Object.keys(mcp).length > 0) assert.is(withoutMember(after, member.path), before);
    }),
    { numRuns: 1_000 },
  );
});

test.run();
