/** Releases the quotas of deleted or paused projects: the process that reserved them ended before it could release them. */

import { setTimeout as sleep } from "node:timers/promises";
import type { KubeClient, Store } from "@slipway/controller-runtime";
import { organizationNamespace, type Project } from "@slipway/crds";
import type { Logger } from "@slipway/process";
import { projectResource } from "../../resources.ts";
import { LedgerUnavailableError, type ProjectIdentity } from "./quota-ledger.ts";
import type { QuotaReservations } from "./reservations.ts";

const PERIOD_MS = 60_000;
/** A creation reserves its quota before it writes the project, and has this long for it. */
const IDLE_SECONDS = 120;

export interface QuotaReaperOptions {
  quotas: QuotaReservations;
  client: KubeClient;
  projects: Store<Project>;
  log: Logger;
  periodMs?: number;
  idleSeconds?: number;
}

/** Releases leftover quotas every minute until the signal aborts. */
export async function runQuotaReaper(options: QuotaReaperOptions, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    await reapQuotas(options, signal).catch((error: unknown) => {
      // The reservations have logged that the ledger is unavailable.
      if (!(error instanceof LedgerUnavailableError) && !signal.aborted) {
        options.log.warn({ err: error }, "leftover quotas could not be released");
      }
    });
    await sleep(options.periodMs ?? PERIOD_MS, undefined, { signal }).catch(() => undefined);
  }
}

/** Releases leftover quotas once. @throws LedgerUnavailableError, KubeError */
export async function reapQuotas(
  { quotas, client, projects, idleSeconds = IDLE_SECONDS }: QuotaReaperOptions,
  signal: AbortSignal,
): Promise<void> {
  if (!projects.hasSynced) {
    return;
  }
  for (const row of await quotas.refresh()) {
    if (row.idle_seconds < idleSeconds) {
      continue;
    }
    const identity = { organizationId: row.organization_id, projectId: row.project_id };
    const ref = projectRefOf(identity);
    if (needsQuota(projects.get(ref.namespace, ref.name))) {
      continue;
    }
    // The cache may be behind: only the live state is proof.
    if (needsQuota(await client.getOrUndefined<Project>(projectResource, ref, { signal }))) {
      continue;
    }
    await quotas.reap(identity, idleSeconds);
  }
}

/** A project that is being deleted releases its quota at the end of its deletion. */
const needsQuota = (project: Project | undefined): boolean => project !== undefined && !project.spec.paused;

/** The project of a quota. */
export function projectRefOf({ organizationId, projectId }: ProjectIdentity): {
  namespace: string;
  name: string;
} {
  return { namespace: organizationNamespace(organizationId), name: projectId };
}
