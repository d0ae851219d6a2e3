/** The controllers of projects: what they need, what wakes them, what they may do. */

import {
  type Controller,
  customSource,
  equalJson,
  ignoreStatusUpdates,
  type KubernetesObject,
  type Manager,
  type ObjectRef,
  parseKey,
  refKey,
  resources,
  type Source,
  type StoreEvent,
  tracedIn,
  watchLabelled,
  watchMapped,
  watchObjects,
} from "@slipway/controller-runtime";
import { isDatabaseType, labels, type Project } from "@slipway/crds";
import { eventRules, type PolicyRule } from "../rbac.ts";
import { referenceSources } from "../references/sources.ts";
import { sharedSourcesOf } from "../variable-groups/sources.ts";
import { creationPendingMs } from "./accept.ts";
import type { ProjectDependencies } from "./dependencies.ts";
import type { PullEvent } from "./images/pulls.ts";
import { projectRefOf } from "./quotas/reaper.ts";
import type { QuotaReservations } from "./quotas/reservations.ts";
import { projectReconciler } from "./reconciler.ts";
import { BY_WANTED_HOST, type Pod, type ProjectStores } from "./stores.ts";

const WATCH = ["list", "watch"] as const;
const READ = ["get", ...WATCH] as const;
const WRITE = ["create", "patch", "delete"] as const;

/** Kinds of children of projects, by API group. */
const CHILDREN: readonly (readonly [group: string, resources: readonly string[]])[] = [
  ["", ["services", "persistentvolumeclaims"]],
  ["discovery.k8s.io", ["endpointslices"]],
  ["apps", ["deployments"]],
  ["batch", ["cronjobs"]],
  ["autoscaling", ["horizontalpodautoscalers"]],
  ["networking.k8s.io", ["ingresses", "networkpolicies"]],
  ["policy", ["poddisruptionbudgets"]],
  // Access lists: what Traefik reads.
  ["traefik.io", ["middlewares"]],
];

/** In every namespace: Slipway's own kinds, and what the watches see. Nothing that runs is written there. */
export const rules: PolicyRule[] = [
  { apiGroups: ["slipway.dev"], resources: ["projects"], verbs: [...READ, "patch"] },
  { apiGroups: ["slipway.dev"], resources: ["projects/status"], verbs: ["update"] },
  // Owner references that block their owner's deletion need it.
  { apiGroups: ["slipway.dev"], resources: ["projects/finalizers"], verbs: ["update"] },
  { apiGroups: ["slipway.dev"], resources: ["domainclaims"], verbs: [...READ, "create", "delete"] },
  { apiGroups: ["slipway.dev"], resources: ["variablegroups"], verbs: WATCH },
  { apiGroups: [""], resources: ["namespaces"], verbs: [...READ] },
  { apiGroups: [""], resources: ["pods"], verbs: WATCH },
  { apiGroups: ["batch"], resources: ["jobs"], verbs: WATCH },
  { apiGroups: ["slipway.dev"], resources: ["jobruns"], verbs: [...READ, "patch", "delete"] },
  // A pull under way, and the probe because of which a container was ended, are reported by an Event alone.
  { apiGroups: [""], resources: ["events"], verbs: WATCH },
  ...CHILDREN.map(([group, resources]) => ({ apiGroups: [group], resources, verbs: WATCH })),
  // Access lists: whether the ingress would enforce them.
  { apiGroups: ["networking.k8s.io"], resources: ["ingressclasses"], verbs: ["get"] },
];

/** In organizations' namespaces alone. */
export const organizationRules: PolicyRule[] = [
  // Users' own and those created for a project; their data is dropped on arrival. Each namespace has a watch of its own.
  { apiGroups: [""], resources: ["secrets"], verbs: [...READ, ...WRITE] },
  // Created to pull an image ahead of a version. Patched and deleted once the run of a deleted job is charged: the
  // finalizers of its pod and its Job are removed.
  { apiGroups: [""], resources: ["pods"], verbs: ["get", ...WRITE] },
  // Created to run a deployment's pre-deploy command.
  { apiGroups: ["batch"], resources: ["jobs"], verbs: ["get", "create", "patch", "delete"] },
  { apiGroups: ["apps"], resources: ["replicasets"], verbs: ["list"] },
  ...CHILDREN.map(([group, resources]) => ({
    apiGroups: [group],
    resources,
    verbs: ["get", ...WRITE],
  })),
  ...eventRules,
];

/** Has a project reconciled, by the controller of its type. */
export type ProjectQueue = Pick<Controller, "enqueue">;

/**
 * Adds the controllers of projects to a manager: `database` reconciles databases, `project` all others. Each has a queue and
 * workers of its own, so that databases whose members do not answer keep no other project waiting.
 * @param onCatalogChange registers a listener for catalog changes; returns how to stop it
 * @param onRouteAnswer the same for projects about whose routes the ingress has answered
 */
