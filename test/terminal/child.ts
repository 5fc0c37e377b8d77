import { serve } from "../../server/main.js";

/** `clankie serve --port N --data DIR --json`, as far as these tests need it. */
const [data = "", port = "0"] = process.argv.slice(2);
const service = await serve({ dataDirectory: data, host: "127.0.0.1", port: Number(port), logLevel: "silent" });
process.stdout.write(`${JSON.stringify({ url: service.url, operatorTokenFile: service.operatorTokenFile })}\n`);
