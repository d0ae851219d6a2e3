import { findPlan, type Project, type ProjectPlan, type ProjectSpec } from "@slipway/crds";
import {
  findQuotaVersion,
  type QuotaDecision,
  quotaRequest,
  releaseQuota,
  replaceQuotaReservation,
  reserveQuota,
} from "@slipway/ledger";
import { failures } from "../errors/catalog.ts";
import { Failure } from "../errors/failure.ts";
import { withLedgerErrors } from "../ledger/availability.ts";
import { projectResource } from "../resources.ts";
import type { Services } from "../services.ts";
import type { ApiProject } from "./api-project.ts";
import { type Change, type ChangeOptions, type ChangeServices, changeProject } from "./change.ts";

/*
 * Quota of plans: what counts against an organization's limit of a plan and against the plan's capacity. Every project that
 * is not paused has a reservation (a row of the ledger's `project_slots`), reserved before the cluster is written:
 *
 *   creation            reserveProjectQuota, then write; releaseProjectQuota when nothing was written after all
 *   resume, plan change,
 *   rollback            changeWithQuota (below)
 *   pause, deletion     readProjectQuota, then write, then releaseProjectQuota
 *
 * A release names the version that was read before: another replica may have reserved again since, to resume.
 * The operator reserves the same quota for what kubectl writes, and corrects what a crash in between left.
 */

export interface ProjectIdentity {
  organizationId: string;
  projectId: string;
}

/** Version of a project's reservation; undefined when it has none. */
export type QuotaVersion = string | undefined;

type QuotaServices = Pick<Services, "ledger" | "catalog">;

/**
 * Reserves the quota that a project with this spec needs, in place of what it has reserved. Idempotent; a paused project
 * needs none.
 *
 * @returns the version of the reservation
 * @throws Failure 409 with the code of the plan's limit or INSUFFICIENT_PLAN_CAPACITY: the former reservation stays;
 * 503 when the capacity cannot be read
 */
export async function reserveProjectQuota(
  { ledger, catalog }: QuotaServices,
  { spec, ...identity }: ProjectIdentity & { spec: ProjectSpec },
): Promise<QuotaVersion> {
  if (spec.paused) {
    return undefined;
  }
  const plan = findPlan(catalog.current, spec.plan);
  const request = quotaRequest(identity, spec, plan);
  const answer = await reserveQuota(ledger, request).catch((error: unknown) => {
    throw failures.planCapacityTemporarilyUnavailable(error);
  });
  const refusal = planQuotaFailure(answer, spec.plan, plan);
  if (refusal) {
    throw refusal;
  }
  return answer.reserved ? answer.version : undefined;
}

/**
 * After a write that failed: changes the reservation to what the live project needs, unless it was reserved again since. When the
 * ledger refuses that, the reservation stays as it is, and the operator corrects it.
 * @param spec of the live project; undefined when it is deleted
 * @param unused the reservation of the write that failed
 */
export async function restoreProjectQuota(
  { ledger, catalog }: QuotaServices,
  { spec, ...identity }: ProjectIdentity & { spec: ProjectSpec | undefined },
  unused: QuotaVersion,
): Promise<void> {
  if (unused === undefined) {
    return;
  }
  if (spec === undefined || spec.paused) {
    return releaseProjectQuota({ ledger }, identity, unused);
  }
  const request = quotaRequest(identity, spec, findPlan(catalog.current, spec.plan));
  await withLedgerErrors(() => replaceQuotaReservation(ledger, request, unused));
}

/** A project's present reservation. @throws Failure 503 when the ledger is unavailable */
export function readProjectQuota(
  { ledger }: Pick<Services, "ledger">,
  { organizationId, projectId }: ProjectIdentity,
): Promise<QuotaVersion> {
  return withLedgerErrors(() => findQuotaVersion(ledger, projectId, organizationId));
}

/**
 * Releases a project's reservation, unless it was reserved again since `known` was read.
 * @throws Failure 503 when the ledger is unavailable: the operator releases it then, within minutes
 */
export async function releaseProjectQuota(
  { ledger }: Pick<Services, "ledger">,
  { organizationId, projectId }: ProjectIdentity,
  known: QuotaVersion,
): Promise<void> {
  if (known === undefined) {
    return;
  }
  await withLedgerErrors(() => releaseQuota(ledger, projectId, organizationId, { version: known }));
}

/** The failure for a refused reservation, with the code that the catalog gives the plan's limit. Pure. */
export function planQuotaFailure(
  answer: QuotaDecision,
  planId: string,
  plan: ProjectPlan | undefined,
): Failure | undefined {
  if (answer.reserved) {
    return undefined;
  }
  const limit = plan?.limit;
  if (answer.reason === "capacity" || !limit) {
    return failures.insufficientPlanCapacity(planId);
  }
  const remaining = Math.max(0, answer.max - answer.used);
  if (remaining === 0 || limit.exceededCode === undefined) {
    return failures.planLimitReached(limit.code, limit.max, limit.counts);
  }
  return failures.planLimitExceeded(limit.exceededCode, limit.max, remaining, limit.counts);
}

/**
 * A change of the spec that may need another quota, which is reserved before the spec is written. When the write is refused,
 * the reservation is changed to what the live spec needs: another replica may have written it between two attempts. After a
 * write whose outcome is unknown (5xx) the new reservation stays: the operator corrects it by what the cluster has.
 * @throws Failure as `changeProject` and `reserveProjectQuota` do
 */
export async function changeWithQuota(
  project: ApiProject,
  services: ChangeServices & Pick<Services, "catalog" | "ledger">,
  change: (spec: ProjectSpec, live: Project) => ProjectSpec,
  options: ChangeOptions = {},
): Promise<Change> {
  const identity = { organizationId: project.organizationId, projectId: project.id };
  let reserved: QuotaVersion;
  try {
    return await changeProject(project, services, change, {
      ...options,
      prepare: async (wanted, live, kube) => {
        await options.prepare?.(wanted, live, kube);
        reserved = await reserveProjectQuota(services, { ...identity, spec: wanted.spec });
      },
    });
  } catch (error) {
    // The operator corrects what cannot be restored now.
    if (error instanceof Failure && error.status < 500) {
      await restore(project, identity, reserved, services).catch(() => undefined);
    }
    throw error;
  }
}

async function restore(
  { resource }: ApiProject,
  identity: { organizationId: string; projectId: string },
  reserved: QuotaVersion,
  services: Pick<Services, "catalog" | "kube" | "ledger">,
): Promise<void> {
  if (reserved === undefined) {
    return;
  }
  const { namespace, name } = resource.metadata;
  const live = await services.kube.getOrUndefined<Project>(projectResource, { namespace, name });
  await restoreProjectQuota(services, { ...identity, spec: live?.spec }, reserved);
}
