/** Pods of databases with where they are: the other stores keep no addresses. */

import { type KubernetesObject, type Manager, resources, type Store } from "@slipway/controller-runtime";
import { databaseTypes, labels } from "@slipway/crds";
import { CONTAINER } from "../common/pod.ts";

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
