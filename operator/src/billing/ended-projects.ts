/** Ends, in the ledger, the histories of projects that are gone without their end, such as one whose finalizer was removed by hand. */

import type { KubeClient, Store } from "@slipway/controller-runtime";
import type { Project } from "@slipway/crds";
import {
  type BillableChangeRow,
  type NumberedChange,
  type OpenHistory,
  recordInParts,
} from "@slipway/ledger";
import { type Clock, type Logger, sleep } from "@slipway/process";
import { projectRefOf } from "../projects/quotas/reaper.ts";
import { projectResource } from "../resources.ts";
import type { ChangeLedger } from "./change-recorder.ts";

export interface OpenHistories extends ChangeLedger {
  /** Projects that have begun and whose end is not recorded. */
  open(): Promise<readonly OpenHistory[]>;
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

/** When projects were last known to exist, by uid. */
export type LastSeen = Map<string, Date>;

/** Ends them every ten minutes until the signal aborts. */
export async function runEndedProjects(options: EndedProjectsOptions, signal: AbortSignal): Promise<void> {
  const seen: LastSeen = new Map();
  while (!signal.aborted) {
    await endGoneProjects(options, seen, signal).catch((error: unknown) => {
      if (!signal.aborted) {
        options.log.warn({ err: error }, "histories of projects that are gone could not be ended");
      }
    });
    await sleep(options.clock, PERIOD_MS, signal);
  }
}

/**
 * Ends histories whose object exists no more, when that was last known to exist: after a time without an observation no more is charged than
 * was before. Uids are given once: what is gone does not come back.
 * @throws whatever the ledger throws
 */
export async function endGoneProjects(
  { ledger, client, projects, owns, clock, log }: EndedProjectsOptions,
  seen: LastSeen,
  signal: AbortSignal,
): Promise<void> {
  if (!projects.hasSynced) {
    return;
  }
  const gone: { project: OpenHistory; at: Date | undefined }[] = [];
  const open = await ledger.open();
  const uids = new Set(open.map(({ projectUid }) => projectUid));
  for (const uid of seen.keys()) {
    if (!uids.has(uid)) {
      seen.delete(uid);
    }
  }
  for (const project of open) {
    const ref = projectRefOf(project);
    const isIt = (found: Project | undefined) => found?.metadata.uid === project.projectUid;
    if (!owns(ref.namespace) || gone.length >= LIMIT) {
      continue;
    }
    const now = clock.now();
    if (isIt(projects.get(ref.namespace, ref.name))) {
      seen.set(project.projectUid, now);
      continue;
    }
    try {
      // The memory may be behind: only the live state is proof.
      const live = await client.getOrUndefined<Project>(projectResource, ref, { signal });
      if (isIt(live)) {
        seen.set(project.projectUid, now);
      } else {
        gone.push({ project, at: seen.get(project.projectUid) ?? project.meteredUntil });
      }
    } catch (error) {
      signal.throwIfAborted();
      log.warn({ err: error, namespace: ref.namespace }, "whether a project is gone could not be read");
    }
  }
  const last = await ledger.last(gone.map(({ project }) => project.projectUid));
  const ends = gone.flatMap(({ project: { meteredUntil: _, ...project }, at }) => {
    const before = last.get(project.projectUid);
    // Another may have recorded the end since.
    return before?.state === undefined ? [] : [{ ...project, ...endAfter(before, at) }];
  });
  const recorded = await recordEnds(ends, ledger, log);
  if (recorded > 0) {
    log.warn({ projects: recorded }, "ended histories of projects that are gone");
  }
}

/** One that the ledger refuses keeps back no other. @returns how many are recorded */
async function recordEnds(
  ends: readonly BillableChangeRow[],
  ledger: ChangeLedger,
  log: Logger,
): Promise<number> {
  if (ends.length === 0) {
    return 0;
  }
  const outcomes = await recordInParts(ends, {
    record: (part) => ledger.record(part),
    refused: ({ projectId }, error) => {
      log.error({ err: error, project: projectId }, "the end of a project that is gone is refused");
      return [];
    },
    tooSlow: ({ projectId }, error) => {
      log.error(
        { err: error, project: projectId },
        "the end of a project that is gone takes the ledger too long",
      );
      return [];
    },
  });
  return outcomes.flat().filter(({ outcome }) => outcome === "recorded" || outcome === "late").length;
}

const endAfter = (
  { number, at: before }: NumberedChange,
  at: Date | undefined,
): Pick<BillableChangeRow, "number" | "at" | "state"> => ({
  number: number + 1,
  at: new Date(Math.max(at?.getTime() ?? 0, before.getTime())),
  state: undefined,
});
