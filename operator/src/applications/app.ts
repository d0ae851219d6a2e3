/** The input of an application's children: its spec, resolved against the plan catalog and the platform. */

import { labels } from "@slipway/crds";
import type { ChildOwner, Workload } from "../workload/app.ts";
import type { PodTemplate } from "../workload/pod.ts";
import type { AllowList } from "./access.ts";

/**
 * One HTTP project or worker, ready to be turned into objects. Every field is already validated. A worker has neither a port nor what
 * depends on one: an address, a route, a health check.
 */
export interface HttpApp extends Workload {
  type: "http" | "worker";
  /** Absent for workers. */
  port?: number;
  /** Instances to run now: 0 while paused or asleep. */
  replicas: number;
  /** Longest time of a rollout without progress before it counts as failed, in seconds; the old version keeps serving. */
  rolloutDeadlineSeconds: number;
  /** The live pods' template, which stays as it is for now. */
  keptTemplate?: PodTemplate;
  /** None of its versions may run yet: the pre-deploy command of the first has not succeeded. */
  awaitsPreDeploy?: boolean;
  /** Another version was deployed before. */
  replaces?: boolean;
  autoscaling?: {
    min: number;
    max: number;
    cpuPercent?: number;
    memoryPercent?: number;
    /** Instances that its requests need, from `min` to `max`; absent where it is not scaled by them. */
    least?: number;
  };
  /** Path that answers 2xx or 3xx when an instance is ready; without one an open port is enough. */
  healthcheckPath?: string;
  /** Path of which an instance that does not answer it is restarted; without one none is. */
  livenessPath?: string;
  /** Time in which an instance must serve, in seconds. */
  startupTimeoutSeconds?: number;
  /** Time between SIGTERM and SIGKILL of an instance, in seconds, where the owner has chosen one. */
  stopSeconds?: number;
  /** Words that run in place of the image's own command. */
  command?: readonly string[];
  /** Command that succeeds when an instance of a worker is ready; without one an instance that runs is. */
  readinessCommand?: readonly string[];
  /** Present for public projects only. */
  route?: HttpRoute;
  /** Present for projects that may sleep only. */
  sleep?: AppSleep;
}

/** How a project that may sleep is reached. */
export interface AppSleep {
  /** Addresses of the activator's Service. */
  activator: { addresses: readonly string[]; namespace: string };
  /** Whether requests go there now. */
  routed: boolean;
}

/** The input of the objects of a public route. */
export type RoutedApp = ChildOwner & Pick<HttpApp, "route"> & { sleep?: Pick<AppSleep, "routed"> };

/** The public route of a project. */
export interface HttpRoute {
  /** The default domain; absent while it cannot be had. */
  host?: string;
  /** Custom domains whose ownership is proved. */
  customHosts: readonly string[];
  /** Who issues the certificates of custom domains, a ClusterIssuer of cert-manager; absent where nobody does. */
  certificateIssuer?: string;
  ingressClass: string;
  /** Annotations that the ingress controller in use wants. */
  annotations: Readonly<Record<string, string>>;
  /** Namespace of the ingress controller's pods. */
  ingressNamespace: string;
  /** CIDRs of the clients that are admitted, never none at all; absent when everybody is. */
  admitted?: readonly string[];
  /** How the ingress controller enforces them. */
  allowList: AllowList;
}

/** Selects the instances of a project. It can never change: a Deployment's selector is immutable. */
export function instanceSelector(app: Pick<HttpApp, "id">) {
  return { matchLabels: { [labels.project]: app.id } };
}
