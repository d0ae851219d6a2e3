import {
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

export interface PodOwnersOptions {
  client: KubeClient;
  clock: Clock;
  /** The node whose pods these are. */
  node: string;
  events?: ReflectorEvents;
}

/** Which pods of this node are instances of projects, by their uids. Of pods it reads the metadata alone. */
export class PodOwners {
  readonly #pods = new Map<string, LoggingPod>();
  readonly #reflector: Reflector<KubernetesObject>;

  constructor({ client, clock, node, events }: PodOwnersOptions) {
    const store = new Store<KubernetesObject>({ clock });
    store.subscribe(({ type, object }) => this.#note(object, type !== "delete"));
    this.#reflector = new Reflector<KubernetesObject>({
      ...{ client, store, clock, events },
      resource: resources.pods,
      labelSelector: `${labels.project},${labels.type}`,
      fieldSelector: `spec.nodeName=${node}`,
      metadataOnly: true,
    });
  }

  get hasSynced(): boolean {
    return this.#reflector.store.hasSynced;
  }

  /** Follows the cluster until the signal aborts. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    await this.#reflector.run(signal);
  }

  /** @returns undefined for a pod that is deleted, or whose log is not kept */
  find(uid: string): LoggingPod | undefined {
    return this.#pods.get(uid);
  }

  #note(object: KubernetesObject, isThere: boolean): void {
    const uid = object.metadata?.uid ?? "";
    const owner = ownerOf(object);
    const container = containerOf(object.metadata?.labels?.[labels.type] as ProjectType | undefined);
    if (isThere && owner && container !== undefined) {
      this.#pods.set(uid, { ...owner, container });
    } else {
      this.#pods.delete(uid);
    }
  }
}
