// The real service as a process of its own: `node serve.js '{"dataDirectory": …}'`. Its first line says where it is.
import { type ServeOptions, serve } from "../../../server/main.js";

const options = JSON.parse(process.argv[2] ?? "{}") as ServeOptions;
const service = await serve({ logLevel: "info", ...options, host: "127.0.0.1", port: 0 });
const { url, dataDirectory, operatorTokenFile, damage } = service;
process.stdout.write(`${JSON.stringify({ url, dataDirectory, operatorTokenFile, damage })}\n`);
for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"]) {
  process.once(signal, () => void service.stop().then(() => process.exit(0)));
}
