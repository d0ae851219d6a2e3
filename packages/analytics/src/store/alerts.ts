import { LONGEST_STEP_SECONDS, measuredSamples } from "./measured-samples.ts";
import { type ReadLimit, rowsOf } from "./rows.ts";
import { name, type Place } from "./schema.ts";
import { type Add, collectValues, type Statement } from "./statement.ts";
import type { Store } from "./store.ts";

/** What alerts of many projects watch, in one query for all of them. */

/**
 * What one query may read. The store counts whole granules, 8,192 rows of each part of the table, before it reads any: those of 200
 * projects that lie far from each other are 1.6 million rows of a large part, of which a busy day has several, and shortly after midnight
 * there are those of two days. A row has up to 200 bytes. It holds off what is far beyond that; time and memory bound the rest.
 */
export const ALERTS_READ_LIMIT: ReadLimit = { rows: 20_000_000, bytes: 4_000_000_000 };

export interface ProjectsSelection {
  projects: readonly { organization: string; project: string }[];
  /** Seconds since the epoch: `from` is in it, `to` is not. */
  from: number;
  to: number;
}

export interface AlertQueryOptions {
  signal?: AbortSignal;
  /** Another limit than {@link ALERTS_READ_LIMIT}. */
  read?: ReadLimit;
}

/** One step of the instance that used most in it, each figure by itself; null for what is not known. */
export interface UsagePoint {
  /** First second of the step, since the epoch. */
  at: number;
  /** Mean of the step. */
  cpuCores: number | null;
  /** The most that a sample had, */
  memoryBytes: number | null;
  /** and the least. */
  leastMemoryBytes: number | null;
  /** Of the volume, the same. */
  volumePercent: number | null;
  leastVolumePercent: number | null;
}

export interface ProjectUsage {
  organization: string;
  project: string;
  /** The earliest first. */
  points: UsagePoint[];
}

/**
 * What instances of projects used, in steps; of a project without samples there is nothing.
 * @throws StoreUnavailable, which is busy where more than the limit would be read
 */
export async function projectUsage(
  store: Store,
  selection: ProjectsSelection,
  stepSeconds: number,
  { signal, read = ALERTS_READ_LIMIT }: AlertQueryOptions = {},
): Promise<ProjectUsage[]> {
  const { rows } = await rowsOf<UsageRow>(store, usageOf(store, selection, stepSeconds), { signal, read });
  return rows.map(({ organization, project, points }) => ({
    organization,
    project,
    points: points.map(
      ([at, cpuCores, memoryBytes, leastMemoryBytes, volumePercent, leastVolumePercent]) => ({
        ...{ at, cpuCores, memoryBytes, leastMemoryBytes, volumePercent, leastVolumePercent },
      }),
    ),
  }));
}

type Value = number | null;

interface UsageRow {
  organization: string;
  project: string;
  points: [at: number, cpu: Value, memory: Value, leastMemory: Value, volume: Value, leastVolume: Value][];
}

/** SQL of {@link projectUsage}. Pure. */
export function usageOf(place: Place, selection: ProjectsSelection, stepSeconds: number): Statement {
  const { add, parameters } = collectValues();
  const { from } = selection;
  const step = add("UInt32", stepSeconds);
  const where = `${ofProjects(selection, add)} AND ${within("at", { ...selection, from: from - LONGEST_STEP_SECONDS }, add)}`;
  const instances = `SELECT organization, project, instance, toUInt32(intDiv(t, ${step}) * ${step}) AS step_at,
      sum(cpu_added) / sum(cpu_seconds) / 1000000 AS cpu, max(memory_bytes) AS memory, min(memory_bytes) AS memory_least,
      max(volume_used_bytes / nullIf(volume_capacity_bytes, 0)) * 100 AS volume,
      min(volume_used_bytes / nullIf(volume_capacity_bytes, 0)) * 100 AS volume_least
    FROM (${measuredSamples(place, "organization, project, instance", where)}) WHERE t >= ${add("Int64", from)}
    GROUP BY organization, project, instance, step_at`;
  const steps = `SELECT organization, project, step_at, max(cpu) AS most_cpu, max(memory) AS most_memory, max(memory_least) AS least_memory,
      max(volume) AS most_volume, max(volume_least) AS least_volume
    FROM (${instances}) GROUP BY organization, project, step_at`;
  const query = `SELECT organization, project,
      arraySort(point -> point.1, groupArray(tuple(step_at, most_cpu, most_memory, least_memory, most_volume, least_volume))) AS points
    FROM (${steps}) GROUP BY organization, project
    SETTINGS output_format_json_named_tuples_as_objects = 0`;
  return { query, parameters };
}

/** Requests that began in one minute. */
export interface RequestMinute {
  /** First second of the minute, since the epoch. */
  at: number;
  requests: number;
  /** Of them, those that were answered 5xx. */
  errors: number;
}

export interface ProjectRequests {
  organization: string;
  project: string;
  /** Minutes with requests, the earliest first. */
  minutes: RequestMinute[];
}

/**
 * Requests to projects by minute; of a project without any there is nothing.
 * @throws StoreUnavailable, which is busy where more than the limit would be read
 */
export async function projectRequests(
  store: Store,
  selection: ProjectsSelection,
  { signal, read = ALERTS_READ_LIMIT }: AlertQueryOptions = {},
): Promise<ProjectRequests[]> {
  const { rows } = await rowsOf<RequestsRow>(store, requestsOf(store, selection), { signal, read });
  return rows.map(({ organization, project, counts }) => ({
    organization,
    project,
    minutes: counts.map(([at, requests, errors]) => ({ at, requests, errors })),
  }));
}

interface RequestsRow {
  organization: string;
  project: string;
  counts: [at: number, requests: number, errors: number][];
}

/** SQL of {@link projectRequests}. Pure. */
export function requestsOf(place: Place, selection: ProjectsSelection): Statement {
  const { add, parameters } = collectValues();
  const minutes = `SELECT organization, project, toUInt32(toUnixTimestamp(minute)) AS begins, sum(requests) AS n,
      sumIf(requests, status >= 500) AS failed
    FROM ${name(place, "minutes")} WHERE ${ofProjects(selection, add)} AND ${within("minute", selection, add)}
    GROUP BY organization, project, begins`;
  const query = `SELECT organization, project,
      arraySort(count -> count.1, groupArray(tuple(begins, n, failed))) AS counts
    FROM (${minutes}) GROUP BY organization, project
    SETTINGS output_format_json_named_tuples_as_objects = 0`;
  return { query, parameters };
}

/** By the tables' keys. A project that two organizations have is read of both, and each row names its own. */
function ofProjects({ projects }: ProjectsSelection, add: Add): string {
  const distinct = (values: string[]) => [...new Set(values)];
  const organizations = add("Array(String)", distinct(projects.map(({ organization }) => organization)));
  const ids = add("Array(String)", distinct(projects.map(({ project }) => project)));
  return `organization IN ${organizations} AND project IN ${ids}`;
}

function within(
  column: "at" | "minute",
  { from, to }: Pick<ProjectsSelection, "from" | "to">,
  add: Add,
): string {
  return `${column} >= toDateTime(${add("UInt32", from)}, 'UTC') AND ${column} < toDateTime(${add("UInt32", to)}, 'UTC')`;
}
