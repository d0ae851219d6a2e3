/** Which hours of persistent storage a job owes, and what they cost. Pure and exact. */

import {
  type Catalog,
  formatDecimal,
  organizationOfNamespace,
  type Project,
  parseDecimal,
  timesDecimal,
} from "@slipway/crds";
import type { StorageHour } from "@slipway/ledger";

export const HOUR_MS = 3_600_000;

/** Whether a project's storage is charged by the hour: a job's, as long as the project exists, paused too. */
export const isMetered = ({ spec }: Project): boolean =>
  spec.type === "job" && spec.storage?.persistent === true;

/** Whether the project is accepted, by its status. */
export const isAccepted = ({ status }: Project): boolean =>
  status?.conditions?.some(({ type, status: value }) => type === "Accepted" && value === "True") ?? false;

/** When an hour of a project begins; the first with its creation. Milliseconds. */
export function hourStart(project: Project, index: number): number {
  return createdAt(project) + index * HOUR_MS;
}

/** The last hour that has begun: by now, or by the project's deletion. */
export function lastStartedHour(project: Project, now: Date): number {
  const deleted = Date.parse(project.metadata.deletionTimestamp ?? "");
  const until = Number.isNaN(deleted) ? now.getTime() : Math.min(now.getTime(), deleted);
  return Math.floor((until - createdAt(project)) / HOUR_MS);
}

/** The price of a GB for an hour in BRL cents: that of the first persistent storage plan; undefined without one. */
export function pricePerGbHour({ storagePlans }: Pick<Catalog, "storagePlans">): string | undefined {
  return storagePlans.find(({ persistent }) => persistent)?.prices.hourly;
}

/** Hours `first` to `last` of a project at a price. */
export function hoursOf(project: Project, first: number, last: number, price: string): StorageHour[] {
  const { namespace = "", name, uid = "" } = project.metadata;
  const gb = project.spec.storage?.capacity ?? 0;
  const amount = formatDecimal(timesDecimal(parseDecimal(price), BigInt(gb)));
  return Array.from({ length: Math.max(0, last - first + 1) }, (_, at) => ({
    organization_id: organizationOfNamespace(namespace) ?? "",
    project_id: name,
    project_uid: uid,
    hour_index: first + at,
    from: new Date(hourStart(project, first + at)),
    gb,
    price_per_gb_hour: price,
    amount,
  }));
}

const createdAt = ({ metadata }: Project): number => Date.parse(metadata.creationTimestamp ?? "");
