import {
  isInTerminalPhase,
  type KubeClient,
  type KubernetesObject,
  Reflector,
  type ReflectorEvents,
  resources,
  Store,
} from "@slipway/controller-runtime";
import { isDatabaseType, labels, type ProjectType } from "@slipway/crds";
import type { Clock } from "@slipway/process";
import { type Owner, ownerOf } from "./traefik-names.ts";

/** The container of a pod that is its project's own, by the type of the project; others are the platform's. Pure. */
export function containerOf(type: ProjectType | undefined): string | undefined {
  if (type !== undefined && isDatabaseType(type)) {
    return "database";
  }
  // Logs of jobs' runs are kept with the runs.
  return type === "http" || type === "worker" ? "app" : undefined;
}

/** A pod whose log is kept. */
export interface LoggingPod extends Owner {
  container: string;
}

/** An instance of a project. */
export interface InstancePod extends LoggingPod {
  uid: string;
  /** Name of the pod. */
  instance: string;
  /** Restarts of its container; undefined where they are not followed, or not known yet. */
  restarts: number | undefined;
  /** Whether its pod has ended, where that is followed: none of its containers runs, or will. */
  hasEnded?: true;
}

interface Pod extends KubernetesObject {
  status?: { phase?: string; containerStatuses?: { name: string; restartCount?: number }[] };
}

export interface PodOwnersOptions {
  client: KubeClient;
  clock: Clock;
  /** The node whose pods these are. */
  node: string;
  /** Whether restarts are followed: of pods the metadata alone is read otherwise. */
  withRestarts?: boolean;
  events?: ReflectorEvents;
}

/** Which pods of this node are instances of projects, by their uids. Of what it reads it keeps names, labels, phases and restarts. */
export class PodOwners {
  readonly #pods = new Map<string, InstancePod>();
  readonly #reflector: Reflector<Pod>;

  constructor({ client, clock, node, withRestarts = false, events }: PodOwnersOptions) {
    const store = new Store<Pod>({ clock, transform: slimPod });
    store.subscribe(({ type, object }) => this.#note(object, type !== "delete"));
    this.#reflector = new Reflector<Pod>({
      ...{ client, store, clock, events },
      resource: resources.pods,
      labelSelector: `${labels.project},${labels.type}`,
      fieldSelector: `spec.nodeName=${node}`,
      metadataOnly: !withRestarts,
    });
  }

  /** Whether all pods are known. */
  get hasSynced(): boolean {
    return this.#reflector.store.hasSynced;
  }

  /** Follows the cluster until the signal aborts. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    await this.#reflector.run(signal);
  }

  /** @returns undefined for a pod that is deleted, or whose log is not kept */
  find(uid: string): InstancePod | undefined {
    return this.#pods.get(uid);
  }

  /** All that have not ended, those that were observed first at the beginning. Evicted pods stay until they are collected as garbage. */
  list(): InstancePod[] {
    return [...this.#pods.values().filter(({ hasEnded }) => !hasEnded)];
  }

  #note(object: Pod, isThere: boolean): void {
    const uid = object.metadata?.uid ?? "";
    const owner = ownerOf(object);
    const container = containerOf(object.metadata?.labels?.[labels.type] as ProjectType | undefined);
    if (isThere && owner && container !== undefined) {
      const status = object.status?.containerStatuses?.find(({ name }) => name === container);
      const instance = object.metadata?.name ?? "";
      const ended = isInTerminalPhase(object) ? { hasEnded: true as const } : {};
      this.#pods.set(uid, { ...owner, container, uid, instance, restarts: status?.restartCount, ...ended });
    } else {
      this.#pods.delete(uid);
    }
  }
}

/** Drops what is not read on arrival: specs have what projects are configured with. */
function slimPod({ apiVersion, kind, metadata, status }: Pod): Pod {
  const { name, namespace, uid, resourceVersion, labels: own } = metadata ?? {};
  const { phase } = status ?? {};
  const containerStatuses = status?.containerStatuses?.map(({ name: of, restartCount }) => ({
    name: of,
    restartCount,
  }));
  return {
    ...{ apiVersion, kind },
    metadata: { name, namespace, uid, resourceVersion, labels: own },
    ...(status ? { status: { phase, containerStatuses } } : {}),
  } as Pod;
}
