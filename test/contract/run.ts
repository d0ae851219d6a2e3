/**
 * Tests the API against its own OpenAPI document: schemathesis sends what the document allows and what it forbids to a
 * platform of its own, and checks every answer. Ends with 1 when anything fails; `--report FILE` writes JUnit XML.
 * Further arguments go to schemathesis.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { stateDir } from "../../hack/lib/paths.ts";
import { isLong } from "../kit/long.ts";
import { startPlatform } from "./platform.ts";
import { ensureSchemathesis } from "./schemathesis.ts";

/** Milliseconds after which it has failed: eight minutes are enough for one that has the machine to itself. */
const LIMIT_MS = 25 * 60_000;

const { values, positionals } = parseArgs({
  options: { report: { type: "string" } },
  allowPositionals: true,
});
const logs = join(stateDir, "logs", "contract");
await rm(logs, { recursive: true, force: true });
await mkdir(logs, { recursive: true });

const command = await ensureSchemathesis(join(logs, "install.log"));
const platform = await startPlatform(join(logs, "platform.log"));
let failed = true;
try {
  const report = values.report ?? join(logs, "junit.xml");
  const config = join(import.meta.dirname, "schemathesis.toml");
  const args = ["--config-file", config, "run", `${platform.url}/v1/openapi.json`, "--url", platform.url];
  // Of each operation, in each phase that the configuration gives no other number.
  args.push("--max-examples", isLong ? "20" : "5");
  args.push("--report", "junit", "--report-junit-path", report, ...positionals);
  const child = spawn(command, args, {
    cwd: logs,
    // Credentials are no arguments: anybody can read those.
    env: {
      ...process.env,
      SLIPWAY_API_KEY: platform.apiKey,
      SLIPWAY_OWNER_TOKEN: platform.ownerToken,
      SLIPWAY_RUN_ID: platform.runId,
      SLIPWAY_ONE_OFF_RUN_ID: platform.oneOffRunId,
      SLIPWAY_HOOK_SECRET: platform.hookSecret,
      SCHEMATHESIS_HOOKS: "sign_deliveries",
      PYTHONPATH: import.meta.dirname,
      // Nothing compiled is left beside the sources.
      PYTHONDONTWRITEBYTECODE: "1",
    },
    stdio: ["ignore", "inherit", "inherit"],
    timeout: LIMIT_MS,
  });
  const [code] = await once(child, "exit");
  const problem = platform.problem();
  if (problem !== undefined) {
    console.error(`contract: ${problem}`);
  }
  failed = code !== 0 || problem !== undefined;
} finally {
  await platform.stop();
}
process.exit(failed ? 1 : 0);
