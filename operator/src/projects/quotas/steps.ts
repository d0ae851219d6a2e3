/** The step in which an active project reserves its quota of the organization's limits and the plan's capacity. */

import type { ConditionSet } from "@slipway/controller-runtime";
import {
  organizationOfNamespace,
  type Project,
  type ProjectConditionCatalog,
  type ProjectPlan,
  type ProjectReason,
} from "@slipway/crds";
import { type QuotaDecision, quotaRequest } from "@slipway/ledger";
import { WaitingError } from "../../reconcile-errors.ts";
import { LedgerUnavailableError } from "./quota-ledger.ts";
import type { QuotaReservations } from "./reservations.ts";

const RETRY_MS = 30_000;

/** Reasons of `Accepted` for a project without quota; `LimitExceeded` repeats them. */
const REFUSALS = ["FreeLimitReached", "PlanCapacityReached"] as const;

/**
 * Reserves the quota of an accepted project; a paused one releases it. Queries the ledger only when the reservation is not
 * what the spec needs.
 *
 * @throws WaitingError about `Accepted` when no quota is left, or when the ledger is unavailable and the spec has not been
 * accepted before: what runs already continues
 */
export async function reserveQuota(
  project: Project,
  plan: ProjectPlan,
  quotas: QuotaReservations,
): Promise<void> {
  const identity = identityOf(project);
  if (project.spec.paused) {
    await quotas.releaseOfPaused(identity);
    return;
  }
  const request = quotaRequest(identity, project.spec, plan);
  const answer = await quotas.reserve(request).catch((error: unknown) => {
    if (error instanceof LedgerUnavailableError) {
      return undefined;
    }
    throw error;
  });
  if (answer === undefined) {
    if (wasAccepted(project)) {
      quotas.requeueWhenAvailable(identity);
      return;
    }
    throw new WaitingError("LedgerUnavailable", "The platform's limits cannot be checked now.", {
      condition: "Accepted",
      requeueAfterMs: 5_000,
    });
  }
  if (!answer.reserved) {
    const { reason, message } = refusal(answer, plan);
    throw new WaitingError(reason, message, { condition: "Accepted", requeueAfterMs: RETRY_MS });
  }
}

/** Whether this generation had its quota, by its status. */
export function wasAccepted({ metadata, status }: Project): boolean {
  return (status?.conditions ?? []).some(
    (condition) =>
      condition.type === "Accepted" &&
      condition.status === "True" &&
      condition.observedGeneration === metadata.generation,
  );
}

/** `LimitExceeded` is set as long as reconciles end for want of quota. */
export function setLimitExceeded(
  conditions: ConditionSet<ProjectConditionCatalog>,
  { reason, message }: { reason: string; message: string },
): void {
  const type = "LimitExceeded";
  const refusal = REFUSALS.find((one) => one === reason);
  if (refusal) {
    conditions.set({ type, status: "True", reason: refusal, message });
  } else {
    conditions.remove(type);
  }
}

/** Who a project is in the ledger. */
export function identityOf({ metadata }: Project): { organizationId: string; projectId: string } {
  return {
    organizationId: organizationOfNamespace(metadata.namespace ?? "") ?? "",
    projectId: metadata.name,
  };
}

/** The message leaves out how many are in use, which changes without a change of the project. */
function refusal(
  answer: Exclude<QuotaDecision, { reserved: true }>,
  { plan, limit }: ProjectPlan,
): { reason: ProjectReason; message: string } {
  if (answer.reason === "capacity") {
    return { reason: "PlanCapacityReached", message: `The platform has no capacity left on plan ${plan}.` };
  }
  const kind = limit?.counts ?? "projects";
  return {
    reason: "FreeLimitReached",
    message: `The organization's ${answer.max} ${kind} on plans like ${plan} are in use, or fewer are left than asked for.`,
  };
}
