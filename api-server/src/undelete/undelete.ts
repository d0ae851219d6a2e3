import { setTimeout as sleep } from "node:timers/promises";
import {
  annotations,
  type DeletedProject,
  fieldManagers,
  type Project,
  specOfRecreated,
} from "@slipway/crds";
import type { Usage } from "@slipway/ledger";
import { failures } from "../errors/catalog.ts";
import { withClusterErrors } from "../organizations/cluster-errors.ts";
import { refuseStart } from "../organizations/service.ts";
import type { ApiProject } from "../projects/api-project.ts";
import { readLive } from "../projects/creation/write.ts";
import {
  type ProjectIdentity,
  type QuotaVersion,
  releaseProjectQuota,
  reserveProjectQuota,
} from "../projects/quotas.ts";
import type { Services } from "../services.ts";
import { readDeleted, readRecord, requestUndelete } from "./cluster.ts";

/** Has a deleted project created again; the operator does it. */

export type UndeleteServices = Pick<Services, "catalog" | "kube" | "ledger" | "now" | "projects" | "usage">;

/** How long an answer waits for the operator, and between two reads, in milliseconds. */
const LIMIT_MS = 20_000;
const POLL_INTERVAL_MS = 200;

/**
 * Undeletes a project, with the quota that its creation would need, and resolves once it is as it was; its instances start in the
 * background. A repeat while it is under way waits for the same.
 * @throws Failure 402, 409 as for a creation; 404 when it has expired meanwhile; 409 when another project has its id or a volume
 * is gone; 503 after the limit
 */
export async function undeleteProject(
  record: DeletedProject,
  organizationId: string,
  services: UndeleteServices,
  limitMs = LIMIT_MS,
): Promise<ApiProject> {
  const { kube, now, usage } = services;
  const identity = { organizationId, projectId: record.spec.projectRef.name };
  const live = await withClusterErrors(readLive(kube, identity));
  if (live) {
    return isUndeletedFrom(live, record)
      ? waitUntilWhole(record, identity, services, limitMs)
      : refuseExisting();
  }
  const deleted = await readDeleted(kube, record);
  if (deleted === undefined) {
    throw failures.deletedProjectNotFound();
  }
  await refuseStart(services, organizationId);
  const counted = usageOf(deleted);
  await usage.reserve(organizationId, counted);
  let quota: QuotaVersion;
  try {
    quota = await reserveProjectQuota(services, { ...identity, spec: specOfRecreated(deleted.spec) });
    await requestUndelete(kube, record, now(), () => {
      throw failures.deletedProjectNotFound();
    });
    return await waitUntilWhole(record, identity, services, limitMs);
  } catch (error) {
    // What is under way keeps it, and so does another project of this id; of what was refused nothing is left.
    const { status, code } = error as { status?: number; code?: string };
    if (status !== 503 && code !== "PROJECT_EXISTS") {
      await releaseProjectQuota(services, identity, quota).catch(() => undefined);
      await usage.release(organizationId, counted);
    }
    throw error;
  }
}

/** What it counts for against the organization's ceilings; its variables are counted by the operator. */
function usageOf({ metadata: { name }, spec }: Project): Usage[] {
  const domains = spec.customDomains?.length ?? 0;
  return [
    { kind: "projects", name, amount: 1 },
    ...(domains > 0 ? [{ kind: "customDomains", name, amount: domains } as const] : []),
  ];
}

async function waitUntilWhole(
  record: DeletedProject,
  identity: ProjectIdentity,
  { kube, projects }: UndeleteServices,
  limitMs: number,
): Promise<ApiProject> {
  for (let waited = 0; waited < limitMs; waited += POLL_INTERVAL_MS) {
    const live = await withClusterErrors(readLive(kube, identity));
    const current = await readRecord(kube, record);
    const isOver =
      current?.metadata.uid !== record.metadata.uid || current?.metadata.deletionTimestamp !== undefined;
    if (live && !isUndeletedFrom(live, record)) {
      // Of a refused one the request is withdrawn; of one that has come back the record is deleted.
      return isOver ? projects.observe(live) : refuseExisting();
    }
    if (live === undefined && isOver) {
      throw failures.deletedProjectNotFound();
    }
    if (live === undefined && current?.spec.undeleteRequestedAt === undefined) {
      throw failures.deletedVolumeMissing();
    }
    await sleep(POLL_INTERVAL_MS);
  }
  throw failures.undeletePending();
}

/**
 * The project of an undelete that has ended, so that a repeat of its request is answered as it was: it was created by the operator for
 * a deleted one, which is in its managed fields. Undefined of any other.
 * @throws Failure 503, also where the undelete has not ended yet and its record is gone
 */
export async function findUndeleted(
  identity: ProjectIdentity,
  { kube, projects }: Pick<UndeleteServices, "kube" | "projects">,
): Promise<ApiProject | undefined> {
  const live = await withClusterErrors(readLive(kube, identity));
  if (live === undefined || live.metadata.deletionTimestamp !== undefined || !isUndeleted(live)) {
    return undefined;
  }
  if (live.metadata.annotations?.[annotations.undeletedFrom] !== undefined) {
    throw failures.undeletePending();
  }
  return projects.observe(live);
}

/** Nothing else of a project that is not being deleted is written by this manager. */
const isUndeleted = ({ metadata }: Project): boolean => {
  const { managedFields = [] } = metadata as { managedFields?: { manager?: string }[] };
  return managedFields.some(({ manager }) => manager === fieldManagers.deletedProject);
};

const isUndeletedFrom = ({ metadata }: Project, record: DeletedProject): boolean =>
  metadata.annotations?.[annotations.undeletedFrom] === record.metadata.name;

function refuseExisting(): never {
  throw failures.projectExists();
}
