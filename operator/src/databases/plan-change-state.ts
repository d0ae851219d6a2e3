/**
 * A plan that changes in the background, one instance after the other, and may fail. The spec asks for a plan,
 * `status.plan` is the one in force, `status.planChange` tells of a change that runs or of the last one that failed. A
 * request is told from another by its plan and its moment; one that has failed is never tried again by itself. Pure.
 */

import type { Project, ProjectStatus } from "@slipway/crds";

export type PlanChange = NonNullable<ProjectStatus["planChange"]>;

/** What was seen of the project, built from {@link planToBuild}. */
export interface Seen {
  now: Date;
  /** Every instance that is asked for is made from that plan, and serves. */
  done: boolean;
  /** Milliseconds from its start in which a change must be done. */
  deadlineMs: number;
  /** The plan that is asked for cannot be had here. */
  refused: boolean;
}

/** Where a project stands, as its status tells it. */
export interface Standing {
  /** Plan in force; undefined before the first. */
  plan?: string;
  change?: PlanChange;
}

type Request = Pick<Project["spec"], "plan" | "planRequestedAt">;

/** The plan that the instances are made from: the one asked for, until the change to it has failed. */
export function planToBuild({ plan, planRequestedAt }: Request, standing: Standing): string {
  return hasFailed({ plan, planRequestedAt }, standing) ? (standing.plan ?? plan) : plan;
}

/** Where the project stands now. */
export function decide(request: Request, standing: Standing, seen: Seen): Standing {
  const { plan: before } = standing;
  // A project on a new plan that is its first has nothing to go back to.
  if (before === undefined || before === request.plan) {
    return { plan: request.plan };
  }
  if (hasFailed(request, standing)) {
    return standing;
  }
  const change = underWay(request, standing) ?? begin(request, before, seen.now);
  if (seen.refused || isLate(change, seen)) {
    return { plan: before, change: { ...change, status: "failed", finishedAt: seen.now.toISOString() } };
  }
  return seen.done ? { plan: request.plan } : { plan: before, change };
}

/** Milliseconds until a change that runs is late; undefined when none runs. */
export function lateInMs({ change }: Standing, { now, deadlineMs }: Pick<Seen, "now" | "deadlineMs">) {
  return change?.status === "in_progress"
    ? Math.max(Date.parse(change.startedAt) + deadlineMs - now.getTime(), 0)
    : undefined;
}

function isLate(change: PlanChange, seen: Seen): boolean {
  return !seen.done && lateInMs({ change }, seen) === 0;
}

function begin({ plan, planRequestedAt }: Request, before: string, now: Date): PlanChange {
  return {
    status: "in_progress",
    fromPlan: before,
    toPlan: plan,
    requestedAt: planRequestedAt,
    startedAt: now.toISOString(),
  };
}

function hasFailed(request: Request, standing: Standing): boolean {
  return about(request, standing)?.status === "failed";
}

function underWay(request: Request, standing: Standing): PlanChange | undefined {
  const change = about(request, standing);
  return change?.status === "in_progress" ? change : undefined;
}

/** The change, if it is about this request. */
function about({ plan, planRequestedAt }: Request, { change }: Standing): PlanChange | undefined {
  return change?.toPlan === plan && change.requestedAt === planRequestedAt ? change : undefined;
}
