import type { HttpPlan } from "./catalog.ts";
import { annotations, GROUP } from "./names.ts";
import type { Project } from "./project/index.ts";

/** Projects that sleep while nothing requests them: what the operator and the activator both depend on. */

/** Deployment, Service and service account of the process that receives requests for projects that sleep. The chart creates them. */
export const ACTIVATOR = "slipway-activator";

/** On the Service of a project that may sleep, from which its EndpointSlices have it: by this the activator finds instances. */
export const SLEEPS_LABEL = `${GROUP}/sleeps`;

/** Header by which the activator answers a probe of the ingress. */
export const ACTIVATOR_HEADER = "slipway-activator";
/** User agent of the operator's probes of the ingress: neither a request for an application, nor one that wakes it. */
export const PROBE_USER_AGENT = "slipway-probe";

/** Name of the Service, and of its EndpointSlice, by which the ingress reaches the activator for a project. */
export function activatorServiceName(projectId: string): string {
  return `${projectId}-activator`;
}

/**
 * Seconds without a request after which a project sleeps; undefined where it does not: its owner has not chosen to, its plan does not
 * allow it, or its organization alone reaches it.
 */
export function sleepsAfterSeconds(
  { spec }: Pick<Project, "spec">,
  plan: Pick<HttpPlan, "sleepAfterSeconds"> | undefined,
): number | undefined {
  const { type, exposure, paused, sleepAfterSeconds: chosen } = spec;
  const least = plan?.sleepAfterSeconds;
  return type === "http" && exposure === "public" && !paused && chosen !== undefined && least !== undefined
    ? Math.max(chosen, least)
    : undefined;
}

/** Whether the sleep that a project is in, or is entering, is to end because a request has come. */
export function isWakeRequested({ metadata, status }: Project): boolean {
  const sleep = status?.sleep;
  return sleep !== undefined && metadata.annotations?.[annotations.wakeRequested] === sleep.id;
}
