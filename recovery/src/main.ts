/** The program of the chart's CronJobs: `node dist/recovery.js backup` and `verify`. Exits with 1 when what it does fails. */

import { runBackup, runVerification } from "./jobs/run.ts";
import { reportTo } from "./report.ts";

const jobs = { backup: runBackup, verify: runVerification };
const job = jobs[process.argv[2] as keyof typeof jobs];
if (!job) {
  console.error("usage: recovery backup | verify");
  process.exit(2);
}
try {
  await job(
    process.env,
    reportTo((line) => process.stderr.write(line)),
  );
  // A pipe that nobody opens would keep the process.
  process.exit(0);
} catch (error) {
  console.error(`recovery: ${(error as Error).message}`);
  process.exit(1);
}
