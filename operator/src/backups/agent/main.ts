/** The agent's process: the container `agent` of a backup's pods. */

import { writeFileSync } from "node:fs";
import { type Result, TASK_VARIABLE, type Task } from "./protocol.ts";
import { runTask } from "./run.ts";

/** Where Kubernetes reads a container's last words. */
const TERMINATION_LOG = "/dev/termination-log";

// Files on a volume are shared with pods of other users, by their group.
process.umask(0o007);
const task = JSON.parse(process.env[TASK_VARIABLE] ?? "") as Task;
const result: Result = await runTask(task);
writeFileSync(TERMINATION_LOG, JSON.stringify(result));
process.stdout.write(`${JSON.stringify(result)}\n`);
// A pipe that was never opened would keep the process for ever.
process.exit(result.ok ? 0 : 1);
