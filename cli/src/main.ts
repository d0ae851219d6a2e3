#!/usr/bin/env node
import { enableCompileCache } from "node:module";

// Most of the time of a short command would go into reading sources that have not changed.
enableCompileCache();

const { runCli } = await import("./run.ts");
const { processHost } = await import("./host.ts");
process.exitCode = await runCli(process.argv.slice(2), processHost);
