import { findPlan, type ProjectPlan, type ProjectSpec } from "@slipway/crds";
import {
  findSlotVersion,
  releaseSlot,
  retakeSlot,
  type SlotAnswer,
  slotRequest,
  takeSlot,
} from "@slipway/ledger";
import { failures } from "../errors/catalog.ts";
import type { Failure } from "../errors/failure.ts";
import { askLedger } from "../ledger/errors.ts";
import type { Services } from "../services.ts";

/*
 * Slots: what counts against an organization's limits and a plan's capacity. Every project that is not paused holds
 * one, and takes it before the cluster is written:
 *
 *   creation            takeProjectSlot, then write; releaseProjectSlot when nothing was written after all
 *   resume, plan change,
 *   rollback            changeWithSlot (change-with-quota.ts)
 *   pause, deletion     knownSlot, then write, then releaseProjectSlot
 *
 * What is released is the slot as it was known before: another replica may have taken it again since, to resume.
 * The operator takes the same slots for what kubectl writes, and sets right what a crash in between left.
 */

export interface ProjectIdentity {
  organizationId: string;
  projectId: string;
}

/** A slot as it is at one time; undefined when the project holds none. */
export type KnownSlot = string | undefined;

type SlotServices = Pick<Services, "ledger" | "catalog">;

/**
 * Takes the slot that a project with this spec needs, in place of the one that it holds. Asking again for the same is
 * no error, and a paused project needs none.
 *
 * @returns the slot as it is then
 * @throws Failure 409 with the code of the plan's limit or INSUFFICIENT_PLAN_CAPACITY: the slot held before stays;
 * 503 when the capacity cannot be told
 */
export async function takeProjectSlot(
  { ledger, catalog }: SlotServices,
  { spec, ...identity }: ProjectIdentity & { spec: ProjectSpec },
): Promise<KnownSlot> {
  if (spec.paused) {
    return undefined;
  }
  const plan = findPlan(catalog.current, spec.plan);
  const request = slotRequest(identity, spec, plan);
  const answer = await takeSlot(ledger, request).catch((error: unknown) => {
    throw failures.planCapacityTemporarilyUnavailable(error);
  });
  const refusal = slotFailure(answer, spec.plan, plan);
  if (refusal) {
    throw refusal;
  }
  return answer.taken ? answer.version : undefined;
}

/**
 * Makes a slot that was taken in vain the one that the project needs as it is live, unless it was taken again since. A
 * refusal leaves it: what is live was there first, and the operator sets it right.
 * @param live the project's spec; undefined when the project is gone
 */
export async function restoreProjectSlot(
  { ledger, catalog }: SlotServices,
  { spec, ...identity }: ProjectIdentity & { spec: ProjectSpec | undefined },
  inVain: KnownSlot,
): Promise<void> {
  if (inVain === undefined) {
    return;
  }
  if (spec === undefined || spec.paused) {
    return releaseProjectSlot({ ledger }, identity, inVain);
  }
  const request = slotRequest(identity, spec, findPlan(catalog.current, spec.plan));
  await askLedger(() => retakeSlot(ledger, request, inVain));
}

/** The slot that a project holds now. @throws Failure 503 when the ledger cannot be asked */
export function knownSlot(
  { ledger }: Pick<Services, "ledger">,
  { organizationId, projectId }: ProjectIdentity,
): Promise<KnownSlot> {
  return askLedger(() => findSlotVersion(ledger, projectId, organizationId));
}

/**
 * Gives a project's slot back, unless it was taken again since it was as known.
 * @throws Failure 503 when the ledger cannot be asked: the operator gives the slot back then, within minutes
 */
export async function releaseProjectSlot(
  { ledger }: Pick<Services, "ledger">,
  { organizationId, projectId }: ProjectIdentity,
  known: KnownSlot,
): Promise<void> {
  if (known === undefined) {
    return;
  }
  await askLedger(() => releaseSlot(ledger, projectId, organizationId, { version: known }));
}

/** The refusal that an answer is, with the code that the catalog gives the plan's limit. Pure. */
export function slotFailure(
  answer: SlotAnswer,
  planId: string,
  plan: ProjectPlan | undefined,
): Failure | undefined {
  if (answer.taken) {
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
