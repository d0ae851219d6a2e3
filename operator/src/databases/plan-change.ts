/** How changes of plans that run in the background are seen and told. */

import { resources } from "@slipway/controller-runtime";
import { annotations, type ProjectStatus } from "@slipway/crds";
import type { ProjectContext } from "../projects/kind.ts";
import { isReady } from "./common/pods.ts";
import type { Database } from "./database.ts";
import type { Engine, LiveDatabase, LiveStatefulSet, Tended } from "./driver.ts";
import type { Standing } from "./plan-change-state.ts";

/** What was seen of a database. */
export interface PlanFindings {
  database: Database;
  live: LiveDatabase;
  tended?: Tended;
}

/** Where a project stands by its status. */
export function standingOf(status: ProjectStatus | undefined): Standing {
  return { plan: status?.plan, change: status?.planChange };
}

/**
 * Whether every instance that is asked for is made from what is wanted now, and serves. Nothing of a paused project runs,
 * and so nothing of it is made from anything else. Pure.
 */
export function isMadeAnew(
  engine: Pick<Engine, "desired">,
  { database, live, tended }: Partial<PlanFindings> & Pick<PlanFindings, "database">,
): boolean {
  if (database.paused) {
    return true;
  }
  const wanted = settingsHash(engine, database);
  const pods = live?.pods ?? [];
  return (
    tended !== undefined &&
    tended.missing === undefined &&
    tended.underWay === undefined &&
    pods.length === database.instances &&
    pods.every((pod) => isReady(pod) && pod.metadata.annotations?.[annotations.settingsHash] === wanted)
  );
}

function settingsHash(engine: Pick<Engine, "desired">, database: Database): string | undefined {
  const { kind } = resources.statefulSets;
  const set = engine
    .desired(database)
    .find((object) => object.kind === kind && object.metadata?.name === database.names.main);
  return (set as LiveStatefulSet | undefined)?.spec?.template?.metadata?.annotations?.[
    annotations.settingsHash
  ];
}

/**
 * Writes a standing into status and conditions.
 * @returns whether a change has failed just now
 */
export function tellPlanChange(
  { plan, change }: Standing,
  before: Standing,
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
