// Every rule of docs/rules.json is held by a test that names it in its title, as in `[6.4] a repeated answer …`.
// A title may name several: `[6.4, 6.5] …`. Titles put together from variables are not counted.
import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import ts from "typescript";
import { filesBelow, root, say } from "./project.mjs";

const directory = resolve(process.argv[2] ?? join(root, "test"));
const rules = JSON.parse(readFileSync(join(root, "docs/rules.json"), "utf8"));

const id = String.raw`\d+(?:\.\d+)?(?: [a-z_]+)?`;
const tag = new RegExp(String.raw`\[(${id}(?:, ?${id})*)\]`, "g");
const isNumbered = /^(6\.|7 |8\.)/;

/** The first arguments, written out, of every call that also has a function: `test("…", () => …)`; not of skipped ones. */
function titlesIn(file) {
  const source = ts.createSourceFile(file, readFileSync(file, "utf8"), ts.ScriptTarget.Latest);
  const titles = [];
  const visit = (node) => {
    if (ts.isCallExpression(node)) {
      const [title, body] = node.arguments;
      const isSkipped = ts.isPropertyAccessExpression(node.expression) && node.expression.name.text === "skip";
      if (title && body && !isSkipped) {
        if (ts.isStringLiteralLike(title)) titles.push(title.text);
        if (ts.isTemplateExpression(title))
          titles.push(title.head.text, ...title.templateSpans.map((s) => s.literal.text));
      }
    }
    ts.forEachChild(node, visit);
  };
  visit(source);
  return titles;
}

const held = new Set();
const faults = [];
for (const path of filesBelow(directory, (file) => file.endsWith(".test.ts"))) {
  for (const title of titlesIn(join(directory, path))) {
    for (const [, ids] of title.matchAll(tag)) {
      for (const rule of ids.split(/, ?/)) {
        held.add(rule);
        if (isNumbered.test(rule) && !(rule in rules)) faults.push(`[${rule}] is no rule: ${path}: ${title}`);
      }
    }
  }
}
for (const [rule, sentence] of Object.entries(rules)) {
  if (!held.has(rule)) faults.push(`[${rule}] has no test: ${sentence}`);
}
for (const fault of faults) say(fault);
process.exitCode = faults.length === 0 ? 0 : 1;
