/** Averages and peaks of one run, from the kubelet's readings. Pure. */

import type { Reading } from "@slipway/controller-runtime";
import type { RunMetrics } from "../jobs/runs/ports.ts";

/** What is known of a run so far. Times in milliseconds, CPU in cores, memory in bytes. */
export interface Series {
  readonly startedAt: number;
  readonly samples: number;
  /** Of the newest reading, by the node's clock. */
  readonly sampledAt?: number;
  readonly cpu?: {
    readonly at: number;
    /** Absent when it comes from a previous operator. */
    readonly coreNanoSeconds?: number;
    readonly average?: number;
    readonly peak?: number;
    readonly latest?: number;
  };
  readonly memory?: {
    readonly at: number;
    readonly average: number;
    readonly peak: number;
    readonly latest: number;
  };
}

/** Both times are whole seconds: a shorter life says too little of what a second cost. */
const SHORTEST_LIFE_MS = 2_000;
/** In a life up to that long, the part of a second that is not known would count: the average is taken low. */
const SHORT_LIFE_MS = 10_000;
const SECOND_MS = 1_000;
const NANO = 1_000_000;

/** A run's series, continued from its status. */
export function seriesOf(startedAt: Date, before?: RunMetrics): Series {
  const start = { startedAt: startedAt.getTime(), samples: before?.samples ?? 0 };
  const sampledAt = Date.parse(before?.sampledAt ?? "");
  if (before === undefined || Number.isNaN(sampledAt)) {
    return start;
  }
  const number = (text: string | undefined) => (text === undefined ? undefined : Number(text));
  const [average, peak, latest] = [before.averageCores, before.peakCores, before.latestCores].map(number);
  const [bytes, peakBytes, latestBytes] = [before.averageBytes, before.peakBytes, before.latestBytes].map(
    number,
  );
  return {
    ...start,
    sampledAt,
    ...(average === undefined && peak === undefined && latest === undefined
      ? {}
      : { cpu: { at: sampledAt, ...defined({ average, peak, latest }) } }),
    ...(bytes === undefined || peakBytes === undefined
      ? {}
      : { memory: { at: sampledAt, average: bytes, peak: peakBytes, latest: latestBytes ?? bytes } }),
  };
}

/**
 * The series with one reading more; the same object when the reading adds nothing: it is of another container or
 * of before the start, or its values are those that were read before.
 */
export function withReading(series: Series, reading: Reading): Series {
  // Created after this container started: another one.
  if ((reading.createdAt ?? 0) > series.startedAt + SECOND_MS) {
    return series;
  }
  const cpu = withCpu(series, reading.cpu);
  const memory = withMemory(series, reading.memory);
  if (cpu === series.cpu && memory === series.memory) {
    return series;
  }
  const sampledAt = Math.max(cpu?.at ?? 0, memory?.at ?? 0);
  return { ...series, samples: series.samples + 1, sampledAt, ...defined({ cpu, memory }) };
}

/**
 * The average is the counter over the container's life. The peak is the highest of what the kubelet calls the use of now
 * (the mean of its last seconds), of that between two of our readings, taken low for want of parts of a second, and of
 * the average.
 */
function withCpu({ cpu: last, startedAt }: Series, reading: Reading["cpu"]): Series["cpu"] {
  if (reading === undefined || reading.at < startedAt || reading.at <= (last?.at ?? 0)) {
    return last;
  }
  const { at, coreNanoSeconds, nanoCores } = reading;
  const life = at - startedAt;
  const lived = life < SHORT_LIFE_MS ? life + SECOND_MS : life;
  const average = life < SHORTEST_LIFE_MS ? undefined : coreNanoSeconds / NANO / lived;
  const since = last?.coreNanoSeconds === undefined ? undefined : coreNanoSeconds - last.coreNanoSeconds;
  const lately =
    since === undefined || since < 0 ? undefined : since / NANO / (at - (last?.at ?? 0) + SECOND_MS);
  const now = nanoCores === undefined ? undefined : nanoCores / 1e9;
  const peaks = [last?.peak, average, lately, now].filter((value) => value !== undefined);
  return {
    at,
    coreNanoSeconds,
    ...defined({
      average: average ?? last?.average,
      peak: peaks.length === 0 ? undefined : Math.max(...peaks),
      latest: now ?? lately ?? average,
    }),
  };
}

/** Every value counts for the time since the previous one, since they are not taken at even intervals. */
function withMemory({ memory: last, startedAt }: Series, reading: Reading["memory"]): Series["memory"] {
  if (reading === undefined || reading.at < startedAt || reading.at <= (last?.at ?? 0)) {
    return last;
  }
  const { at, workingSetBytes: value } = reading;
  if (last === undefined) {
    return { at, average: value, peak: value, latest: value };
  }
  const [before, since] = [last.at - startedAt, at - last.at];
  const average = (last.average * before + value * since) / (before + since);
  return { at, average, peak: Math.max(last.peak, value), latest: value };
}

/** Metrics in the status of a run that runs. */
export function collecting(series: Series): RunMetrics {
  const { cpu, memory, samples, sampledAt } = series;
  return {
    status: "collecting",
    samples,
    ...(sampledAt === undefined ? {} : { sampledAt: new Date(sampledAt).toISOString() }),
    ...totals(series),
    ...defined({ latestCores: cores(cpu?.latest), latestBytes: bytes(memory?.latest) }),
  };
}

/** Metrics in the status of a run that has ended. */
export function finished(series: Series): RunMetrics {
  if (series.samples === 0) {
    return { status: "unavailable", samples: 0 };
  }
  return { status: "available", samples: series.samples, ...totals(series) };
}

function totals({ cpu, memory }: Series): Partial<RunMetrics> {
  return defined({
    averageCores: cores(cpu?.average),
    peakCores: cores(cpu?.peak),
    averageBytes: bytes(memory?.average),
    peakBytes: bytes(memory?.peak),
  });
}

const cores = (value: number | undefined): string | undefined =>
  value === undefined ? undefined : value.toFixed(9).replace(/\.?0+$/, "");

const bytes = (value: number | undefined): string | undefined =>
  value === undefined ? undefined : Math.round(value).toString();

/** An object without its undefined members. */
function defined<T extends object>(object: T): { [K in keyof T]?: NonNullable<T[K]> } {
  return Object.fromEntries(Object.entries(object).filter(([, value]) => value !== undefined)) as {
    [K in keyof T]?: NonNullable<T[K]>;
  };
}
