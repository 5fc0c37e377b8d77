import { serve } from "../../server/main.js";

/** The service as a process of its own: `node serve.js DATA PORT`. Its first line is where it is. */
const [dataDirectory = "", port = "0"] = process.argv.slice(2);
const { url, operatorTokenFile, stop } = await serve({ dataDirectory, host: "127.0.0.1", port: Number(port) });
process.stdout.write(`${JSON.stringify({ url, operatorTokenFile })}\n`);
process.once("SIGTERM", () => {
  stop().then(
    () => process.exit(0),
    () => process.exit(1),
  );
});
