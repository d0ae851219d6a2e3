/** The runner's process: `node builder/src/main.ts fetch|plan|build|push`, a container of a build pod. */

import { writeFileSync } from "node:fs";
import { podPaths } from "./paths.ts";
import { TERMINATION_LOG } from "./result.ts";
import { runStep } from "./runner.ts";
import { steps, TASK_VARIABLE } from "./task.ts";

const step = steps.find((each) => each === process.argv[2]);
if (step === undefined) {
  process.stderr.write(`usage: main.ts ${steps.join("|")}\n`);
  process.exit(2);
}
// Files of the checkout get the modes that Git has for them, 0644 and 0755: COPY keeps them, and applications run as other users.
process.umask(0o022);
const stop = new AbortController();
for (const signal of ["SIGTERM", "SIGINT"] as const) {
  process.once(signal, () => stop.abort());
}
const { result, exitCode } = await runStep({
  step,
  task: process.env[TASK_VARIABLE],
  paths: podPaths,
  write: (line) => process.stdout.write(line),
  signal: stop.signal,
});
writeFileSync(TERMINATION_LOG, `${JSON.stringify(result)}\n`);
// Lines may still be on their way through a pipe.
process.stdout.write("", () => process.exit(exitCode));
