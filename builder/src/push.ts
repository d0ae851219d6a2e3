/** The step `push`: brings the image to the registry, and tells its digest. */

import { lstat, readdir } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { classify } from "./failures/classify.ts";
import { StepError } from "./failures/stepError.ts";
import type { Log } from "./log/writer.ts";
import { type Paths, secretPaths, workPaths } from "./paths.ts";
import { type Ended, run } from "./process/exec.ts";
import type { PushTask } from "./task.ts";

export interface PushContext {
  task: PushTask;
  log: Log;
  paths: Paths;
  signal?: AbortSignal;
  /** Program that pushes an OCI layout, as crane does. */
  program?: string;
  /** Milliseconds before each further try. */
  pauses?: readonly number[];
}

/** @throws StepError `PROJECT_PUBLISH_TIMEOUT` or `PROJECT_PUBLISH_FAILED` */
export async function pushStep(context: PushContext): Promise<{ digest: string }> {
  const { task, log, pauses = [1_000, 3_000, 10_000] } = context;
  const deadline = Date.now() + task.timeoutSeconds * 1000;
  log.info("Publishing the image.");
  await refuseLinks(workPaths(context.paths).image);
  for (let attempt = 0; ; attempt++) {
    const { ended, digest } = await push(context, deadline - Date.now());
    if (digest !== undefined) {
      log.info(`Published ${digest}.`);
      return { digest };
    }
    const pause = pauses[attempt];
    // A refused token is refused again.
    const isFinal = /UNAUTHORIZED|DENIED|status code 40[13]/i.test(ended.text);
    const timedOut = ended.timedOut || (pause !== undefined && Date.now() + pause >= deadline);
    if (timedOut || isFinal || pause === undefined) {
      throw new StepError(classify({ step: "push", text: ended.text, timedOut: timedOut && !isFinal }));
    }
    log.info("The registry did not take the image. Trying again.");
    await sleep(pause, undefined, { signal: context.signal });
  }
}

/** The build's own steps could reach this folder: a link in it would lead to what this container alone is given. */
async function refuseLinks(folder: string): Promise<void> {
  const isPlain = (entry: { isFile(): boolean; isDirectory(): boolean }): boolean =>
    entry.isFile() || entry.isDirectory();
  const top = await lstat(folder).catch(() => undefined);
  const entries = top?.isDirectory() ? await readdir(folder, { recursive: true, withFileTypes: true }) : [];
  if (!top?.isDirectory() || !entries.every(isPlain)) {
    throw StepError.of("BUILD_FAILED_UNCLASSIFIED", { said: "The image is none that can be published." });
  }
}

async function push(
  { task, log, paths, signal, program = "crane" }: PushContext,
  timeoutMs: number,
): Promise<{ ended: Ended; digest?: string }> {
  const { image } = workPaths(paths);
  const printed: Buffer[] = [];
  const reference = task.tag === undefined ? task.repository : `${task.repository}:${task.tag}`;
  const ended = await run(program, ["push", image, reference], {
    env: {
      PATH: process.env.PATH ?? "/usr/local/bin:/usr/bin:/bin",
      // Whatever the build has left in shared folders is no setting of the program's.
      HOME: "/nonexistent",
      DOCKER_CONFIG: secretPaths(paths).registry,
      ...(task.caFile === undefined ? {} : { SSL_CERT_FILE: task.caFile }),
    },
    timeoutMs: Math.max(1, timeoutMs),
    signal,
    onStdout: (chunk) => printed.push(chunk),
  });
  const digest = /@(sha256:[a-f0-9]{64})\s*$/.exec(Buffer.concat(printed).toString("utf8"))?.[1];
  if (ended.code === 0 && digest !== undefined) {
    return { ended, digest };
  }
  // What it says while all goes well is of no use to anybody.
  const output = log.output();
  output.push(Buffer.from(ended.text));
  output.end();
  return { ended };
}
