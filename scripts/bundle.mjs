// Makes the device page and the chart page: dist/clients/device/public/, every file that the service serves, and
// files.json, which says how. Its input is what tspc has emitted, where typia's validators are compiled already.
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { build } from "esbuild";
import { pngIcon, svgIcon } from "./icons.mjs";
import { root } from "./project.mjs";

const source = join(root, "clients/device");
const compiled = join(root, "dist/clients/device");
const target = join(compiled, "public");
const browsers = ["chrome111", "firefox121", "safari16.4"];

const digest = (content) => createHash("sha256").update(content).digest("base64url").slice(0, 16);

async function bundled(entry, options = {}) {
  const { outputFiles } = await build({
    entryPoints: [entry],
    absWorkingDir: root,
    bundle: true,
    write: false,
    minify: true,
    format: "esm",
    platform: "browser",
    target: browsers,
    legalComments: "none",
    logLevel: "warning",
    ...options,
  });
  return Buffer.from(outputFiles[0].contents);
}

/** Path, content, type, and whether the name changes with the content. */
const files = [];
const add = (path, content, type, isForever = false) => {
  files.push({ path, content: Buffer.from(content), type, isForever });
};

/** A page with its script and its style, whose names change with their content. */
async function addPage(path, name, { script: scriptEntry, style: styleEntry, html }) {
  const script = await bundled(join(compiled, scriptEntry));
  const style = await bundled(join(source, styleEntry));
  const scriptPath = `/assets/${name}.${digest(script)}.js`;
  const stylePath = `/assets/${name}.${digest(style)}.css`;
  const text = readFileSync(join(source, html), "utf8");
  add(path, text.replace("{{script}}", scriptPath).replace("{{style}}", stylePath), "text/html; charset=utf-8");
  add(scriptPath, script, "text/javascript; charset=utf-8", true);
  add(stylePath, style, "text/css; charset=utf-8", true);
}

await addPage("/", "page", { script: "main.js", style: "page.css", html: "page.html" });
add("/icon.svg", svgIcon(), "image/svg+xml");
add("/icon-180.png", pngIcon(180, { corner: 0 }), "image/png");
add("/icon-192.png", pngIcon(192), "image/png");
add("/icon-512.png", pngIcon(512), "image/png");
add("/icon-maskable-512.png", pngIcon(512, { corner: 0, scale: 0.8 }), "image/png");
add(
  "/manifest.webmanifest",
  JSON.stringify({
    id: "/",
    name: "Clankie",
    short_name: "Clankie",
    description: "Questions from your coding agents, answered once.",
    start_url: "/",
    scope: "/",
    display: "standalone",
    background_color: "#f6f5f1",
    theme_color: "#0d6b58",
    icons: [
      { src: "/icon.svg", type: "image/svg+xml", sizes: "any" },
      { src: "/icon-192.png", type: "image/png", sizes: "192x192" },
      { src: "/icon-512.png", type: "image/png", sizes: "512x512" },
      { src: "/icon-maskable-512.png", type: "image/png", sizes: "512x512", purpose: "maskable" },
    ],
  }),
  "application/manifest+json; charset=utf-8",
);

const version = digest(Buffer.concat(files.flatMap(({ path, content }) => [Buffer.from(path), content])));
const shell = files.map(({ path }) => path);
add(
  "/sw.js",
  await bundled(join(compiled, "sw.js"), {
    format: "iife",
    define: { SHELL_VERSION: JSON.stringify(version), SHELL_FILES: JSON.stringify(shell) },
  }),
  "text/javascript; charset=utf-8",
);

// for operators, who have a network: no part of what a phone keeps
await addPage("/chart", "chart", { script: "chart/main.js", style: "chart/chart.css", html: "chart/page.html" });

rmSync(target, { recursive: true, force: true });
const list = files.map(({ path, content, type, isForever }) => {
  const file = { "/": "index.html", "/chart": "chart.html" }[path] ?? path.slice(1);
  mkdirSync(dirname(join(target, file)), { recursive: true });
  writeFileSync(join(target, file), content);
  return { path, file, type, isForever };
});
writeFileSync(join(target, "files.json"), `${JSON.stringify(list, null, 2)}\n`);
