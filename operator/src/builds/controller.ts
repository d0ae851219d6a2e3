/** The controller of builds: its dependencies, watches and permissions. */

import {
  byNamespace,
  customSource,
  type IsOwnKey,
  ignoreStatusUpdates,
  type Manager,
  refKey,
  resources,
  type Store,
  tracedIn,
  watchMapped,
  watchObjects,
} from "@slipway/controller-runtime";
import { type Build, labels, organizationNamespace, type Project } from "@slipway/crds";
import type { GithubApp } from "@slipway/git";
import type { BuildRow } from "@slipway/ledger";
import type { MountedFile } from "@slipway/process";
import { addGitConnectionController } from "../git/controller.ts";
import { BuiltPull } from "../projects/images/built-pull.ts";
import type { PolicyRule } from "../rbac.ts";
import { buildResource } from "../resources.ts";
import { BuildCluster, BY_BUILD, BY_CACHE } from "./cluster.ts";
import { type GarbageCollectorOptions, imageDeleter, runGarbageCollector } from "./garbage-collection.ts";
import { LogFollower, type StoreBuildLog } from "./log-follower.ts";
import { createBuildMetrics } from "./metrics.ts";
import { BUILD_LABEL, BUILD_NAME_ANNOTATION, CACHE_LABEL } from "./names.ts";
import type { BuildPod } from "./pod-state.ts";
import { BuildPoller, type TriggerLedger } from "./poller.ts";
import { isBuilding, isEnded } from "./queue.ts";
import { buildReconciler } from "./reconciler.ts";
import type { BuildSettings } from "./settings.ts";
import { type SourceReconcilerOptions, sourceReconciler } from "./source-reconciler.ts";
import { connectionOpener, type OpenSource, providerOpener, sourceOpener } from "./sources.ts";

const WATCH = ["list", "watch"] as const;
const READ = ["get", ...WATCH] as const;

/** Permissions in every namespace; the chart's ClusterRole is generated from them where builds are switched on. */
export const rules: PolicyRule[] = [
  { apiGroups: ["slipway.dev"], resources: ["builds"], verbs: [...WATCH, "create", "patch", "delete"] },
  { apiGroups: ["slipway.dev"], resources: ["builds/status"], verbs: ["update"] },
  { apiGroups: ["slipway.dev"], resources: ["projects"], verbs: [...READ, "patch"] },
  { apiGroups: ["slipway.dev"], resources: ["projects/status"], verbs: ["patch"] },
  { apiGroups: ["slipway.dev"], resources: ["gitconnections"], verbs: ["get", "list"] },
];

/** In organizations' namespaces alone: credentials of Git servers, variables of projects. */
export const organizationRules: PolicyRule[] = [{ apiGroups: [""], resources: ["secrets"], verbs: ["get"] }];

/** In the namespace of builds alone. */
export const buildsNamespaceRules: PolicyRule[] = [
  { apiGroups: [""], resources: ["pods"], verbs: [...READ, "create", "delete"] },
  { apiGroups: [""], resources: ["pods/log"], verbs: ["get"] },
  { apiGroups: [""], resources: ["secrets"], verbs: ["create"] },
  { apiGroups: [""], resources: ["persistentvolumeclaims"], verbs: ["get", "list", "create", "delete"] },
  { apiGroups: ["networking.k8s.io"], resources: ["networkpolicies"], verbs: ["create", "patch"] },
];

export interface BuildOptions {
  projects: Store<Project>;
  settings: () => BuildSettings;
  registryKey: () => string;
  /** Variables for the tools of builds. */
  tools: () => Readonly<Record<string, string>>;
  git: { allowedHosts: readonly string[]; ca: string; githubApp?: () => GithubApp | undefined };
  record: (row: BuildRow) => Promise<unknown>;
  storeLog: StoreBuildLog;
  /** Triggers that have started builds; without it Git servers are not polled. */
  triggers?: TriggerLedger;
  /** Whether the history has any build of a project; without it sources that do not come through `/v1` start no builds. */
  hasBuilds?: SourceReconcilerOptions["hasBuilds"];
  /** Images that no history names any more; without it nothing is garbage-collected. */
  retired?: GarbageCollectorOptions["retired"];
  /** In place of the one that queries the Git server. */
  openSource?: OpenSource;
}

