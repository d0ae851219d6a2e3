import { expect } from "vitest";
import type { apiClient } from "./api.ts";

/** What a project's instances used, by `/v1`. */

export interface MetricPoint {
  readonly at: string;
  readonly cpu: number | null;
  readonly memory: number | null;
  readonly received_bytes_per_second: number | null;
  readonly transmitted_bytes_per_second: number | null;
  readonly restarts: number | null;
  readonly volume_used_bytes: number | null;
  readonly volume_capacity_bytes: number | null;
}

export interface MetricHistory {
  readonly from: string;
  readonly to: string;
  readonly resolution_seconds: number;
  readonly instances: readonly { readonly instance: string; readonly points: readonly MetricPoint[] }[];
  readonly other_instances: readonly string[];
  readonly omitted_instances: number;
}

/** The history of a project's metrics. */
export async function metricHistory(
  call: ReturnType<typeof apiClient>,
  id: string,
  query: Readonly<Record<string, string>>,
): Promise<MetricHistory> {
  const path = `/v1/project/${id}/metrics?${new URLSearchParams(query)}`;
  const { status, body } = await call<{ history: MetricHistory }>("GET", path);
  expect(status, JSON.stringify(body).slice(0, 500)).toBe(200);
  return (body as unknown as { data: { history: MetricHistory } }).data.history;
}

/** The points of one instance; none where it is not among those that have some. */
export function pointsOf(history: MetricHistory, instance: string): readonly MetricPoint[] {
  return history.instances.find((one) => one.instance === instance)?.points ?? [];
}
