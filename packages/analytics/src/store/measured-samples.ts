import { name, type Place } from "./schema.ts";

/** Two samples of a pod that are further apart say nothing about the time between them: it is a gap. */
export const LONGEST_STEP_SECONDS = 300;

/** How far the start of a node may lie apart by its clock, in two samples between which that was not set: both are cut to seconds. */
const CLOCK_SECONDS = 2;

/**
 * SQL of samples with what their counters have risen by. Pure. Counters are compared with those of the last sample before that has them, of
 * the same pod: a container that has started since then has counted from zero; a counter that is lower without that, a sample too long
 * before, or a clock that was set in between leaves the step unknown. A sample that is there twice adds no time and no count.
 * @param key columns that name an instance, separated by commas
 * @param where which samples, from {@link LONGEST_STEP_SECONDS} before the first that is asked for
 */
export function measuredSamples(place: Place, key: string, where: string): string {
  const longest = LONGEST_STEP_SECONDS;
  // Rows with other readings may lie between two of a counter.
  const before = (counter: string, columns: readonly string[]) =>
    columns.map(
      (column) => `anyLast(if(isNull(${counter}), NULL, ${column})) OVER pods AS ${counter}_before_${column}`,
    );
  const samples = `SELECT ${key}, toInt64(toUnixTimestamp(at)) AS t, memory_bytes, restarts, volume_used_bytes, volume_capacity_bytes,
      toInt64(toUnixTimestamp(booted_at)) AS booted, ifNull(toInt64(toUnixTimestamp(started_at)), 0) AS began, cpu_us,
      toInt64(toUnixTimestamp(network_at)) AS network_t, received_bytes, transmitted_bytes,
      ${[
        ...before("cpu_us", ["t", "booted", "began", "cpu_us"]),
        ...before("network_t", ["network_t", "booted", "received_bytes", "transmitted_bytes"]),
      ].join(",\n      ")}
    FROM ${name(place, "metrics")}
    WHERE ${where}
    WINDOW pods AS (PARTITION BY ${key}, pod ORDER BY at ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)`;
  const isOfOneClock = (counter: string) => `abs(booted - ${counter}_before_booted) <= ${CLOCK_SECONDS}`;
  const rises = (column: string) => `${column} >= network_t_before_${column}`;
  const added = (column: string) =>
    `if(isNull(network_seconds), NULL, toFloat64(${column}) - toFloat64(network_t_before_${column}))`;
  return `SELECT *,
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
}
