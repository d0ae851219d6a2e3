/** Orders the containers of a build pod, which start together: each writes a file when it has completed. */

import { watch } from "node:fs";
import { realpath, rename, rm, writeFile } from "node:fs/promises";
import { basename } from "node:path";
import { type Paths, workPaths } from "./paths.ts";
import { readRegularFile } from "./regular-file.ts";
import type { Container } from "./task.ts";

/** Whether the next container has anything to do. */
export type Outcome = "done" | "failed";

/** The file is also polled: a watch of the folder may be refused. */
const POLL_INTERVAL_MS = 250;
const MAX_BYTES = 16;

/** Reports how this container has ended. Written atomically: no reader sees half of it. */
export async function reportCompletion(paths: Paths, container: Container, how: Outcome): Promise<void> {
  const file = workPaths(paths).completion(container);
  const temporary = `${file}.new`;
  // Anything at that path, such as a pipe that would block, is not the platform's.
  await rm(temporary, { recursive: true, force: true });
  await writeFile(temporary, how, { flag: "wx" });
  await rename(temporary, file);
}

/**
 * Waits until a container has completed. Steps of the client's can write its file too: then the waiting container begins too
 * early, in that build alone. A killed container writes none: this one then waits until it is stopped.
 * @returns undefined when the signal aborted first
 */
export async function waitForCompletion(
  paths: Paths,
  container: Container,
  signal?: AbortSignal,
): Promise<Outcome | undefined> {
  const work = await realpath(paths.work);
  const file = workPaths({ ...paths, work }).completion(container);
  let wake = (): void => undefined;
  const watcher = watchFile(work, basename(file), () => wake());
  const stop = (): void => wake();
  signal?.addEventListener("abort", stop);
  try {
    while (signal?.aborted !== true) {
      // Before the file is read, so that no change is missed.
      const changed = new Promise<void>((resolve) => {
        wake = resolve;
      });
      const how = await readOutcome(file);
      if (how !== undefined) {
        return how;
      }
      const timer = setTimeout(() => wake(), POLL_INTERVAL_MS);
      await changed;
      clearTimeout(timer);
    }
    return undefined;
  } finally {
    signal?.removeEventListener("abort", stop);
    watcher?.close();
  }
}

/** Undefined where the node has no watch left: then the file is only polled. */
function watchFile(folder: string, name: string, onChange: () => void) {
  try {
    const watcher = watch(folder, (_, changed) => {
      if (changed === name) {
        onChange();
      }
    });
    watcher.on("error", () => watcher.close());
    return watcher;
  } catch {
    return undefined;
  }
}

async function readOutcome(file: string): Promise<Outcome | undefined> {
  const text = await readRegularFile(file, MAX_BYTES).then(String, () => "");
  return text === "done" || text === "failed" ? text : undefined;
}
