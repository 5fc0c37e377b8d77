import { execFileSync } from "node:child_process";
import fc from "fast-check";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { CommandLines, shellWord } from "../../clients/cli/command-line.js";

const test = suite("command lines to copy");

test("a shell reads back exactly the word, whatever it is", () => {
  const words = fc.sample(
    fc.string({ unit: "grapheme" }).filter((word) => !word.includes("\u0000")),
    200,
  );
  const all = ["", "a b", "it's", "$(id)", "`id`", "\\", "!x", "*", "~", "a\nb", "-n", "#", ...words];
  const script = all.map((word) => `printf '%s\\0' ${shellWord(word)}`).join("\n");
  const read = execFileSync("/bin/sh", ["-c", script], { encoding: "utf8" });
  assert.equal(read.split("\u0000").slice(0, -1), all);
});

test("[9] printed commands carry the flags of the one that printed them, so that they reach the same service", () => {
  const commands = new CommandLines({ data: "/tmp/my data", url: "http://127.0.0.1:1" });
  assert.is(
    commands.question("c1", "r1"),
    "clankie conversations questions c1 --request r1 --url http://127.0.0.1:1 --data '/tmp/my data'",
  );
});

test.run();
