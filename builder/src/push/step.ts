/** The step `push`: uploads the image to the registry, and reports its digest. */

import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { classify } from "../failures/classify.ts";
import { StepError } from "../failures/codes.ts";
import type { Log } from "../log/writer.ts";
import { type Paths, secretPaths, workPaths } from "../paths.ts";
import type { PushTask } from "../task.ts";
import { imageFolder, type OpenedImage, openImage } from "./image.ts";
import { Refused, Registry } from "./registry.ts";

export interface PushContext {
  task: PushTask;
  log: Log;
  paths: Paths;
  signal?: AbortSignal;
  /** Milliseconds before each further try. */
  pauses?: readonly number[];
}

/** @throws StepError `PROJECT_PUBLISH_TIMEOUT` or `PROJECT_PUBLISH_FAILED`, or that there is no image */
export async function pushStep(context: PushContext): Promise<{ digest: string }> {
  const { task, log, paths } = context;
  log.info("Publishing the image.");
  const { work } = paths;
  const image = await openImage(await imageFolder(work, workPaths(paths).image), task.maxImageBytes);
  try {
    await publish(image, context);
  } finally {
    await image.close();
  }
  log.info(`Published ${image.digest}.`);
  return { digest: image.digest };
}

async function publish(
  image: OpenedImage,
  { task, log, paths, signal, pauses = [1_000, 3_000, 10_000] }: PushContext,
): Promise<void> {
  const { repository, tag, caFile, timeoutSeconds } = task;
  const deadline = Date.now() + timeoutSeconds * 1_000;
  const timeout = AbortSignal.timeout(timeoutSeconds * 1_000);
  const registry = new Registry({
    repository,
    token: await readToken(paths, repository),
    ca: caFile === undefined ? undefined : await readFile(caFile, "utf8"),
    signal: signal === undefined ? timeout : AbortSignal.any([timeout, signal]),
  });
  try {
    for (let attempt = 0; ; attempt++) {
      const error = await registry.push(image, tag).then(
        () => undefined,
        (thrown: Error) => thrown,
      );
      if (error === undefined) {
        return;
      }
      const text = timeout.aborted ? "The registry did not answer in time." : error.message;
      log.info(text);
      const pause = pauses[attempt];
      const isFinal = error instanceof Refused && error.isFinal;
      const timedOut = timeout.aborted || (pause !== undefined && Date.now() + pause >= deadline);
      if (timedOut || isFinal || pause === undefined) {
        throw new StepError(classify({ step: "push", text, timedOut: timedOut && !isFinal }));
      }
      log.info("The registry did not take the image. Trying again.");
      await sleep(pause, undefined, { signal });
    }
  } finally {
    registry.close();
  }
}

/** From Docker's `config.json`; undefined for a registry that requires none. */
async function readToken(paths: Paths, repository: string): Promise<string | undefined> {
  const file = join(secretPaths(paths).registry, "config.json");
  const text = await readFile(file, "utf8").catch((error: NodeJS.ErrnoException) => {
    if (error.code !== "ENOENT") {
      throw error;
    }
    return "{}";
  });
  const { auths = {} } = JSON.parse(text) as { auths?: Record<string, { registrytoken?: string }> };
  return auths[repository.split("/")[0] ?? ""]?.registrytoken;
}
