import { LONGEST_STEP_SECONDS, measuredSamples } from "./measured-samples.ts";
import { rowsOf } from "./rows.ts";
import { name, type Place } from "./schema.ts";
import { type Add, collectValues, type Statement } from "./statement.ts";
import type { Store } from "./store.ts";

/** What instances used over time, in steps of one length. */

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

/** SQL of {@link metricHistory}. Pure. */
export function historyOf(place: Place, query: HistoryQuery): Statement {
  const { add, parameters } = collectValues();
  const { from, stepSeconds, instances } = query;
  const step = add("UInt32", stepSeconds);
  const samples = `${selected(query, from - LONGEST_STEP_SECONDS, add)} AND instance IN ${add("Array(String)", instances)}`;
  const steps = `SELECT instance, toUInt32(intDiv(t, ${step}) * ${step}) AS step_at,
      sum(cpu_added) / sum(cpu_seconds) / 1000000 AS cpu, max(memory_bytes) AS memory,
      sum(received_added) / sum(network_seconds) AS received, sum(transmitted_added) / sum(network_seconds) AS transmitted,
      max(restarts) AS restarted, max(volume_used_bytes) AS used, max(volume_capacity_bytes) AS capacity
    FROM (${measuredSamples(place, "instance", samples)}) WHERE t >= ${add("Int64", from)} GROUP BY instance, step_at`;
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
