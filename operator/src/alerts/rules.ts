/** Which rules there are, and what is observed of each. Pure. */

import type { ProjectRequests, ProjectUsage, RequestMinute, UsagePoint } from "@slipway/analytics";
import { parseQuantity } from "@slipway/controller-runtime";
import {
  type AlertRule,
  alertForSeconds,
  isMeasured,
  type MeasuredAlertMetric,
  organizationOfNamespace,
  type Project,
} from "@slipway/crds";
import type { AlertKey } from "@slipway/ledger";
import {
  FORGOTTEN_SECONDS,
  limitsSince,
  type Observation,
  observeDeployments,
  observeRequests,
  observeRuns,
  observeSeries,
  type Point,
} from "./observe.ts";

/** A project with rules. */
export interface WatchedProject {
  organization: string;
  id: string;
  uid: string;
  resource: Project;
  rules: readonly AlertRule[];
}

/** A project with rules; undefined of one that has none. */
export function watched(resource: Project): WatchedProject | undefined {
  const { metadata, spec } = resource;
  const organization = organizationOfNamespace(metadata.namespace ?? "");
  const { alerts = [] } = spec;
  return organization === undefined || alerts.length === 0
    ? undefined
    : { organization, id: metadata.name, uid: metadata.uid ?? "", resource, rules: alerts };
}

/** Names a rule in the ledger. */
export function keyOf({ organization, id, uid }: WatchedProject, { name, metric }: AlertRule): AlertKey {
  return { organizationId: organization, projectId: id, projectUid: uid, name, metric };
}

/** The same as one text. */
export const textOf = ({ projectUid, name, metric }: AlertKey): string => `${projectUid}/${metric}/${name}`;

/** Whether a rule needs what instances use, what requests were answered, or neither. */
export function needs({ rules }: WatchedProject): { usage: boolean; requests: boolean } {
  return {
    usage: rules.some(({ metric }) => isMeasured(metric) && metric !== "error_rate"),
    requests: rules.some(({ metric }) => metric === "error_rate"),
  };
}

/** Seconds before now of which rules need to know what instances used: their time, and whether there is anything at all. */
export function usageLookBackSeconds(projects: readonly WatchedProject[]): number {
  const longest = projects.flatMap(({ rules }) => rules.map(alertForSeconds));
  return Math.max(FORGOTTEN_SECONDS, ...longest) + 120;
}

/** The same of requests: the windows of all of the time in which one of them must have had enough. */
export function requestsLookBackSeconds(projects: readonly WatchedProject[]): number {
  const those = projects.flatMap(({ rules }) => rules.filter(({ metric }) => metric === "error_rate"));
  return FORGOTTEN_SECONDS + Math.max(0, ...those.map(alertForSeconds)) + 120;
}

/**
 * Whether a state that began at a moment is too new to be followed by its opposite: a share of requests is that of one window, and where it is near the
 * threshold it would else change with each evaluation. Other series are on one side for the whole time.
 * @param now seconds since the epoch
 */
export function isHeld(rule: AlertRule, since: Date, now: number): boolean {
  return rule.metric === "error_rate" && now - since.getTime() / 1_000 < alertForSeconds(rule);
}

/** What was measured of one project. */
export interface Measured {
  usage: readonly UsagePoint[];
  requests: readonly RequestMinute[];
}

/** Of a project of which there is nothing. */
export const NOTHING: Measured = { usage: [], requests: [] };

/** By the text of the organization and the project. */
export function measuredBy(usage: readonly ProjectUsage[], requests: readonly ProjectRequests[]) {
  const usageOf = new Map(usage.map((one) => [placeOf(one), one.points]));
  const requestsOf = new Map(requests.map((one) => [placeOf(one), one.minutes]));
  return ({ organization, id }: WatchedProject): Measured => {
    const place = placeOf({ organization, project: id });
    return { usage: usageOf.get(place) ?? [], requests: requestsOf.get(place) ?? [] };
  };
}

const placeOf = ({ organization, project }: { organization: string; project: string }): string =>
  `${organization}/${project}`;

/**
 * What is observed of a rule.
 * @param measured of the project; undefined while that is not known: then nothing is observed of what is measured
 * @param now seconds since the epoch
 */
export function observe(
  project: WatchedProject,
  rule: AlertRule,
  measured: Measured | undefined,
  now: number,
): Observation | undefined {
  const { metric, threshold = 100 } = rule;
  if (metric === "failed_deployment") {
    return observeDeployments(project.resource);
  }
  if (metric === "missed_run") {
    return observeRuns(project.resource);
  }
  const bounds = { threshold, forSeconds: alertForSeconds(rule) };
  if (measured === undefined) {
    return undefined;
  }
  if (metric === "error_rate") {
    return observeRequests(measured.requests, bounds, now);
  }
  // Volumes only grow, and their capacity is measured with them.
  const from = metric === "volume" ? 0 : limitsSince(project.resource);
  return observeSeries(percentages(metric, project.resource, measured.usage), { ...bounds, from }, now);
}

/** In percent of what an instance may use by the status; none without that. */
function percentages(
  metric: Exclude<MeasuredAlertMetric, "error_rate">,
  { status }: Project,
  points: readonly UsagePoint[],
): Point[] {
  type Percentages = Record<"value" | "least", number | null>;
  const percent: (point: UsagePoint) => Percentages = {
    cpu: ({ cpuCores }: UsagePoint) => {
      const value = shareOf(cpuCores, status?.maxCpu);
      return { value, least: value };
    },
    memory: ({ memoryBytes, leastMemoryBytes }: UsagePoint) => ({
      value: shareOf(memoryBytes, status?.maxMemory),
      least: shareOf(leastMemoryBytes, status?.maxMemory),
    }),
    volume: (point: UsagePoint) => ({ value: point.volumePercent, least: point.leastVolumePercent }),
  }[metric];
  return points.flatMap((point) => {
    const { value, least } = percent(point);
    return value === null || least === null ? [] : [{ at: point.at, value, least }];
  });
}

function shareOf(used: number | null, limit: string | undefined): number | null {
  // In billionths.
  const most = Number(parseQuantity(limit ?? "") ?? 0n) / 1e9;
  return used === null || most <= 0 ? null : (used / most) * 100;
}
