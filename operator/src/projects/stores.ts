/** What the project controller watches: its own kind, every kind of child, and what children depend on. */

import {
  byLabel,
  type ChildKind,
  type KubernetesObject,
  type Manager,
  type Resource,
  resources,
  type Store,
} from "@slipway/controller-runtime";
import {
  annotations,
  type DomainClaim,
  labels,
  MANAGED_BY,
  type Project,
  type VariableGroup,
} from "@slipway/crds";
import type { AllowList } from "../applications/access.ts";
import type { PodView } from "../applications/pod-problem.ts";
import { wantedHosts } from "../applications/view.ts";
import { claimIndexers } from "../domains/claims.ts";
import { type Job, slimJob } from "../jobs/runs/cluster.ts";
import { provisionedNamespaces } from "../organizations/controller.ts";
import { BY_PASSWORD, passwordKeysOf } from "../references/password-labels.ts";
import { referenceIndexers } from "../references/sources.ts";
import {
  domainClaimResource,
  middlewareResource,
  projectResource,
  variableGroupResource,
} from "../resources.ts";
import { SLICE_MANAGER } from "../sleep/desired.ts";
import { groupIndexers, sharedIndexers } from "../variable-groups/sources.ts";
import { createPullStore, type PullEvent } from "./images/pulls.ts";
import { createKillStore, type KillEvent } from "./probe-kills.ts";
import { dropSecretData } from "./secrets.ts";

/** A pod without fields that nothing reads. */
export type Pod = KubernetesObject & PodView;

export interface ProjectStores {
  projects: Store<Project>;
  claims: Store<DomainClaim>;
  /** Namespaces of organizations. */
  namespaces: Store;
  /** Secrets of organizations' namespaces, without their data: also those that others write. */
  secrets: Store;
  variableGroups: Store<VariableGroup>;
  pods: Store<Pod>;
  /** Pods that pull an image ahead of the version that needs it. */
  imagePulls: Store<Pod>;
  /** Jobs that run the pre-deploy command of a deployment, and their pods. */
  preDeployJobs: Store<Job>;
  preDeployPods: Store<Pod>;
  pulls: Store<PullEvent>;
  kills: Store<KillEvent>;
  /** The kinds that the controller itself applies. */
  children: readonly ChildKind[];
}

/** Index of projects by the hostnames that they want. */
export const BY_WANTED_HOST = "wantedHost";

/** In the order in which they are pruned. */
const CHILDREN: readonly Resource[] = [
  resources.persistentVolumeClaims,
  resources.networkPolicies,
  resources.services,
  resources.endpointSlices,
  resources.deployments,
  resources.statefulSets,
  resources.configMaps,
  resources.roleBindings,
  resources.roles,
  resources.serviceAccounts,
  resources.cronJobs,
  resources.podDisruptionBudgets,
  resources.horizontalPodAutoscalers,
  resources.ingresses,
];

/**
 * Traefik reads Ingresses and its own kinds apart from one another, and gathers the changes of each for 2 s by default.
 * An Ingress whose Middleware it does not know has no route meanwhile.
 */
const MIDDLEWARE_PROPAGATION_MS = 2_500;

/** Each application has one of them, which most versions leave as it is. */
const RARELY_CHANGED: readonly Resource[] = [
  resources.networkPolicies,
  resources.services,
  resources.ingresses,
];

/**
 * In the order in which children are pruned: an Ingress before what it names. A kind that is not served would never be
 * synced.
 */
function childKinds(allowList: AllowList): Omit<ChildKind, "store">[] {
  const kinds = CHILDREN.map((resource) => ({ resource, rarelyChanges: RARELY_CHANGED.includes(resource) }));
  return allowList === "traefik"
    ? [...kinds, { resource: middlewareResource, propagationMs: MIDDLEWARE_PROPAGATION_MS }]
    : kinds;
}

