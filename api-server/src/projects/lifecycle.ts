import { setTimeout as sleep } from "node:timers/promises";
import { isConflict, KubeError } from "@slipway/controller-runtime";
import {
  type DomainClaim,
  labels,
  organizationNamespace,
  type Project,
  type ProjectPhase,
  type ProjectSpec,
} from "@slipway/crds";
import { hasTombstone, insertTombstone } from "@slipway/ledger";
import { failures } from "../errors/catalog.ts";
import { closeJob, isClosed, refusePending } from "../jobs/before-deletion.ts";
import { withLedgerErrors } from "../ledger/availability.ts";
import { refuseStart } from "../organizations/service.ts";
import { domainClaimResource, projectResource } from "../resources.ts";
import type { Services } from "../services.ts";
import type { ApiProject } from "./api-project.ts";
import { type ChangeServices, changeProject } from "./change.ts";
import { changeWithQuota, type QuotaVersion, readProjectQuota, releaseProjectQuota } from "./quotas.ts";
import { phaseOf } from "./view.ts";

/** Pauses, resumes and deletes projects. */

/** How long an answer waits for the operator. */
const OBSERVED_LIMIT_MS = 2_000;
const POLL_INTERVAL_MS = 50;

/**
 * Pauses a project, and releases its quota unless another call has resumed it meanwhile. Idempotent.
 * @throws Failure
 */
export async function pauseProject(
  project: ApiProject,
  services: ChangeServices & Pick<Services, "ledger" | "logger">,
): Promise<ApiProject> {
  const identity = { organizationId: project.organizationId, projectId: project.id };
  // Who pauses what a budget has paused keeps it so, whatever becomes of the budget.
  const pause = ({ pausedBy: _, ...spec }: ProjectSpec): ProjectSpec => ({ ...spec, paused: true });
  let known: QuotaVersion;
  const { project: paused, changed } = await changeProject(project, services, pause, {
    // Read before the pause, and so before anyone can resume it. Without a ledger the operator releases it.
    prepare: async () => {
      known = await readProjectQuota(services, identity).catch(() => undefined);
    },
  });
  if (changed) {
    await releaseProjectQuota(services, identity, known).catch((error: unknown) => {
      // The project is paused; the operator releases the quota.
      services.logger.warn(
        { err: error, project: project.id },
        "quota of a paused project is not released yet",
      );
    });
  }
  return paused;
}

/** Resumes a paused project. Idempotent. @throws Failure 402, 409 when the plan's quota is exhausted */
export async function resumeProject(
  project: ApiProject,
  services: ChangeServices & Pick<Services, "catalog" | "ledger">,
): Promise<ApiProject> {
  const resume = ({ paused: _, pausedBy: __, ...spec }: ProjectSpec): ProjectSpec => spec;
  const change = await changeWithQuota(project, services, resume, {
    prepare: () => refuseStart(services, project.organizationId),
  });
  return change.project;
}

/**
 * The project's status once the operator has observed the current spec and, where one is expected, the project has reached that status;
 * or as it is after a short wait: instances may end slowly.
 */
export async function statusOnceSeen(
  written: ApiProject,
  { projects }: Pick<Services, "projects">,
  awaited?: ProjectPhase,
): Promise<string> {
  const { generation = 0 } = written.resource.metadata;
  const isSeen = ({ resource: { status } }: ApiProject): boolean =>
    (status?.observedGeneration ?? 0) >= generation && (awaited === undefined || status?.phase === awaited);
  let now = written;
  for (let waited = 0; waited < OBSERVED_LIMIT_MS && !isSeen(now); waited += POLL_INTERVAL_MS) {
    await sleep(POLL_INTERVAL_MS);
    now = (await projects.find(written.organizationId, written.id)) ?? now;
  }
  return phaseOf(now.resource);
}

/** How long an answer waits for the platform to release the project's name and domains. */
export const RELEASE_LIMIT_MS = 25_000;
/** Attempts at a project that changes between the read and the deletion. */
const ATTEMPTS = 10;

/**
 * Deletes a project, and resolves once its name and domains are free and reads everywhere miss it. Of calls at the same
 * time exactly one resolves. A call after an earlier deletion that took longer than its answer continues that one.
 * A Valkey service is deleted in the background: of that, this resolves as soon as it has begun.
 * @throws Failure 409 when it is deleted or being deleted, or is a job with active runs; 503 after the limit, or when ledger or cluster do not answer
 */
