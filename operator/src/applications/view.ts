/** Resolves a Project against the plan catalog and the platform: the input of its children. Pure. */

import { type Catalog, defaultDomain, type HttpPlan, type Project } from "@slipway/crds";
import type { Accepted } from "../projects/accept.ts";
import type { Placement } from "../workload/app.ts";
import { toWorkload } from "../workload/view.ts";
import { type AllowList, admittedCidrs } from "./access.ts";
import type { HttpApp, HttpRoute, RoutedApp } from "./app.ts";

/** What of the platform matters to a project's children. */
export interface HttpPlatform {
  domainZone: string;
  /** Hostnames that are the platform's own, or labels of its zone. */
  reservedHostnames: readonly string[];
  rolloutDeadlineSeconds: number;
  /** Version of what the pods' templates of new deployments are made from; the first by default. */
  templateVersion?: number;
  /** Where instances run. */
  pods?: Placement;
  ingress: {
    className: string;
    namespace: string;
    annotations: Readonly<Record<string, string>>;
    allowList: AllowList;
    /** ClusterIssuer of cert-manager for custom domains; without one they are served plain. */
    certificateIssuer?: string;
  };
}

/** The default hostname that a project wants; none for a private one. */
export function wantedHost(project: Project, zone: string): string | undefined {
  const isPublic = project.spec.type === "http" && project.spec.exposure === "public";
  return isPublic ? defaultDomain(project, zone) : undefined;
}

/** Every hostname that a project wants, those that it cannot have too. */
export function wantedHosts(project: Project, zone: string): string[] {
  const host = wantedHost(project, zone);
  return host === undefined ? [] : [host, ...(project.spec.customDomains ?? [])];
}

/** Hostnames that may be routed to a project. */
export interface RoutedHosts {
  /** The default domain that is claimed for it. */
  host?: string;
  /** Custom domains that are claimed and proved. */
  customHosts?: readonly string[];
}

/**
 * @param hosts without any it gets no route
 * @param liveReplicas instances that the Deployment has now: the autoscaler's number is kept
 * @param least instances that its requests need, of a project that is scaled by them
 */
export function toHttpApp(
  project: Project,
  accepted: Accepted<HttpPlan>,
  from: {
    catalog: Catalog;
    platform: HttpPlatform;
    hosts: RoutedHosts;
    liveReplicas?: number;
    least?: number;
  },
): HttpApp {
  const { spec } = project;
  const { catalog, platform, hosts, liveReplicas, least } = from;
  const instances = spec.instances ?? 1;
  const autoscaling = autoscalingOf(spec, least);
  return {
    ...toWorkload(project, accepted, catalog),
    ...readinessOf(spec),
    placement: platform.pods,
    replicas: spec.paused
      ? 0
      : autoscaling
        ? Math.min(Math.max(liveReplicas ?? 0, autoscaling.min), autoscaling.max)
        : instances,
    rolloutDeadlineSeconds: rolloutDeadlineSeconds(project, platform),
    autoscaling,
    command: spec.command,
    stopSeconds: spec.terminationGracePeriodSeconds,
    route: routeOf(hosts, spec, platform),
  };
}

function autoscalingOf({ autoscaling, instances = 1 }: Project["spec"], least: number | undefined) {
  if (!autoscaling?.enabled) {
    return undefined;
  }
  const { maxInstances: max, cpuTargetPercentage, memoryTargetPercentage } = autoscaling;
  return {
    min: instances,
    max,
    cpuPercent: cpuTargetPercentage,
    memoryPercent: memoryTargetPercentage,
    ...(least === undefined ? {} : { least: Math.min(Math.max(least, instances), max) }),
  };
}

/** Seconds that a new instance has, beside the time in which it must start, to be scheduled and to have its image pulled. */
const BEFORE_START_SECONDS = 60;

/** Longest time of a rollout without progress, in seconds: no shorter than what an instance may take to start. */
export function rolloutDeadlineSeconds(
  { spec: { healthcheck } }: Project,
  platform: Pick<HttpPlatform, "rolloutDeadlineSeconds">,
): number {
  const startup = healthcheck?.enabled ? (healthcheck.startupTimeoutSeconds ?? 0) : 0;
  return Math.max(platform.rolloutDeadlineSeconds, startup > 0 ? startup + BEFORE_START_SECONDS : 0);
}

/** The port of an HTTP project, or that a worker has none; and how its instances show that they are ready and alive. */
function readinessOf({ type, port = 8080, healthcheck, readiness }: Project["spec"]): ReadinessFields {
  if (type === "worker") {
    return { type, readinessCommand: readiness?.command };
  }
  const check = healthcheck?.enabled ? healthcheck : undefined;
  return {
    type: "http",
    port,
    healthcheckPath: check?.path,
    livenessPath: check?.livenessPath,
    startupTimeoutSeconds: check?.startupTimeoutSeconds,
  };
}

type ReadinessFields = Pick<
  HttpApp,
  "type" | "port" | "healthcheckPath" | "livenessPath" | "startupTimeoutSeconds" | "readinessCommand"
>;

/** The input of a project's route, for any plan and image. */
export function toRoutedApp(
  { metadata, spec }: Project,
  organizationId: string,
  hosts: RoutedHosts,
  platform: HttpPlatform,
): RoutedApp {
  const { name: id, namespace = "" } = metadata;
  return { type: "http", id, namespace, organizationId, route: routeOf(hosts, spec, platform) };
}

function routeOf(
  { host, customHosts = [] }: RoutedHosts,
  { networkAccess }: Project["spec"],
  { ingress }: HttpPlatform,
): HttpRoute | undefined {
  if (host === undefined && customHosts.length === 0) {
    return undefined;
  }
  return {
    host,
    customHosts,
    certificateIssuer: ingress.certificateIssuer,
    ingressClass: ingress.className,
    annotations: ingress.annotations,
    ingressNamespace: ingress.namespace,
    admitted: admittedCidrs(networkAccess),
    allowList: ingress.allowList,
  };
}