export function addProjectControllers(
  manager: Manager,
  deps: Omit<ProjectDependencies, "client" | "clock" | "recorder" | "metrics" | "wake">,
  onCatalogChange: (listener: () => void) => () => void,
  onRouteAnswer: (listener: (project: ObjectRef) => void) => () => void,
): ProjectQueue {
  const { client, clock, recorder, metrics } = manager;
  const { projects } = deps.stores;
  const wakes = wakeable();
  const reconcile = projectReconciler({ ...deps, client, clock, recorder, metrics, wake: wakes.wake });
  const watched = sources(deps.stores, onCatalogChange);
  const add = (name: string, own: readonly Source[], isOwn: (project: Project) => boolean) =>
    manager.addController({
      name,
      reconcile,
      sources: [...watched.map((source) => ofProjects(source, projects, isOwn)), ...own],
      // They wait for the apiserver, and compute little.
      workers: 24,
      traced: tracedIn(projects, (project) => creationPendingMs(project, clock.now()) > 0),
    });
  const databases = add("database", [wakes.source], isDatabase);
  const queue: ProjectQueue = {
    enqueue: (ref, afterMs) => {
      const project = projects.get(ref.namespace, ref.name);
      (project && isDatabase(project) ? databases : others).enqueue(ref, afterMs);
    },
  };
  const others = add(
    "project",
    [
      freedQuotas(deps.quotas, queue),
      customSource((enqueue) => onRouteAnswer((project) => enqueue(refKey(project)))),
    ],
    (project) => !isDatabase(project),
  );
  return queue;
}

const isDatabase = ({ spec }: Project): boolean => isDatabaseType(spec.type);

/** A source restricted to some projects; deleted ones pass, so that each controller forgets them. */
function ofProjects(
  source: Source,
  projects: ProjectStores["projects"],
  isOwn: (project: Project) => boolean,
): Source {
  return {
    hasSynced: () => source.hasSynced(),
    attach: (enqueue) =>
      source.attach((key, options) => {
        const { namespace, name } = parseKey(key);
        const project = projects.get(namespace, name);
        if (project === undefined || isOwn(project)) {
          enqueue(key, options);
        }
      }),
  };
}

/** Projects to reconcile because of events from elsewhere than the apiserver. */
function wakeable(): { wake: (project: ObjectRef) => void; source: Source } {
  let wake = (_project: ObjectRef): void => {};
  const source = customSource((enqueue) => {
    wake = (project) => enqueue(refKey(project));
    return () => {
      wake = () => {};
    };
  });
  return { wake: (project) => wake(project), source };
}

/** Projects whose quota may fit now. */
function freedQuotas(quotas: QuotaReservations, queue: ProjectQueue): Source {
  return customSource(() => quotas.onWake((identity) => queue.enqueue(projectRefOf(identity))));
}

/** A run's pod is reconciled by the controller of runs, and such pods come and go by the minute. */
const isRun = ({ metadata }: KubernetesObject) => metadata?.labels?.[labels.type] === "job";

/** An update may change nothing of what is kept of a pod: Patroni writes its position into an annotation every few seconds. */
function hasChanged(event: StoreEvent<Pod>): boolean {
  return event.type !== "update" || !equalJson(withoutVersion(event.old), withoutVersion(event.object));
}

/** Builds publish in the status which image is to run. */
function isBuildUpdate(event: StoreEvent<Project>): boolean {
  if (event.type !== "update") {
    return false;
  }
  const buildState = ({ status }: Project) => [status?.build, status?.buildFailure];
  return !equalJson(buildState(event.old), buildState(event.object));
}

const withoutVersion = ({ metadata, ...rest }: Pod) => ({
  ...rest,
  metadata: { ...metadata, resourceVersion: undefined },
});

function sources(stores: ProjectStores, onCatalogChange: (listener: () => void) => () => void): Source[] {
  const { projects, claims, namespaces, secrets, pods, imagePulls, pulls, kills, children } = stores;
  const refOf = ({ metadata: { namespace, name } }: Project): ObjectRef => ({ namespace, name });
  const projectOfEvent = ({ involvedObject: { namespace, name = "" } }: PullEvent): ObjectRef[] => {
    const pod = pods.get(namespace, name) ?? imagePulls.get(namespace, name);
    const own = pod?.metadata.labels;
    const project = own?.[labels.project] ?? own?.[labels.imagePull];
    return pod === undefined || project === undefined || isRun(pod) ? [] : [{ namespace, name: project }];
  };
  return [
    watchObjects(projects, (event) => ignoreStatusUpdates(event) || isBuildUpdate(event)),
    // Each occurrence changes its CronJob's status: the desired objects do not depend on it.
    ...children.map(({ resource, store }) =>
      watchLabelled(store, labels.project, resource === resources.cronJobs ? ignoreStatusUpdates : undefined),
    ),
    watchLabelled(pods, labels.project, (event) => !isRun(event.object) && hasChanged(event)),
    watchLabelled(imagePulls, labels.imagePull, hasChanged),
    watchLabelled(stores.preDeployJobs, labels.preDeploy),
    watchLabelled(stores.preDeployPods, labels.preDeploy, hasChanged),
    // An Event that expires reports nothing new.
    watchMapped(pulls, projectOfEvent, ({ type }) => type !== "delete"),
    watchMapped(kills, projectOfEvent, ({ type, object }) => type !== "delete" && object.probe !== undefined),
    watchLabelled(secrets, labels.project),
    ...referenceSources(projects, secrets),
    ...sharedSourcesOf(stores),
    // Namespaces that become provisioned.
    watchMapped(
      namespaces,
      (namespace) => projects.list(namespace.metadata?.name).map(refOf),
      ignoreStatusUpdates,
    ),
    // A claim that its project lost, and one that was released for a project that waits for it.
    watchMapped(claims, (claim) => [
      { namespace: claim.spec.projectRef.namespace, name: claim.spec.projectRef.name },
      ...projects.byIndex(BY_WANTED_HOST, claim.spec.hostname).map(refOf),
    ]),
    customSource((enqueue) =>
      onCatalogChange(() => {
        for (const project of projects.list()) {
          enqueue(refKey(refOf(project)));
        }
      }),
    ),
  ];
}