export async function deleteProject(
  project: ApiProject,
  services: ChangeServices & Pick<Services, "jobRuns" | "ledger" | "usage">,
): Promise<"deleted" | "deleting"> {
  const { organizationId, id } = project;
  const { spec, metadata } = project.resource;
  if (spec.type === "job") {
    const isLeaving = metadata.deletionTimestamp !== undefined;
    await (isLeaving ? refusePending(project, services) : closeJob(project, services));
  }
  // First: a crash between the two leaves a project that can be deleted again.
  await withLedgerErrors(() => insertTombstone(services.ledger, organizationId, id, spec.name));
  const identity = { organizationId, projectId: id };
  const quota = await readProjectQuota(services, identity).catch(() => undefined);
  const leaving = await beginDeletion(project, services);
  if (inBackground(project.resource)) {
    return "deleting";
  }
  if (!(await services.projects.waitForDeletion(leaving, RELEASE_LIMIT_MS))) {
    throw hasDomain(project.resource) ? failures.domainReleasePending() : failures.projectDeletionPending();
  }
  await releaseClaims(project, services);
  // The operator releases it with the project, or corrects it later; released here, the next creation has it immediately.
  await releaseProjectQuota(services, identity, quota).catch(() => undefined);
  const kinds = ["projects", "customDomains"] as const;
  await services.usage.release(
    organizationId,
    kinds.map((kind) => ({ kind, name: id })),
  );
  return "deleted";
}

/** Whose deletion releases a domain: what the specification has a caller wait for. */
const hasDomain = ({ spec }: Project): boolean => spec.type === "http" && spec.exposure !== "private";

/** Types whose deletion answers before it is complete. */
const inBackground = ({ spec }: Project): boolean => spec.type === "valkey";

/** A project that does not exist: it never did, or is deleted; then none of its claims may be left. @throws Failure 404, 409, 503 */
export async function refuseMissing(
  organizationId: string,
  id: string,
  services: Pick<Services, "kube" | "ledger">,
): Promise<never> {
  const deletedBefore = await withLedgerErrors(() => hasTombstone(services.ledger, organizationId, id));
  if (!deletedBefore) {
    throw failures.projectNotFound();
  }
  await releaseClaims({ organizationId, id }, services);
  throw failures.projectAlreadyDeleted();
}

/** @returns the project whose deletion is to be waited for */
async function beginDeletion(
  { resource }: ApiProject,
  { kube, now }: Pick<Services, "kube" | "now">,
): Promise<Project> {
  const { namespace, name, uid } = resource.metadata;
  const ref = { namespace, name };
  try {
    for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
      const live = await kube.getOrUndefined<Project>(projectResource, ref);
      if (live === undefined || live.metadata.uid !== uid) {
        throw failures.projectAlreadyDeleted();
      }
      const { deletionTimestamp, resourceVersion } = live.metadata;
      if (deletionTimestamp !== undefined) {
        if (inBackground(live)) {
          throw failures.managedServiceOperationInProgress();
        }
        if (now().getTime() - Date.parse(deletionTimestamp) < RELEASE_LIMIT_MS) {
          throw failures.projectAlreadyDeleted();
        }
        return live;
      }
      // Opened again since: a run may have begun.
      if (live.spec.type === "job" && !isClosed(live)) {
        throw failures.jobRunsPending(true);
      }
      try {
        // The version lets exactly one of several concurrent deletions succeed.
        if (await kube.delete(projectResource, ref, { uid, resourceVersion })) {
          return live;
        }
      } catch (error) {
        if (!isConflict(error)) {
          throw error;
        }
      }
    }
  } catch (error) {
    throw error instanceof KubeError ? failures.clusterUnavailable(error) : error;
  }
  throw failures.clusterUnavailable(new Error("the project changes without end"));
}

/**
 * Deletes the claims that a deleted project still has, but not those of a later one of its name. The operator deletes
 * them before the project, as a rule, but it may never have seen one that lived for a moment.
 */
async function releaseClaims(
  { organizationId, id, resource }: Pick<ApiProject, "organizationId" | "id"> & Partial<ApiProject>,
  { kube }: Pick<Services, "kube">,
): Promise<void> {
  const namespace = organizationNamespace(organizationId);
  const uid = resource?.metadata.uid;
  try {
    const labelSelector = `${labels.project}=${id}`;
    const claims = await kube.listAll<DomainClaim>(domainClaimResource, { labelSelector });
    for (const { metadata, spec } of claims) {
      const { projectRef: holder } = spec;
      const isIts =
        holder.namespace === namespace && holder.name === id && holder.uid === (uid ?? holder.uid);
      if (isIts) {
        await kube.delete(domainClaimResource, { name: metadata.name }, { uid: metadata.uid });
      }
    }
  } catch {
    throw failures.domainReleasePending();
  }
}