export function addBuildController(manager: Manager, options: BuildOptions): void {
  const { client, clock, log, recorder, registry, trustedClock } = manager;
  const { projects, settings, record, storeLog } = options;
  const builds = manager.store<Build>(buildResource, { indexers: { namespace: byNamespace } });
  const labelValue = (name: string) => (pod: BuildPod) => [pod.metadata.labels?.[name] ?? []].flat();
  const pods = manager.store<BuildPod>(resources.pods, {
    namespace: settings().namespace,
    labelSelector: BUILD_LABEL,
    indexers: { [BY_BUILD]: labelValue(BUILD_LABEL), [BY_CACHE]: labelValue(CACHE_LABEL) },
    // Specs contain the tasks, which are not read here.
    transform: ({ apiVersion, kind, metadata, status }) => ({
      apiVersion,
      kind,
      metadata: { ...metadata, managedFields: undefined },
      status,
    }),
  });
  const stores = { builds, projects, pods };
  const wakers = new Set<(key: string) => void>();
  const follower = new LogFollower({
    client,
    store: storeLog,
    clock,
    log,
    onStored: ({ organizationId, buildId }) => {
      const key = refKey({ namespace: organizationNamespace(organizationId), name: buildId });
      for (const wake of wakers) {
        wake(key);
      }
    },
  });
  manager.addRunnable({
    name: "build-logs",
    run: (signal) => {
      follower.start(signal);
      return new Promise((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
    },
  });
  addRunnables(manager, options, builds);
  const unfinished = (namespace: string | undefined) =>
    builds
      .byIndex("namespace", namespace ?? "")
      .filter((build) => !isEnded(build))
      .map(({ metadata }) => metadata);
  /** Of all organizations, while the platform's quota is used up, or was until now. */
  const queued = () =>
    builds.list().filter(isBuilding).length < settings().platformConcurrency - 1
      ? []
      : builds
          .list()
          .filter((build) => !isEnded(build) && !isBuilding(build))
          .map(({ metadata }) => metadata);
  manager.addController({
    name: "build",
    reconcile: buildReconciler({
      client,
      clock,
      trustedClock,
      recorder,
      stores,
      settings,
      record,
      storeLog,
      follower,
      cluster: new BuildCluster({ ...options, client, stores }),
      openSource: options.openSource ?? sourceOpener({ client, ...options.git }),
      metrics: createBuildMetrics(registry, builds),
    }),
    sources: [
      watchObjects(builds),
      // Released quota, or a newer build, concerns the other builds of the organization.
      watchMapped(
        builds,
        ({ metadata }) => [...unfinished(metadata.namespace), ...queued()],
        (event) => event.type !== "update" || quotaState(event.object) !== quotaState(event.old),
      ),
      watchMapped(pods, ({ metadata }) => {
        const namespace = organizationNamespace(metadata.labels?.[labels.organization] ?? "unknown");
        return [
          { namespace, name: metadata.annotations?.[BUILD_NAME_ANNOTATION] ?? "" },
          ...unfinished(namespace),
        ];
      }),
      watchMapped(projects, ({ metadata }) =>
        builds
          .byIndex("namespace", metadata.namespace ?? "")
          .filter((build) => !isEnded(build) && build.spec.projectRef.name === metadata.name)
          .map((build) => build.metadata),
      ),
      customSource((enqueue) => {
        const wake = (key: string) => enqueue(key);
        wakers.add(wake);
        return () => void wakers.delete(wake);
      }),
    ],
    workers: 4,
    isOwnKey: inFirstShard,
    traced: tracedIn(builds),
  });
}

/** Adds what runs beside the builds: source reconciler, poller, garbage collector. */
function addRunnables(manager: Manager, options: BuildOptions, builds: Store<Build>): void {
  const { client, clock, log } = manager;
  const { projects, settings, registryKey, git, triggers, hasBuilds, retired } = options;
  if (hasBuilds) {
    manager.addController({
      name: "build-source",
      reconcile: sourceReconciler({ client, clock, projects, builds, hasBuilds }),
      sources: [watchObjects(projects, ignoreStatusUpdates)],
      isOwnKey: inFirstShard,
    });
  }
  if (triggers) {
    const open = providerOpener({ client, ...git });
    const poller = new BuildPoller({ client, clock, log, projects, builds, open, ledger: triggers });
    manager.addRunnable({ name: "build-poll", run: (signal) => poller.run(signal) });
  }
  if (retired) {
    const deleteImage = imageDeleter(settings, registryKey);
    const collector = { client, clock, log, projects, builds, settings, retired, deleteImage };
    manager.addRunnable({ name: "build-leftovers", run: (signal) => runGarbageCollector(collector, signal) });
  }
}

/** The platform builds so many at once, of all organizations: one process admits them. */
const inFirstShard: IsOwnKey = (_ref, owns) => owns(undefined);

const quotaState = ({ status }: Build): string => `${status?.phase}/${status?.step === "publish"}`;

// Adds builds and Git connections to a manager.

/** How projects are built from Git. */
export type BuildsOptions = Omit<BuildOptions, "projects" | "settings"> & {
  settings: Pick<MountedFile<BuildSettings>, "current" | "run">;
};

export function addBuilds(
  manager: Manager,
  { settings, ...dependencies }: BuildsOptions,
  projects: BuildOptions["projects"],
): void {
  addBuildController(manager, { ...dependencies, projects, settings: () => settings.current });
  addGitConnectionController(manager, {
    projects,
    open: connectionOpener({ client: manager.client, ...dependencies.git }),
  });
  manager.addRunnable({
    name: "build-settings",
    leaderOnly: false,
    run: (signal) => settings.run(signal),
  });
}

/** Keeps what nodes pull built images with. */
export function createBuiltPull(
  { client, clock }: Manager,
  { settings, registryKey }: BuildsOptions,
): BuiltPull {
  return new BuiltPull({ client, clock, registryKey, host: () => settings.current.registry.host });
}
