import { runTui } from "../../clients/tui/main.js";
import { serve } from "../../server/main.js";

const [mode, data = "", ...rest] = process.argv.slice(2);
if (mode === "serve") {
  const service = await serve({
    dataDirectory: data,
    host: "127.0.0.1",
    port: Number(rest[0] ?? 0),
    logLevel: "silent",
  });
  process.stdout.write(`${JSON.stringify({ url: service.url, operatorTokenFile: service.operatorTokenFile })}\n`);
  process.on("SIGTERM", () => void service.stop().then(() => process.exit(0)));
} else {
  const { CLANKIE_URL: url = "", CLANKIE_TOKEN: token = "" } = process.env;
  const conversation = [data, ...rest].find((word) => word !== "" && !word.startsWith("--"));
  process.exitCode = await runTui({
    url,
    token,
    bell: !process.argv.includes("--no-bell"),
    title: !process.argv.includes("--no-title"),
    ...(conversation === undefined ? {} : { conversation }),
  });
}
