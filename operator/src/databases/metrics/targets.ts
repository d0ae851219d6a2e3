/** Which instances are sampled, and their pods. */

import { type KubernetesObject, type Manager, resources, type Store } from "@slipway/controller-runtime";
import {
  type Catalog,
  type DatabasePlan,
  databaseNames,
  databasePodName,
  databaseTypes,
  type EngineName,
  isDatabaseType,
  labels,
  type MetricsSnapshot,
  type Project,
} from "@slipway/crds";
import type { MetricInstance } from "@slipway/ledger";
import { CONTAINER } from "../common/pod.ts";
import { instancesOf } from "../to-database.ts";
import type { ValkeyExpected } from "./valkey.ts";

export type SampledType = MetricsSnapshot["type"];

/** An instance that runs. */
export interface Target extends MetricInstance {
  type: SampledType;
  namespace: string;
  podUid: string;
  ip: string;
  node: string | undefined;
  /** Identifies one container of the pod. */
  container: string;
  /** Name of the instance in its certificate. */
  serverName: string;
  expected: ValkeyExpected;
  /** What its volume claim has, in bytes; undefined where nothing is kept, or no volume is bound yet. */
  claimBytes?: number;
}

const GIB = 1_073_741_824;

/**
 * Instances of databases on plans with snapshots whose server has been started. A paused project has none; what was sampled
 * of it before goes stale.
 * @param types engines that can be sampled
 */
export function targetsOf(
  projects: Iterable<Project>,
  pods: Pick<Store<DatabasePod>, "get">,
  { databasePlans }: Pick<Catalog, "databasePlans">,
  types: ReadonlySet<string>,
): Target[] {
  const found: Target[] = [];
  for (const project of projects) {
    const { metadata, spec, status } = project;
    if (!isDatabaseType(spec.type) || !types.has(spec.type) || spec.paused || metadata.deletionTimestamp) {
      continue;
    }
    const plan = databasePlans.find((known) => known.plan === spec.plan);
    if (!plan || !hasSnapshots(plan, spec.type)) {
      continue;
    }
    const instances = instancesOf(project, plan);
    const expected = {
      replicas: instances - 1,
      profile: spec.profile ?? "key_value",
      persistent: spec.storage?.persistent === true,
    } as const;
    // More than are requested while some are being stopped.
    const most = Math.max(instances, status?.currentInstances ?? 0);
    for (let ordinal = 0; ordinal < most; ordinal += 1) {
      const pod = pods.get(metadata.namespace, databasePodName(metadata.name, ordinal));
      const target = pod && targetOf(project, spec.type as SampledType, pod, expected);
      if (target) {
        found.push(target);
      }
    }
  }
  return found;
}

/** Valkey's plans differ by their tier. */
function hasSnapshots({ metrics }: DatabasePlan, type: EngineName): boolean {
  return metrics.access === "snapshot" && (type !== "valkey" || metrics.tier !== undefined);
}

function targetOf(
  { metadata, spec, status }: Project,
  type: SampledType,
  { metadata: pod, ip, node, startedAt }: DatabasePod,
  expected: ValkeyExpected,
): Target | undefined {
  const organizationId = pod.labels?.[labels.organization];
  if (organizationId === undefined || ip === undefined || startedAt === undefined) {
    return undefined;
  }
  if (pod.labels?.[labels.project] !== metadata.name) {
    return undefined;
  }
  const capacityGb = spec.storage?.persistent ? status?.database?.storage?.capacity : undefined;
  return {
    organizationId,
    projectId: metadata.name,
    projectUid: metadata.uid ?? "",
    instance: pod.name,
    type,
    namespace: pod.namespace,
    podUid: pod.uid,
    ip,
    node,
    container: `${pod.uid}/${startedAt}`,
    serverName: `${pod.name}.${databaseNames(metadata.name).nodes}.${pod.namespace}.svc`,
    expected,
    claimBytes: capacityGb === undefined ? undefined : capacityGb * GIB,
  };
}

// Pods of databases with where they are: the other stores keep no addresses.

export interface DatabasePod extends KubernetesObject {
  metadata: { name: string; namespace: string; uid: string; labels?: Readonly<Record<string, string>> };
  ip?: string;
  node?: string;
  /** When the server's container began; undefined while it does not run. */
  startedAt?: string;
}

/** The parts of a pod that are read here. */
interface LivePod extends KubernetesObject {
  spec?: { nodeName?: string };
  status?: {
    podIP?: string;
    containerStatuses?: readonly { name: string; state?: { running?: { startedAt?: string } } }[];
  };
}

/** Creates the store; its reflector starts with the manager. */
export function createDatabasePods(manager: Manager): Store<DatabasePod> {
  return manager.store<DatabasePod>(resources.pods, {
    labelSelector: `${labels.project},${labels.type} in (${databaseTypes.join(",")})`,
    transform: slimDatabasePod,
  });
}

export function slimDatabasePod(given: KubernetesObject): DatabasePod {
  const { apiVersion, kind, metadata, spec, status } = given as LivePod;
  const running = status?.containerStatuses?.find(({ name }) => name === CONTAINER)?.state?.running;
  return {
    apiVersion,
    kind,
    metadata: {
      name: metadata?.name ?? "",
      namespace: metadata?.namespace ?? "",
      uid: metadata?.uid ?? "",
      resourceVersion: metadata?.resourceVersion,
      labels: metadata?.labels,
    },
    ip: status?.podIP,
    node: spec?.nodeName,
    startedAt: running?.startedAt,
  } as DatabasePod;
}
