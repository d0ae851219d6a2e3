import type { KubernetesObject, Resource } from "./types.ts";

const core = (plural: string, kind: string, namespaced = true): Resource =>
  resource("", "v1", plural, kind, namespaced);

function resource(group: string, version: string, plural: string, kind: string, namespaced = true): Resource {
  return Object.freeze({ group, version, plural, kind, namespaced });
}

/** Builds the descriptor of a custom resource. */
export function customResource(
  group: string,
  version: string,
  plural: string,
  kind: string,
  namespaced = true,
): Resource {
  return resource(group, version, plural, kind, namespaced);
}

/** Descriptors of built-in resources. */
export const resources = Object.freeze({
  configMaps: core("configmaps", "ConfigMap"),
  endpoints: core("endpoints", "Endpoints"),
  limitRanges: core("limitranges", "LimitRange"),
  namespaces: core("namespaces", "Namespace", false),
  nodes: core("nodes", "Node", false),
  persistentVolumeClaims: core("persistentvolumeclaims", "PersistentVolumeClaim"),
  persistentVolumes: core("persistentvolumes", "PersistentVolume", false),
  pods: core("pods", "Pod"),
  resourceQuotas: core("resourcequotas", "ResourceQuota"),
  secrets: core("secrets", "Secret"),
  serviceAccounts: core("serviceaccounts", "ServiceAccount"),
  services: core("services", "Service"),
  deployments: resource("apps", "v1", "deployments", "Deployment"),
  replicaSets: resource("apps", "v1", "replicasets", "ReplicaSet"),
  statefulSets: resource("apps", "v1", "statefulsets", "StatefulSet"),
  cronJobs: resource("batch", "v1", "cronjobs", "CronJob"),
  jobs: resource("batch", "v1", "jobs", "Job"),
  horizontalPodAutoscalers: resource(
    "autoscaling",
    "v2",
    "horizontalpodautoscalers",
    "HorizontalPodAutoscaler",
  ),
  ingresses: resource("networking.k8s.io", "v1", "ingresses", "Ingress"),
  ingressClasses: resource("networking.k8s.io", "v1", "ingressclasses", "IngressClass", false),
  networkPolicies: resource("networking.k8s.io", "v1", "networkpolicies", "NetworkPolicy"),
  podDisruptionBudgets: resource("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget"),
  roles: resource("rbac.authorization.k8s.io", "v1", "roles", "Role"),
  roleBindings: resource("rbac.authorization.k8s.io", "v1", "rolebindings", "RoleBinding"),
  leases: resource("coordination.k8s.io", "v1", "leases", "Lease"),
  events: resource("events.k8s.io", "v1", "events", "Event"),
  endpointSlices: resource("discovery.k8s.io", "v1", "endpointslices", "EndpointSlice"),
  storageClasses: resource("storage.k8s.io", "v1", "storageclasses", "StorageClass", false),
  customResourceDefinitions: resource(
    "apiextensions.k8s.io",
    "v1",
    "customresourcedefinitions",
    "CustomResourceDefinition",
    false,
  ),
  tokenReviews: resource("authentication.k8s.io", "v1", "tokenreviews", "TokenReview", false),
});

/** Whether an object is of a resource's kind: group and kind must match, the version need not. */
export function isOfResource(object: KubernetesObject, resource: Resource): boolean {
  const apiVersion = object.apiVersion ?? "";
  const slash = apiVersion.indexOf("/");
  const group = slash < 0 ? "" : apiVersion.slice(0, slash);
  return object.kind === resource.kind && group === resource.group;
}
