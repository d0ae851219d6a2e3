/**
 * A plan that changes in the background, one instance after the other, and may fail. The spec requests a plan,
 * `status.plan` is the one in force, `status.planChange` is a change that runs or the last one that failed. A
 * request is identified by its plan and its time; one that has failed is never retried automatically.
 */

import { annotations, type Project, type ProjectStatus } from "@slipway/crds";
import type { Clock } from "@slipway/process";
import type { ProjectContext } from "../projects/kind.ts";
import { isReady } from "./common/pods.ts";
import type { Database } from "./database.ts";
import type { ClusterState, DatabaseDriver, LiveDatabase } from "./driver.ts";
import { settingsHashOf } from "./running-template.ts";
import type { DatabasePlatform } from "./settings.ts";

export type PlanChange = NonNullable<ProjectStatus["planChange"]>;

/** What was observed of the project, built from {@link planToBuild}. */
export interface Seen {
  now: Date;
  /** Every requested instance has been created for that plan, and serves. */
  done: boolean;
  /** Milliseconds from its start in which a change must be done. */
  deadlineMs: number;
  /** The requested plan is not available here. */
  refused: boolean;
}

/** The plan and its change in a project's status. */
export interface PlanStatus {
  /** Plan in force; undefined before the first. */
  plan?: string;
  change?: PlanChange;
}

type Request = Pick<Project["spec"], "plan" | "planRequestedAt">;

/** The plan that the instances are created for: the requested one, until the change to it has failed. */
export function planToBuild({ plan, planRequestedAt }: Request, planStatus: PlanStatus): string {
  return hasFailed({ plan, planRequestedAt }, planStatus) ? (planStatus.plan ?? plan) : plan;
}

/** The status after what was observed. */
export function nextPlanStatus(request: Request, planStatus: PlanStatus, seen: Seen): PlanStatus {
  const { plan: before } = planStatus;
  // A project on a new plan that is its first has nothing to go back to.
  if (before === undefined || before === request.plan) {
    return { plan: request.plan };
  }
  if (hasFailed(request, planStatus)) {
    return planStatus;
  }
  const change = underWay(request, planStatus) ?? begin(request, before, seen.now);
  if (seen.refused || isLate(change, seen)) {
    return { plan: before, change: { ...change, status: "failed", finishedAt: seen.now.toISOString() } };
  }
  return seen.done ? { plan: request.plan } : { plan: before, change };
}

/** Milliseconds until a change that runs is late; undefined when none runs. */
export function lateInMs({ change }: PlanStatus, { now, deadlineMs }: Pick<Seen, "now" | "deadlineMs">) {
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

function hasFailed(request: Request, planStatus: PlanStatus): boolean {
  return about(request, planStatus)?.status === "failed";
}

function underWay(request: Request, planStatus: PlanStatus): PlanChange | undefined {
  const change = about(request, planStatus);
  return change?.status === "in_progress" ? change : undefined;
}

/** The change, if it is about this request. */
function about({ plan, planRequestedAt }: Request, { change }: PlanStatus): PlanChange | undefined {
  return change?.toPlan === plan && change.requestedAt === planRequestedAt ? change : undefined;
}

/** What was observed of a database. */
export interface PlanFindings {
  database: Database;
  live: LiveDatabase;
  clusterState?: ClusterState;
}

export function planStatusOf(status: ProjectStatus | undefined): PlanStatus {
  return { plan: status?.plan, change: status?.planChange };
}

/**
 * Whether every requested instance was created from the current manifests, and serves. A paused project has no pods, and so no outdated ones. Pure.
 */
export function isRolledOut(
  driver: Pick<DatabaseDriver, "desired">,
  { database, live, clusterState }: Partial<PlanFindings> & Pick<PlanFindings, "database">,
): boolean {
  if (database.paused) {
    return true;
  }
  const wanted = settingsHashOf(driver, database);
  const pods = live?.pods ?? [];
  return (
    clusterState !== undefined &&
    clusterState.missing === undefined &&
    clusterState.underWay === undefined &&
    pods.length === database.instances &&
    pods.every((pod) => isReady(pod) && pod.metadata.annotations?.[annotations.settingsHash] === wanted)
  );
}

/** Until the next reconcile when one is needed immediately, in milliseconds. */
const IMMEDIATE_REQUEUE_MS = 100;

/**
 * Advances a change of plan and reports it.
 * @param found what was observed of the database; nothing when its spec was rejected
 * @returns milliseconds until the next decision; undefined when no change runs
 */
export function changePlan(
  { spec }: Project,
  found: Partial<PlanFindings>,
  driver: Pick<DatabaseDriver, "changesPlansInBackground" | "desired">,
  { clock, platform }: { clock: Clock; platform: Pick<DatabasePlatform, "planChangeMs"> },
  context: ProjectContext,
): number | undefined {
  if (!driver.changesPlansInBackground) {
    return undefined;
  }
  const before = planStatusOf(context.status);
  const { database } = found;
  const instances = database?.instances ?? spec.instances ?? 1;
  const seen = {
    now: clock.now(),
    deadlineMs: platform.planChangeMs * instances,
    refused: database !== undefined && database.plan.plan !== planToBuild(spec, before),
    done: database !== undefined && spec.plan !== before.plan && isRolledOut(driver, { ...found, database }),
  };
  const planStatus = nextPlanStatus(spec, before, seen);
  const failed = reportPlanChange(planStatus, before, context);
  // What was built for a plan that is not to be is taken back immediately.
  return failed ? IMMEDIATE_REQUEUE_MS : lateInMs(planStatus, seen);
}

/**
 * Writes a plan's status into status and conditions.
 * @returns whether a change has failed just now
 */
function reportPlanChange(
  { plan, change }: PlanStatus,
  before: PlanStatus,
  { conditions, event, status }: Pick<ProjectContext, "conditions" | "event" | "status">,
): boolean {
  const type = "PlanChanging";
  status.plan = plan;
  status.planChange = change;
  if (!change) {
    conditions.remove(type);
    return false;
  }
  if (change.status === "in_progress") {
    const message = `The plan changes to ${change.toPlan}, one instance after the other.`;
    conditions.set({ type, status: "True", reason: "PlanChangeInProgress", message });
    return false;
  }
  const message = `The plan could not be changed to ${change.toPlan}; ${plan ?? "the one before"} stays in force.`;
  conditions.set({ type, status: "False", reason: "PlanChangeFailed", message });
  const failed = before.change?.status !== "failed" || before.change.finishedAt !== change.finishedAt;
  if (failed) {
    event("Warning", "PlanChangeFailed", message);
  }
  return failed;
}
