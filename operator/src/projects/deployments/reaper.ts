/** Ends, in the ledger, the open deployments of projects that were deleted before their end was recorded. */

import { setTimeout as sleep } from "node:timers/promises";
import type { KubeClient, Store } from "@slipway/controller-runtime";
import type { Project } from "@slipway/crds";
import { type DeploymentKey, type Ledger, listOpenDeployments, supersedeDeployment } from "@slipway/ledger";
import type { Logger } from "@slipway/process";
import { projectResource } from "../../resources.ts";
import { projectRefOf } from "../quotas/reaper.ts";

const PERIOD_MS = 60_000;
/** A deployment that is open for longer is checked, and left open as long as its project has it. */
const IDLE_SECONDS = 120;

/** The ledger's deployments without an end. Each call throws when the ledger is unavailable. */
export interface OpenDeployments {
  /** Those that began at least so long ago. */
  list(idleSeconds: number): Promise<DeploymentKey[]>;
  /** Ends one as superseded. Returns whether it was open. */
  supersede(key: DeploymentKey): Promise<boolean>;
}

/** The real ones. */
export const ledgerDeployments = (ledger: Ledger): OpenDeployments => ({
  list: (idleSeconds) => listOpenDeployments(ledger, idleSeconds),
  supersede: (key) => supersedeDeployment(ledger, key),
});

export interface DeploymentReaperOptions {
  deployments: OpenDeployments;
  client: KubeClient;
  projects: Store<Project>;
  log: Logger;
  periodMs?: number;
  idleSeconds?: number;
}

/** Ends abandoned deployments every minute until the signal aborts. */
export async function runDeploymentReaper(
  options: DeploymentReaperOptions,
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    await reapDeployments(options, signal).catch((error: unknown) => {
      if (!signal.aborted) {
        options.log.warn({ err: error }, "abandoned deployments could not be ended");
      }
    });
    await sleep(options.periodMs ?? PERIOD_MS, undefined, { signal }).catch(() => undefined);
  }
}

/**
 * Ends abandoned deployments once. A deployment is recorded only after the project's status, which keeps it until its end
 * is recorded: one that is in no status is abandoned.
 * @throws KubeError, and whatever the ledger throws
 */
export async function reapDeployments(
  { deployments, client, projects, log, idleSeconds = IDLE_SECONDS }: DeploymentReaperOptions,
  signal: AbortSignal,
): Promise<void> {
  if (!projects.hasSynced) {
    return;
  }
  for (const key of await deployments.list(idleSeconds)) {
    const ref = projectRefOf({ organizationId: key.organization_id, projectId: key.project_id });
    if (isListed(projects.get(ref.namespace, ref.name), key)) {
      continue;
    }
    // The memory may be behind: only the live state is proof.
    if (isListed(await client.getOrUndefined<Project>(projectResource, ref, { signal }), key)) {
      continue;
    }
    if (await deployments.supersede(key)) {
      log.info({ project: key.project_id, deployment: key.id }, "ended the deployment of a deleted project");
    }
  }
}

const isListed = (project: Project | undefined, { id }: DeploymentKey): boolean =>
  project?.status?.deployments?.some((deployment) => deployment.id === id) ?? false;
