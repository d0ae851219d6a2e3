import { rowsOf } from "./rows.ts";
import { name, type Place } from "./schema.ts";
import { type Add, collectValues, type Statement } from "./statement.ts";
import type { Store } from "./store.ts";

/** What instances used over time, in steps of one length. */

/** Two samples of a pod that are further apart say nothing about the time between them: it is a gap. */
export const LONGEST_STEP_SECONDS = 300;

/** How far the start of a node may lie apart by its clock, in two samples between which that was not set: both are cut to seconds. */
const CLOCK_SECONDS = 2;

/** Whose samples of which time. */
export interface HistorySelection {
  organization: string;
  project: string;
  /** Seconds since the epoch, multiples of `stepSeconds`: `from` is in it, `to` is not. */
  from: number;
  to: number;
}

/** In which steps, of which instances. */
export interface HistoryQuery extends HistorySelection {
  stepSeconds: number;
  instances: readonly string[];
}

/** One step of an instance; null for what is not known in it. */
export interface HistoryPoint {
  /** First second of the step, since the epoch. */
  at: number;
  /** Mean of the cores in use. */
  cpuCores: number | null;
  /** The most that a sample had. */
  memoryBytes: number | null;
  /** Means. */
  receivedBytesPerSecond: number | null;
  transmittedBytesPerSecond: number | null;
  /** Since the pod was made, at the most. */
  restarts: number | null;
  volumeUsedBytes: number | null;
  volumeCapacityBytes: number | null;
}

export interface InstanceHistory {
  instance: string;
  /** Steps in which there are samples, the earliest first. */
  points: HistoryPoint[];
}

/**
 * Instances that have samples in the window, those of the newest samples first.
 * @returns at most `limit` names, and how many there are
 * @throws StoreUnavailable
 */
export async function sampledInstances(
  store: Store,
  selection: HistorySelection,
  limit: number,
  signal?: AbortSignal,
): Promise<{ instances: string[]; total: number }> {
  const { rows, total } = await rowsOf<{ instance: string }>(store, instancesOf(store, selection, limit), {
    signal,
  });
  return { instances: rows.map(({ instance }) => instance), total };
}

/** SQL of {@link sampledInstances}. Pure. */
export function instancesOf(place: Place, selection: HistorySelection, limit: number): Statement {
  const { add, parameters } = collectValues();
  const query = `SELECT instance, max(at) AS latest FROM ${name(place, "metrics")}
    WHERE ${selected(selection, selection.from, add)}
    GROUP BY instance ORDER BY latest DESC, instance LIMIT ${add("UInt32", limit)}`;
  return { query, parameters };
}

/**
 * What the named instances used, by steps; of one without samples there is nothing.
 * @param signal cancels it
 * @throws StoreUnavailable
 */
export async function metricHistory(
  store: Store,
  query: HistoryQuery,
  signal?: AbortSignal,
): Promise<InstanceHistory[]> {
  if (query.instances.length === 0) {
    return [];
  }
  const { rows } = await rowsOf<Row>(store, historyOf(store, query), { signal });
  return rows.map(({ instance, points }) => ({ instance, points: points.map(pointOf) }));
}

interface Row {
  instance: string;
  points: Point[];
}

type Value = number | null;
type Point = [at: number, Value, Value, Value, Value, Value, Value, Value];

function pointOf([at, cpuCores, memoryBytes, received, transmitted, restarts, used, capacity]: Point) {
  return {
    ...{ at, cpuCores, memoryBytes, restarts },
    ...{ receivedBytesPerSecond: received, transmittedBytesPerSecond: transmitted },
    ...{ volumeUsedBytes: used, volumeCapacityBytes: capacity },
  };
}

/**
 * SQL of {@link metricHistory}. Pure. Counters are compared with those of the last sample before that has them, of the same pod: a
 * container that has started since then has counted from zero; a counter that is lower without that, a sample too long before, or a
 * clock that was set in between leaves the step unknown. A sample that is there twice adds no time and no count.
 */
