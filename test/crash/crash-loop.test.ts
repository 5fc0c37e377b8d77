import { suite } from "uvu";
import * as assert from "uvu/assert";
import { type CrashReport, crashLoop } from "./tools/load.js";
import { preparePower } from "./tools/power.js";
import { withDirectory } from "./tools/process.js";

const test = suite("kills");

function nothingIsLost(report: CrashReport, kills: number): void {
  assert.is(report.kills, kills);
  assert.ok(report.acknowledged >= kills / 2, `only ${report.acknowledged} answers were acknowledged`);
  assert.is(report.lost, 0, "an acknowledged answer is lost");
  assert.is(report.doubled, 0, "a run was started twice");
  assert.equal(report.violations, []);
  assert.equal(report.damage, []);
}

test("[8.1] twenty kills at random moments under load lose no acknowledged answer and start no run twice", () =>
  withDirectory(async (directory) => nothingIsLost(await crashLoop({ directory, kills: 20, seed: 20 }), 20)));

test("[8.2] kills at the moment of a sync, before it and behind it, lose nothing and double nothing", () =>
  withDirectory(async (directory) => {
    let life = 0;
    const report = await crashLoop({
      directory,
      kills: 6,
      seed: 6,
      start: {
        get under() {
          life += 1;
          // Odd lives die when a sync begins, even ones are killed while its return is held back: durable, not yet told.
          const how = life % 2 === 1 ? `signal=SIGKILL:when=${8 + life}` : "delay_exit=30000:when=8+1";
          return ["strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=fdatasync", "-e", `inject=fdatasync:${how}`];
        },
      },
      endLife: async (service, random) => {
        const late = new Promise((resolve) => setTimeout(resolve, 400 + random() * 600));
        await Promise.race([service.ended, late]);
      },
    });
    nothingIsLost(report, 6);
  }));

test("[8.1] a power cut takes everything that was not synced, and no acknowledged answer", () =>
  withDirectory(async (directory) => {
    const power = preparePower(directory);
    let taken = 0;
    const report = await crashLoop({
      directory,
      kills: 6,
      seed: 7,
      start: { env: power.env },
      between: async (data) => {
        taken += await power.cut(data);
      },
    });
    assert.ok(taken > 0, "the power cut took nothing: it shows nothing");
    nothingIsLost(report, 6);
  }));

test.run();
