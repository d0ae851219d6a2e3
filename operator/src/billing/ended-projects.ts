/** Ends, in the ledger, the histories of projects that are gone without their end, such as one whose finalizer was removed by hand. */

import type { KubeClient, Store } from "@slipway/controller-runtime";
import type { Project } from "@slipway/crds";
import type { BillableChangeRow, BillableProject, NumberedChange } from "@slipway/ledger";
import { type Clock, type Logger, sleep } from "@slipway/process";
import { projectRefOf } from "../projects/quotas/reaper.ts";
import { projectResource } from "../resources.ts";
import type { ChangeLedger } from "./change-recorder.ts";

export interface OpenHistories extends ChangeLedger {
  /** Projects that have begun and whose end is not recorded. */
  open(): Promise<readonly BillableProject[]>;
}

export interface EndedProjectsOptions {
  ledger: OpenHistories;
  client: Pick<KubeClient, "getOrUndefined">;
  projects: Store<Project>;
  owns: (namespace: string | undefined) => boolean;
  clock: Clock;
  log: Logger;
}

const PERIOD_MS = 600_000;
/** Most histories that are ended in one round. */
const LIMIT = 500;

/** Ends them every ten minutes until the signal aborts. */
export async function runEndedProjects(options: EndedProjectsOptions, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    await endGoneProjects(options, signal).catch((error: unknown) => {
      if (!signal.aborted) {
        options.log.warn({ err: error }, "histories of projects that are gone could not be ended");
      }
    });
    await sleep(options.clock, PERIOD_MS, signal);
  }
}

/**
 * Ends histories whose object exists no more. Uids are given once: what is gone does not come back.
 * @throws KubeError, and whatever the ledger throws
 */
export async function endGoneProjects(
  { ledger, client, projects, owns, clock, log }: EndedProjectsOptions,
  signal: AbortSignal,
): Promise<void> {
  if (!projects.hasSynced) {
    return;
  }
  const gone: { project: BillableProject; at: Date }[] = [];
  for (const project of await ledger.open()) {
    const ref = projectRefOf(project);
    const isIt = (found: Project | undefined) => found?.metadata.uid === project.projectUid;
    if (!owns(ref.namespace) || isIt(projects.get(ref.namespace, ref.name)) || gone.length >= LIMIT) {
      continue;
    }
    // The memory may be behind: only the live state is proof.
    const live = await client.getOrUndefined<Project>(projectResource, ref, { signal });
    if (!isIt(live)) {
      // One that was restored elsewhere is charged from its creation on.
      const now = clock.now().getTime();
      const next = Date.parse(live?.metadata.creationTimestamp ?? "");
      gone.push({ project, at: new Date(Math.min(now, Number.isNaN(next) ? now : next)) });
    }
  }
  const last = await ledger.last(gone.map(({ project }) => project.projectUid));
  const ends = gone.flatMap(({ project, at }) => {
    const before = last.get(project.projectUid);
    return before === undefined ? [] : [{ ...project, ...endAfter(before, at) }];
  });
  if (ends.length > 0) {
    await ledger.record(ends);
    log.warn({ projects: ends.length }, "ended histories of projects that are gone");
  }
}

const endAfter = (
  { number, at: before }: NumberedChange,
  at: Date,
): Pick<BillableChangeRow, "number" | "at" | "state"> => ({
  number: number + 1,
  at: new Date(Math.max(at.getTime(), before.getTime())),
  state: undefined,
});
