import { byStatus, userAgents } from "@slipway/analytics";
import {
  customResource,
  type KubeClient,
  KubeError,
  type KubernetesObject,
  resources,
} from "@slipway/controller-runtime";
import { type Catalog, labels, type Project } from "@slipway/crds";
import { failures } from "../errors/catalog.ts";
import { APP } from "../logs/instance-log.ts";
import type { ApiProject } from "../projects/api-project.ts";
import type { Services } from "../services.ts";

const podMetrics = customResource("metrics.k8s.io", "v1beta1", "pods", "PodMetrics");

/** Milliseconds for both reads together. */
const TIMEOUT_MS = 5_000;

interface Pod extends KubernetesObject {
  status?: { containerStatuses?: { name: string; state?: { running?: { startedAt?: string } } }[] };
}

interface PodMetrics extends KubernetesObject {
  timestamp?: string;
  containers?: { name: string; usage?: { cpu?: string; memory?: string } }[];
}

/** What one instance of an application uses; null for what is not known. */
export interface InstanceUse {
  /** Whole seconds since its container started. */
  uptime: number | null;
  /** Cores. */
  cpu: number | null;
  /** Bytes. */
  memory: number | null;
  /** When cpu and memory were measured. */
  observedAt: string | null;
}

/**
 * What an instance uses now, as metrics.k8s.io reports it; without that API, cpu and memory are not known.
 * @throws Failure 404 for an instance that is not the project's, 503 when the cluster does not answer
 */
export async function instanceUse(
  kube: KubeClient,
  { id, resource }: ApiProject,
  instance: string,
  now: Date,
): Promise<InstanceUse> {
  const signal = AbortSignal.timeout(TIMEOUT_MS);
  const { namespace } = resource.metadata;
  const labelSelector = `${labels.project}=${id}`;
  const pods = await kube.listAll<Pod>(resources.pods, { namespace, labelSelector, signal }).catch(away);
  const pod = pods.find(({ metadata }) => metadata?.name === instance);
  if (!pod) {
    throw failures.instanceNotFound(instance);
  }
  const status = pod.status?.containerStatuses?.find(({ name }) => name === APP);
  const startedAt = Date.parse(status?.state?.running?.startedAt ?? "");
  const measured = await kube
    .getOrUndefined<PodMetrics>(podMetrics, { namespace, name: instance }, { signal })
    .catch(unmeasured);
  const usage = measured?.containers?.find(({ name }) => name === APP)?.usage;
  return {
    uptime: Number.isNaN(startedAt) ? null : Math.max(0, Math.floor((now.getTime() - startedAt) / 1000)),
    cpu: quantity(usage?.cpu),
    memory: quantity(usage?.memory),
    observedAt: measured?.timestamp === undefined ? null : new Date(measured.timestamp).toISOString(),
  };
}

function away(error: unknown): never {
  throw failures.clusterUnavailable(error);
}

/** A cluster without metrics, or whose metrics do not answer, still has the instance. */
function unmeasured(error: unknown): undefined {
  if (error instanceof KubeError) {
    return undefined;
  }
  throw error;
}

const FACTORS: Readonly<Record<string, number>> = {
  ...{ n: 1e-9, u: 1e-6, m: 1e-3, "": 1, k: 1e3, M: 1e6, G: 1e9, T: 1e12 },
  ...{ Ki: 2 ** 10, Mi: 2 ** 20, Gi: 2 ** 30, Ti: 2 ** 40 },
};

/** A Kubernetes quantity as a number; null for none, or one that is not understood. */
export function quantity(text: string | undefined): number | null {
  const [, number, suffix = ""] = /^(\d+(?:\.\d+)?)([numkMGT]|[KMGT]i)?$/.exec(text ?? "") ?? [];
  const factor = FACTORS[suffix];
  if (number === undefined || factor === undefined) {
    return null;
  }
  return factor < 1 ? Number(number) / Math.round(1 / factor) : Number(number) * factor;
}

/** Seconds of the window that is counted over. */
export const WINDOW_SECONDS = 3600;

/**
 * `data` of an application's metrics: of all instances what they answered, of one what it uses.
 * @throws Failure 400 for all instances of a worker, which answer nobody, 402 for a plan without metrics, 404 for an instance that is not the project's, 503 when it cannot be determined
 */
export async function applicationMetrics(
  project: ApiProject,
  instance: string | undefined,
  { analytics, catalog, kube, now }: Pick<Services, "analytics" | "catalog" | "kube" | "now">,
): Promise<Record<string, unknown>> {
  const { resource } = project;
  requireMetrics(resource, catalog.current);
  if (instance !== undefined) {
    const { observedAt, ...use } = await instanceUse(kube, project, instance, now());
    return { type: "application", aggregate: false, instance, ...use, observed_at: observedAt };
  }
  if (resource.spec.type === "worker") {
    const message = "is required for projects of type worker, which have no traffic";
    throw failures.validation([{ field: "instance", message }]);
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

/** @throws Failure 402 for an application on a plan without metrics */
export function requireMetrics(resource: Project, catalog: Catalog): void {
  if (!hasMetrics(resource, catalog)) {
    throw failures.networkAnalyticsNotAvailable(resource.spec.plan);
  }
}

/** Whether the plan of an application has metrics. Pure. */
export function hasMetrics({ spec }: Project, catalog: Catalog): boolean {
  const plan = catalog.httpPlans.find((one) => one.plan === spec.plan);
  return plan?.capabilities.metrics === true;
}
