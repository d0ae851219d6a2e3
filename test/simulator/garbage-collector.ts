/** The controller-manager's garbage collectors: dependents of deleted owners, and pods that no node will ever end. */

import { type Resource, resources } from "@slipway/controller-runtime";
import { jobRunResource } from "../../operator/src/resources.ts";
import type { Apiserver } from "./apiserver.ts";
import type { ControllerManager } from "./controller-manager.ts";
import { isTerminal } from "./job-controller.ts";
import { ownerUid, type Stored, type StoredPod, TRACKING_FINALIZER } from "./objects.ts";
import type { Timeline } from "./timeline.ts";

const DEPENDENTS: readonly Resource[] = [resources.cronJobs, resources.jobs, resources.pods, jobRunResource];
/** How often pods are listed. */
const POD_PERIOD_MS = 20_000;
/** A node that is missing may show up again for so long (podgc: quarantineTime). */
const QUARANTINE_MS = 40_000;

export class GarbageCollector {
  readonly #api: Apiserver;
  readonly #timeline: Timeline;
  readonly #manager: ControllerManager;
  /** Dependents by the uid of their owner. */
  readonly #dependents = new Map<string, Map<string, { resource: Resource; object: Stored }>>();
  /** Nodes that pods name and that are missing, with the time at which that was found. */
  readonly #missing = new Map<string, number>();

  constructor(timeline: Timeline, api: Apiserver, manager: ControllerManager) {
    this.#api = api;
    this.#timeline = timeline;
    this.#manager = manager;
    api.onChange(({ type, resource, object }) => {
      const { uid } = object.metadata;
      if (DEPENDENTS.includes(resource)) {
        this.#track(type, resource, object);
      }
      if (type === "delete" && this.#dependents.has(uid)) {
        this.#planCollection(uid);
      }
    });
    timeline.after(POD_PERIOD_MS, () => this.#collectPods());
  }

  #track(type: "add" | "update" | "delete", resource: Resource, object: Stored): void {
    const owner = ownerUid(object);
    if (owner === undefined || type === "update") {
      return;
    }
    const of = this.#dependents.get(owner) ?? new Map();
    if (type === "add") {
      of.set(object.metadata.uid, { resource, object });
    } else {
      of.delete(object.metadata.uid);
    }
    if (of.size > 0) {
      this.#dependents.set(owner, of);
    } else {
      this.#dependents.delete(owner);
    }
  }

  #planCollection(uid: string): void {
    this.#timeline.after(100 + this.#manager.delay() + this.#manager.downFor(), () => {
      for (const { resource, object } of [...(this.#dependents.get(uid)?.values() ?? [])]) {
        const live = this.#api.get(resource, object.metadata);
        if (live?.metadata.uid === object.metadata.uid) {
          this.#api.delete(resource, live.metadata, {});
        }
        if (resource === resources.pods) {
          this.#untrack(object);
        }
      }
    });
  }

  /** The Job controller removes its finalizer from pods whose Job is deleted. */
  #untrack(pod: Stored): void {
    const live = this.#api.get<StoredPod>(resources.pods, pod.metadata);
    if (live?.metadata.uid !== pod.metadata.uid) {
      return;
    }
    const finalizers = (live.metadata.finalizers ?? []).filter((item) => item !== TRACKING_FINALIZER);
    this.#api.patch(resources.pods, live.metadata, { metadata: { finalizers } });
  }

  /** Pods whose node is deleted, and pods that were deleted before they had one. */
  #collectPods(): void {
    if (this.#manager.downFor() === 0) {
      for (const pod of this.#api.list<StoredPod>(resources.pods)) {
        const { nodeName } = pod.spec;
        const lost =
          nodeName === undefined ? pod.metadata.deletionTimestamp !== undefined : this.#isDeleted(nodeName);
        if (lost) {
          this.#forceDelete(pod);
        }
      }
      for (const name of this.#missing.keys()) {
        if (this.#exists(name)) {
          this.#missing.delete(name);
        }
      }
    }
    this.#timeline.after(POD_PERIOD_MS, () => this.#collectPods());
  }

  /** Whether a node that was found missing is still missing after the quarantine. */
  #isDeleted(name: string): boolean {
    if (this.#exists(name)) {
      return false;
    }
    const since = this.#missing.get(name);
    if (since === undefined) {
      this.#missing.set(name, this.#timeline.now);
    }
    return since !== undefined && this.#timeline.now - since >= QUARANTINE_MS;
  }

  #exists(name: string): boolean {
    return this.#api.get(resources.nodes, { name }) !== undefined;
  }

  #forceDelete(pod: StoredPod): void {
    if (!isTerminal(pod)) {
      const conditions = [
        ...(pod.status.conditions ?? []),
        { type: "DisruptionTarget", status: "True", reason: "DeletionByPodGC" },
      ];
      const status = { ...pod.status, phase: "Failed", conditions };
      this.#api.patch(resources.pods, pod.metadata, { status }, { subresource: "status" });
    }
    if (this.#api.get(resources.pods, pod.metadata)) {
      this.#api.delete(resources.pods, pod.metadata, { gracePeriodSeconds: 0 });
    }
  }
}
