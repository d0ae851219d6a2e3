/** Frees the slots of projects that are gone or paused: whoever took them ended before it could give them back. */

import { setTimeout as sleep } from "node:timers/promises";
import type { KubeClient, Store } from "@slipway/controller-runtime";
import { organizationNamespace, type Project } from "@slipway/crds";
import type { Logger } from "@slipway/process";
import { projectResource } from "../../resources.ts";
import { LedgerUnavailableError, type ProjectIdentity, type QuotaReservations } from "./reservations.ts";

const PERIOD_MS = 60_000;
/** A creation takes its slot before it writes the project, and has that long for it. */
const IDLE_SECONDS = 120;

export interface QuotaReaperOptions {
  quotas: QuotaReservations;
  client: KubeClient;
  projects: Store<Project>;
  log: Logger;
  periodMs?: number;
  idleSeconds?: number;
}

/** Looks through the slots every minute until the signal aborts. */
export async function runQuotaReaper(options: QuotaReaperOptions, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    await reapQuotas(options, signal).catch((error: unknown) => {
      // The quotas has told of the ledger already.
      if (!(error instanceof LedgerUnavailableError) && !signal.aborted) {
        options.log.warn({ err: error }, "slots could not be looked through");
      }
    });
    await sleep(options.periodMs ?? PERIOD_MS, undefined, { signal }).catch(() => undefined);
  }
}

/** Looks through the slots once. @throws LedgerUnavailableError, KubeError */
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
    if (needsSlot(projects.get(ref.namespace, ref.name))) {
      continue;
    }
    // The memory may be behind: only the live state is proof.
    if (needsSlot(await client.getOrUndefined<Project>(projectResource, ref, { signal }))) {
      continue;
    }
    await quotas.reap(identity, idleSeconds);
  }
}

/** A project that is being deleted gives its slot back itself, at the end. */
const needsSlot = (project: Project | undefined): boolean => project !== undefined && !project.spec.paused;

/** Where the project of a slot is. */
export function projectRefOf({ organizationId, projectId }: ProjectIdentity): {
  namespace: string;
  name: string;
} {
  return { namespace: organizationNamespace(organizationId), name: projectId };
}
