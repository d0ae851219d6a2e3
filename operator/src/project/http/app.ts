/** What the children of an HTTP project are made from: its spec, resolved against the plan catalog and the platform. */

import { labels, MANAGED_BY } from "@slipway/crds";
import type { AllowList } from "./access.ts";

/** CPU, memory and ephemeral storage as Kubernetes quantities. */
export interface ResourceList {
  cpu: string;
  memory: string;
  "ephemeral-storage": string;
}

/** One HTTP project, ready to be turned into objects. Every field is already validated. */
export interface HttpApp {
  /** The project's id: the name of every child. */
  id: string;
  namespace: string;
  organizationId: string;
  image: string;
  /** Name of a `kubernetes.io/dockerconfigjson` Secret of the same namespace. */
  pullSecret?: string;
  port: number;
  /** Secrets whose keys become environment variables, later ones winning. */
  envSecrets: readonly string[];
  /** Instances to run now: 0 while paused. */
  replicas: number;
  /** When the owner asked for the same settings to be deployed anew. */
  restartedAt?: string;
  /** Seconds a rollout may take without progress before it counts as failed; the old version keeps serving. */
  rolloutDeadlineSeconds: number;
  /** Another version was deployed before. */
  replaces?: boolean;
  autoscaling?: { min: number; max: number; cpuPercent?: number; memoryPercent?: number };
  resources: { requests: ResourceList; limits: ResourceList };
  /** A volume that outlives its pods; absent for projects that keep nothing. */
  volume?: { capacityGb: number; mountPath: string; storageClass?: string };
  /** Path that answers 2xx or 3xx when an instance is ready; without one an open port is enough. */
  healthcheckPath?: string;
  /** Present for public projects only. */
  route?: HttpRoute;
}

/** All that the objects of a public route are made from. */
export type RoutedApp = Pick<HttpApp, "id" | "namespace" | "organizationId" | "route">;

/** How the outside world reaches a public project. */
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
  /** How the ingress controller is told of them. */
  allowList: AllowList;
}

/** Labels of every child, pods included. */
export function childLabels(app: Pick<HttpApp, "id" | "organizationId">): Record<string, string> {
  return {
    [labels.managedBy]: MANAGED_BY,
    [labels.organization]: app.organizationId,
    [labels.type]: "http",
    [labels.project]: app.id,
  };
}

/** What selects the instances of a project. It can never change: a Deployment's selector is immutable. */
export function instanceSelector(app: Pick<HttpApp, "id">) {
  return { matchLabels: { [labels.project]: app.id } };
}

/** Metadata of a child: named after the project. The applier adds the owner reference. */
export function childMetadata(app: Omit<RoutedApp, "route">) {
  return { name: app.id, namespace: app.namespace, labels: childLabels(app) };
}
