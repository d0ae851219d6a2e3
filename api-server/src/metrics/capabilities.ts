import {
  type Catalog,
  isDatabaseType,
  isInstanceType,
  type Project,
  type ProjectType,
  SNAPSHOT_REFRESH_SECONDS,
} from "@slipway/crds";
import { hasMetrics } from "../analytics/instances.ts";
import { planInForce } from "../databases/plan.ts";

/** Which snapshots a project's plan includes. Pure. */

const engineGroups = [
  "resources",
  "connections",
  "activity",
  "cache",
  "storage",
  "locks",
  "latency",
  "reliability",
] as const;

const GROUPS: Partial<Record<ProjectType, readonly string[]>> = {
  postgresql: engineGroups,
  mariadb: engineGroups,
  valkey: ["resources", "capacity", "clients", "activity", "key_lifecycle", "profile", "reliability"],
};

export interface Capabilities {
  access: "snapshot" | "none";
  groups: readonly string[];
  refresh_seconds: number;
  /** Only the newest snapshot is kept, no series. */
  history: null;
}

/** What applications on plans with metrics have: requests, and what an instance uses. */
const applicationGroups = ["network", "resources"] as const;

/** A worker answers nobody. */
const workerGroups = ["resources"] as const;

/** Of a type without snapshots, or a plan without them, `access` is `none`. */
export function capabilitiesOf(project: Project, catalog: Catalog): Capabilities {
  const groups = groupsOf(project, catalog);
  return {
    access: groups === undefined ? "none" : "snapshot",
    groups: groups ?? [],
    refresh_seconds: SNAPSHOT_REFRESH_SECONDS,
    history: null,
  };
}

function groupsOf(project: Project, catalog: Catalog): readonly string[] | undefined {
  const { type } = project.spec;
  if (isInstanceType(type)) {
    const groups = type === "worker" ? workerGroups : applicationGroups;
    return hasMetrics(project, catalog) ? groups : undefined;
  }
  return hasSnapshots(project, catalog) ? GROUPS[type] : undefined;
}

function hasSnapshots(project: Project, catalog: Catalog): boolean {
  // Valkey's plans are distinguished by their tier.
  return (
    hasDatabaseMetrics(project, catalog) &&
    (project.spec.type !== "valkey" || metricsOf(project, catalog)?.tier !== undefined)
  );
}

/** Whether the plan of a database has metrics, whatever snapshots its type has. Pure. */
export function hasDatabaseMetrics(project: Project, catalog: Catalog): boolean {
  return isDatabaseType(project.spec.type) && metricsOf(project, catalog)?.access === "snapshot";
}

const metricsOf = (project: Project, { databasePlans }: Catalog) =>
  databasePlans.find(({ plan }) => plan === planInForce(project))?.metrics;
