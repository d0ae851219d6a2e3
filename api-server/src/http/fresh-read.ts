import type { Services } from "../services.ts";

/** Milliseconds that a read waits for the memory to catch up with a write; then it answers what it has. */
const LIMIT_MS = 2_000;

/**
 * Waits until the projects in memory are as new as the newest write of the caller's organization, made through whichever
 * replica. Nearly always they are: then nothing is waited for, and there is no promise.
 */
export function seeNewestWrite(
  newestWrite: string | undefined,
  { projects, metrics }: Pick<Services, "projects" | "metrics">,
): void | Promise<void> {
  if (newestWrite === undefined || projects.hasSeen(newestWrite)) return;
  return projects.waitUntilSeen(newestWrite, LIMIT_MS).then((seen) => metrics.waitedForWrite(seen));
}
