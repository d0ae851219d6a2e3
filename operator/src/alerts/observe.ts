/** What is observed of a rule: whether what it watches is over its threshold, and for long enough. Pure. */

import type { RequestMinute } from "@slipway/analytics";
import type { Project } from "@slipway/crds";

/** Seconds of a step that instances' use is read in: a sample is there every 15 to 30. */
export const STEP_SECONDS = 30;
/** Two steps that are further apart say nothing about the time between them. */
const LONGEST_GAP_SECONDS = 90;
/** What was measured longer ago decides nothing new. */
const FRESH_SECONDS = 120;
/** After so long without data nothing is known of what was not firing, */
export const STALE_SECONDS = 300;
/** and after so long nothing of what was. */
export const FORGOTTEN_SECONDS = 900;
/** A share of fewer requests says too little. */
export const LEAST_REQUESTS = 10;
const MINUTE = 60;

/** `stale`: nothing is known any more; `forgotten`: and has not been for so long that an alert ends. */
export type Verdict = "over" | "under" | "undecided" | "stale" | "forgotten";

export interface Observation {
  verdict: Verdict;
  /** What was measured last, in percent; null where nothing was, or nothing is measured. */
  value: number | null;
}

/** When a rule's value counts. */
export interface Bounds {
  threshold: number;
  forSeconds: number;
  /** Seconds since the epoch: earlier steps decide nothing. */
  from?: number;
}

/** A step that begins at a second since the epoch, and the most and the least that was measured in it, in percent. */
export interface Point {
  at: number;
  value: number;
  least: number;
}

/**
 * Steps that follow each other up to now, all of each on one side of the threshold, decide once the last begins `forSeconds` after the first. A gap ends
 * them: what is not known counts as neither.
 * @param points the earliest first
 * @param now seconds since the epoch
 */
export function observeSeries(
  points: readonly Point[],
  { threshold, forSeconds, from = 0 }: Bounds,
  now: number,
): Observation {
  // A node's clock may have been ahead.
  const known = points.filter(({ at }) => at <= now);
  const newest = known.at(-1);
  if (newest === undefined || now - newest.at >= STALE_SECONDS) {
    const isForgotten = newest === undefined || now - newest.at >= FORGOTTEN_SECONDS;
    return { verdict: isForgotten ? "forgotten" : "stale", value: null };
  }
  const value = rounded(newest.value);
  const side = newest.at < from ? "undecided" : sideOf(newest, threshold);
  let first = newest.at;
  for (const point of known.toReversed()) {
    const isApart = point.at < from || first - point.at > LONGEST_GAP_SECONDS;
    if (isApart || sideOf(point, threshold) !== side) {
      break;
    }
    first = point.at;
  }
  const isLong = newest.at - first >= forSeconds && now - newest.at <= FRESH_SECONDS;
  return { verdict: isLong ? side : "undecided", value };
}

/** On which side of the threshold all of a step was. */
function sideOf({ value, least }: Point, threshold: number): "over" | "under" | "undecided" {
  return least >= threshold ? "over" : value < threshold ? "under" : "undecided";
}

/**
 * The share of requests that failed in the last `forSeconds`, up to the whole minute. Nothing is known any more once no such window of the last
 * quarter of an hour had enough requests.
 * @param minutes those with requests, the earliest first
 * @param now seconds since the epoch
 */
export function observeRequests(
  minutes: readonly RequestMinute[],
  { threshold, forSeconds }: Bounds,
  now: number,
): Observation {
  const known = minutes.filter(({ at }) => at <= now);
  const inWindow = (end: number) => {
    const begin = Math.floor((end - forSeconds) / MINUTE) * MINUTE;
    const those = known.filter(({ at }) => at >= begin && at <= end);
    const sum = (of: "requests" | "errors") => those.reduce((total, one) => total + one[of], 0);
    return { requests: sum("requests"), errors: sum("errors") };
  };
  const { requests, errors } = inWindow(now);
  if (requests < LEAST_REQUESTS) {
    const ends = Array.from({ length: FORGOTTEN_SECONDS / MINUTE }, (_, index) => now - index * MINUTE);
    const wereEnough = ends.some((end) => inWindow(end).requests >= LEAST_REQUESTS);
    return { verdict: wereEnough ? "undecided" : "forgotten", value: null };
  }
  const value = (errors / requests) * 100;
  return { verdict: value >= threshold ? "over" : "under", value: rounded(value) };
}

/**
 * Since when instances have had the limits of now, in seconds since the epoch: since the end of the last deployment, of ClickHouse that of a change of its
 * plan or whatever else its instances were last changed by. `Infinity` while one of these is under way, and after a deployment that failed while
 * instances with the limits of another plan serve.
 */
export function limitsSince({ spec, status }: Pick<Project, "spec" | "status">): number {
  const deployments = status?.deployments ?? [];
  const [newest] = deployments;
  if (newest?.status === "in_progress" || status?.planChange?.status === "in_progress") {
    return Number.POSITIVE_INFINITY;
  }
  const serving = deployments.find((one) => one.status === "succeeded");
  if (newest?.status === "failed" && serving !== undefined && serving.settings.plan !== status?.plan) {
    return Number.POSITIVE_INFINITY;
  }
  const settled = status?.conditions?.find(
    ({ type, status: is }) => type === "Progressing" && is === "False",
  );
  const moment = spec.type === "clickhouse" ? settled?.lastTransitionTime : newest?.finishedAt;
  return moment === undefined ? 0 : Date.parse(moment) / 1_000;
}

/** Whether the last deployment that has ended failed. */
export function observeDeployments({ status }: Pick<Project, "status">): Observation {
  const ended = (status?.deployments ?? []).find(
    (one) => one.status === "succeeded" || one.status === "failed",
  );
  return {
    verdict: ended === undefined ? "undecided" : ended.status === "failed" ? "over" : "under",
    value: null,
  };
}

/** Whether the last occurrence of the schedule was missed, and the schedule has not begun again since. */
export function observeRuns({ status }: Pick<Project, "status">): Observation {
  const { lastScheduledAt, scheduledSince, missedReasons = [] } = status?.job ?? {};
  if (lastScheduledAt === undefined) {
    return { verdict: "undecided", value: null };
  }
  const missed = Math.max(...missedReasons.map((one) => Date.parse(one.lastScheduledAt)));
  const isMissed = missed >= Date.parse(lastScheduledAt) && !(Date.parse(scheduledSince ?? "") > missed);
  return { verdict: isMissed ? "over" : "under", value: null };
}

const rounded = (value: number): number => Math.round(value * 100) / 100;
