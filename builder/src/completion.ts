/** How the containers of a build pod, which start at once, take turns: each writes a file when it has ended. */

import { watch } from "node:fs";
import { realpath, rename, rm, writeFile } from "node:fs/promises";
import { basename } from "node:path";
import { type Paths, workPaths } from "./paths.ts";
import { readPlain } from "./regular-file.ts";
import type { Container } from "./task.ts";

/** How a container has ended: whether the next one has anything to do. */
export type HandOver = "done" | "failed";

/** After so many milliseconds the file is looked for without being told of: a folder's watch may be refused. */
const LOOK_MS = 250;
const MAX_BYTES = 16;

/** Tells those that wait how this container has ended. Whole at once: nobody reads half of it. */
export async function handOver(paths: Paths, container: Container, how: HandOver): Promise<void> {
  const file = workPaths(paths).handOver(container);
  const made = `${file}.new`;
  // Whatever stands there, such as a pipe that would be waited for, is not the platform's.
  await rm(made, { recursive: true, force: true });
  await writeFile(made, how, { flag: "wx" });
  await rename(made, file);
}

/**
 * Waits until a container has handed over. Steps of the client's may write its file too: then what waits for it begins too
 * early, for that build alone. One that was killed writes none, and is waited for until this one is stopped.
 * @returns undefined when the signal came first
 */
export async function handedOver(
  paths: Paths,
  container: Container,
  signal?: AbortSignal,
): Promise<HandOver | undefined> {
  const work = await realpath(paths.work);
  const file = workPaths({ ...paths, work }).handOver(container);
  let wake = (): void => undefined;
  const watcher = watchFor(work, basename(file), () => wake());
  const stop = (): void => wake();
  signal?.addEventListener("abort", stop);
  try {
    while (signal?.aborted !== true) {
      // Before the file is read: what happens meanwhile is not missed.
      const told = new Promise<void>((resolve) => {
        wake = resolve;
      });
      const how = await readHandOver(file);
      if (how !== undefined) {
        return how;
      }
      const timer = setTimeout(() => wake(), LOOK_MS);
      await told;
      clearTimeout(timer);
    }
    return undefined;
  } finally {
    signal?.removeEventListener("abort", stop);
    watcher?.close();
  }
}

/** Undefined where the node has no watch left: then it is looked for now and then. */
function watchFor(folder: string, name: string, onChange: () => void) {
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

async function readHandOver(file: string): Promise<HandOver | undefined> {
  const text = await readPlain(file, MAX_BYTES).then(String, () => "");
  return text === "done" || text === "failed" ? text : undefined;
}
