/** The runner's process: `node builder/src/main.ts fetch|build|push`, a container of a build pod. */

import { writeFileSync } from "node:fs";
import { runContainer } from "./container.ts";
import { podPaths } from "./paths.ts";
import { TERMINATION_LOG } from "./result.ts";
import { containers, TASK_VARIABLE } from "./task.ts";

const container = containers.find((each) => each === process.argv[2]);
if (container === undefined) {
  process.stderr.write(`usage: main.ts ${containers.join("|")}\n`);
  process.exit(2);
}
// Files of the checkout get Git's modes, 0644 and 0755: COPY keeps them, and applications run as other users.
process.umask(0o022);
const stop = new AbortController();
for (const signal of ["SIGTERM", "SIGINT"] as const) {
  process.once(signal, () => stop.abort());
}
const { result, exitCode } = await runContainer({
  container,
  tasks: process.env[TASK_VARIABLE],
  paths: podPaths,
  write: (line) => process.stdout.write(line),
  signal: stop.signal,
});
if (result !== undefined) {
  writeFileSync(TERMINATION_LOG, `${JSON.stringify(result)}\n`);
}
// Flushes stdout, which may be a pipe, before exiting.
process.stdout.write("", () => process.exit(exitCode));
