// The crash loop by hand: `node dist/test/crash/tools/crash.js [KILLS] [SEED] [--power]`.
import { crashLoop } from "./load.js";
import { preparePower } from "./power.js";
import { withDirectory } from "./process.js";

const [kills = "200", seed = "1"] = process.argv.slice(2).filter((each) => !each.startsWith("--"));
const cutsPower = process.argv.includes("--power");

await withDirectory(async (directory) => {
  const power = cutsPower ? preparePower(directory) : undefined;
  const report = await crashLoop({
    directory,
    kills: Number(kills),
    seed: Number(seed),
    ...(power !== undefined && {
      start: { env: power.env },
      between: async (data) => {
        await power.cut(data);
      },
    }),
    progress: (lives, { acknowledged, lost, doubled }) => {
      if (lives % 20 === 0)
        process.stderr.write(`${lives} kills: ${acknowledged} acknowledged, ${lost} lost, ${doubled} doubled\n`);
    },
  });
  process.stdout.write(`${JSON.stringify(report, null, 2)}\n`);
  const bad = report.lost + report.doubled + report.violations.length + report.damage.length;
  process.exitCode = bad === 0 ? 0 : 1;
});
process.exit();