/** Creates the stores; their reflectors start with the manager. */
export function createProjectStores(
  manager: Manager,
  namespaces: Store,
  domainZone: string,
  allowList: AllowList,
): ProjectStores {
  const byProject = { [labels.project]: byLabel(labels.project) };
  const labelSelector = labels.project;
  return {
    projects: manager.store<Project>(projectResource, {
      indexers: {
        [BY_WANTED_HOST]: (project) => wantedHosts(project, domainZone),
        ...referenceIndexers,
        ...sharedIndexers,
      },
    }),
    claims: manager.store<DomainClaim>(domainClaimResource, { indexers: claimIndexers }),
    namespaces,
    secrets: manager.store(resources.secrets, {
      // They may be read in organizations' namespaces alone.
      namespaces: provisionedNamespaces(namespaces),
      metadataOnly: true,
      indexers: { ...byProject, [BY_PASSWORD]: passwordKeysOf },
      transform: dropSecretData,
    }),
    variableGroups: manager.store<VariableGroup>(variableGroupResource, { indexers: groupIndexers }),
    pods: manager.store<Pod>(resources.pods, { labelSelector, indexers: byProject, transform: slimPod }),
    imagePulls: manager.store<Pod>(resources.pods, {
      labelSelector: labels.imagePull,
      indexers: { [labels.imagePull]: byLabel(labels.imagePull) },
      transform: slimPod,
    }),
    preDeployJobs: manager.store<Job>(resources.jobs, {
      labelSelector: labels.preDeploy,
      indexers: { [labels.preDeploy]: byLabel(labels.preDeploy) },
      transform: slimJob,
    }),
    preDeployPods: manager.store<Pod>(resources.pods, {
      labelSelector: labels.preDeploy,
      indexers: { [labels.preDeploy]: byLabel(labels.preDeploy) },
      transform: slimPreDeployPod,
    }),
    pulls: createPullStore(manager),
    kills: createKillStore(manager),
    children: childKinds(allowList).map((kind) => ({
      ...kind,
      store: manager.store(kind.resource, { labelSelector: selectorOf(kind.resource), indexers: byProject }),
    })),
  };
}

/**
 * Patroni's own ConfigMaps change all the time and are nobody's business here: they are not labelled as managed. Kubernetes' own
 * EndpointSlices have the labels of their Services.
 */
function selectorOf(resource: Resource): string {
  if (resource === resources.endpointSlices) {
    return [labels.project, ...Object.entries(SLICE_MANAGER).map((one) => one.join("="))].join(",");
  }
  return resource === resources.configMaps
    ? `${labels.project},${labels.managedBy}=${MANAGED_BY}`
    : labels.project;
}

/** One kind of child, live as last observed by the watch. */
export function childOf<T extends KubernetesObject>(
  { children }: Pick<ProjectStores, "children">,
  resource: Resource,
  project: Project,
): T | undefined {
  const kind = children.find((child) => child.resource === resource);
  return kind?.store.get(project.metadata.namespace, project.metadata.name) as T | undefined;
}

/** All children of one kind that carry a project's label, those that are being deleted too. */
export function childrenOf<T extends KubernetesObject>(
  { children }: Pick<ProjectStores, "children">,
  resource: Resource,
  { metadata: { namespace, name } }: Project,
): T[] {
  const kind = children.find((child) => child.resource === resource);
  const labelled = kind?.store.byIndex(labels.project, name) ?? [];
  return labelled.filter(({ metadata }) => metadata?.namespace === namespace) as T[];
}

/** With its Job, and with why the kubelet has ended it. */
function slimPreDeployPod(pod: Pod): Pod {
  const { metadata, status, ...slim } = slimPod(pod);
  const { ownerReferences } = pod.metadata as KubernetesObject["metadata"] & object;
  return {
    ...slim,
    metadata: { ...metadata, ownerReferences } as Pod["metadata"],
    status: { ...status, reason: pod.status?.reason },
  };
}

function slimPod({ apiVersion, kind, metadata, spec, status }: Pod): Pod {
  const {
    name,
    namespace,
    uid,
    resourceVersion,
    labels: own,
    creationTimestamp,
    deletionTimestamp,
  } = metadata;
  const hash = metadata.annotations?.[annotations.settingsHash];
  // A database keeps the image that it runs from.
  const database = spec?.containers?.find(({ name: container }) => container === "database");
  const nodeName = spec?.nodeName;
  const kept = {
    ...(nodeName === undefined ? {} : { nodeName }),
    ...(database === undefined ? {} : { containers: [{ name: "database", image: database.image }] }),
  };
  return {
    apiVersion,
    kind,
    metadata: {
      name,
      namespace,
      uid,
      resourceVersion,
      labels: own,
      creationTimestamp,
      deletionTimestamp,
      ...(hash === undefined ? {} : { annotations: { [annotations.settingsHash]: hash } }),
    },
    ...(nodeName === undefined && database === undefined ? {} : { spec: kept }),
    status: {
      phase: status?.phase,
      podIP: status?.podIP,
      conditions: status?.conditions,
      containerStatuses: status?.containerStatuses,
    },
  } as Pod;
}
