#!/usr/bin/env node
import { main } from "./main.js";

const { argv, env, stdout, stderr } = process;
process.exitCode = await main(argv.slice(2), {
  env,
  stdout,
  stderr,
  // only a command that reads it opens it
  get stdin() {
    return process.stdin;
  },
  cwd: () => process.cwd(),
});