export function historyOf(place: Place, query: HistoryQuery): Statement {
  const { add, parameters } = collectValues();
  const { from, stepSeconds, instances } = query;
  const longest = LONGEST_STEP_SECONDS;
  const step = add("UInt32", stepSeconds);
  // Rows with other readings may lie between two of a counter.
  const before = (counter: string, columns: readonly string[]) =>
    columns.map(
      (column) => `anyLast(if(isNull(${counter}), NULL, ${column})) OVER pods AS ${counter}_before_${column}`,
    );
  const samples = `SELECT instance, toInt64(toUnixTimestamp(at)) AS t, memory_bytes, restarts, volume_used_bytes, volume_capacity_bytes,
      toInt64(toUnixTimestamp(booted_at)) AS booted, ifNull(toInt64(toUnixTimestamp(started_at)), 0) AS began, cpu_us,
      toInt64(toUnixTimestamp(network_at)) AS network_t, received_bytes, transmitted_bytes,
      ${[
        ...before("cpu_us", ["t", "booted", "began", "cpu_us"]),
        ...before("network_t", ["network_t", "booted", "received_bytes", "transmitted_bytes"]),
      ].join(",\n      ")}
    FROM ${name(place, "metrics")}
    WHERE ${selected(query, from - longest, add)} AND instance IN ${add("Array(String)", instances)}
    WINDOW pods AS (PARTITION BY instance, pod ORDER BY at ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)`;
  const isOfOneClock = (counter: string) => `abs(booted - ${counter}_before_booted) <= ${CLOCK_SECONDS}`;
  const rises = (column: string) => `${column} >= network_t_before_${column}`;
  const added = (column: string) =>
    `if(isNull(network_seconds), NULL, toFloat64(${column}) - toFloat64(network_t_before_${column}))`;
  const measured = `SELECT *,
      if(isNull(cpu_us_before_t), t - began, t - cpu_us_before_t) AS cpu_seconds_any,
      if(cpu_seconds_any BETWEEN 1 AND ${longest}, multiIf(
        isNull(cpu_us_before_t) OR began > cpu_us_before_t, toFloat64(cpu_us),
        began = cpu_us_before_began AND ${isOfOneClock("cpu_us")} AND cpu_us >= cpu_us_before_cpu_us,
        toFloat64(cpu_us) - toFloat64(cpu_us_before_cpu_us),
        NULL), NULL) AS cpu_added,
      if(isNull(cpu_added), NULL, cpu_seconds_any) AS cpu_seconds,
      if(network_t - network_t_before_network_t BETWEEN 1 AND ${longest} AND ${isOfOneClock("network_t")}
        AND ${rises("received_bytes")} AND ${rises("transmitted_bytes")}, network_t - network_t_before_network_t, NULL) AS network_seconds,
      ${added("received_bytes")} AS received_added,
      ${added("transmitted_bytes")} AS transmitted_added
    FROM (${samples})`;
  const steps = `SELECT instance, toUInt32(intDiv(t, ${step}) * ${step}) AS step_at,
      sum(cpu_added) / sum(cpu_seconds) / 1000000 AS cpu, max(memory_bytes) AS memory,
      sum(received_added) / sum(network_seconds) AS received, sum(transmitted_added) / sum(network_seconds) AS transmitted,
      max(restarts) AS restarted, max(volume_used_bytes) AS used, max(volume_capacity_bytes) AS capacity
    FROM (${measured}) WHERE t >= ${add("Int64", from)} GROUP BY instance, step_at`;
  const statement = `SELECT instance,
      arraySort(point -> point.1, groupArray(tuple(step_at, cpu, memory, received, transmitted, restarted, used, capacity))) AS points
    FROM (${steps}) GROUP BY instance ORDER BY instance
    SETTINGS output_format_json_named_tuples_as_objects = 0`;
  return { query: statement, parameters };
}

function selected({ organization, project, to }: HistorySelection, from: number, add: Add): string {
  return [
    `organization = ${add("String", organization)}`,
    `project = ${add("String", project)}`,
    `at >= toDateTime(${add("UInt32", from)}, 'UTC') AND at < toDateTime(${add("UInt32", to)}, 'UTC')`,
  ].join(" AND ");
}
