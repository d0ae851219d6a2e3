import { byStatus, userAgents } from "@slipway/analytics";
import type { Catalog, Project } from "@slipway/crds";
import { failures } from "../errors/catalog.ts";
import type { ApiProject } from "../projects/api-project.ts";
import type { Services } from "../services.ts";
import { instanceUse } from "./instances.ts";

/** Seconds of the window that is counted over. */
const WINDOW_SECONDS = 3600;

/**
 * `data` of an HTTP project's metrics: of all instances what they answered, of one what it uses.
 * @throws Failure 402 for a plan without metrics, 404 for an instance that is not the project's, 503 when it cannot be determined
 */
export async function applicationMetrics(
  project: ApiProject,
  instance: string | undefined,
  { analytics, catalog, kube, now }: Pick<Services, "analytics" | "catalog" | "kube" | "now">,
): Promise<Record<string, unknown>> {
  const { resource } = project;
  if (!hasMetrics(resource, catalog.current)) {
    throw failures.networkAnalyticsNotAvailable(resource.spec.plan);
  }
  if (instance !== undefined) {
    const { observedAt, ...use } = await instanceUse(kube, project, instance, now());
    return { type: "application", aggregate: false, instance, ...use, observed_at: observedAt };
  }
  const question = { about: ["application"], window: { rangeMs: WINDOW_SECONDS * 1000 }, filter: {} };
  const { value } = await analytics.answer(project, question, async (store, selection) => {
    const [statuses, agents] = await Promise.all([byStatus(store, selection), userAgents(store, selection)]);
    return { statuses, agents };
  });
  const { statuses, agents } = value;
  const sum = (of: "requests" | "bytesReceived" | "bytesSent"): number =>
    statuses.reduce((total, one) => total + one[of], 0);
  const network = {
    requests: sum("requests"),
    bytes_received: sum("bytesReceived"),
    bytes_sent: sum("bytesSent"),
    status_codes: Object.fromEntries(statuses.map(({ status, requests }) => [String(status), requests])),
    user_agents: agents,
    window_seconds: WINDOW_SECONDS,
  };
  return { type: "application", aggregate: true, network };
}

/** Whether the plan of an HTTP project has metrics. Pure. */
export function hasMetrics({ spec }: Project, catalog: Catalog): boolean {
  const plan = catalog.httpPlans.find((one) => one.plan === spec.plan);
  return plan?.capabilities.metrics === true;
}
