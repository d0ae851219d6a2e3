/** The scheduler and the kubelets: pods get a node, their image and a container, and in the end a report of how it ended. */

import { parseKey, resources } from "@slipway/controller-runtime";
import type { Apiserver } from "./apiserver.ts";
import type { Behaviour, ContainerObserver, ContainerRecord } from "./container.ts";
import { isTerminal } from "./job-controller.ts";
import { type LocalPod, newLocalPod, podStatus, STATUS_UNKNOWN } from "./local-pod.ts";
import type { ModelNode, Nodes } from "./nodes.ts";
import { type StoredPod, wholeSeconds } from "./objects.ts";
import type { Chance } from "./random.ts";
import type { Timeline } from "./timeline.ts";

export interface KubeletsOptions {
  behaviour(pod: StoredPod): Behaviour;
  observer: ContainerObserver;
}

export class Kubelets {
  readonly #timeline: Timeline;
  readonly #api: Apiserver;
  readonly #nodes: Nodes;
  readonly #chance: Chance;
  readonly #options: KubeletsOptions;
  readonly #pods = new Map<string, LocalPod>();

  constructor(timeline: Timeline, api: Apiserver, nodes: Nodes, chance: Chance, options: KubeletsOptions) {
    this.#timeline = timeline;
    this.#api = api;
    this.#nodes = nodes;
    this.#chance = chance;
    this.#options = options;
    nodes.onCrash = (node) => this.#crashed(node);
    nodes.onBack = (node, rebooted) => this.#back(node, rebooted);
    nodes.onEvict = (node) => this.#taintEvict(node);
    api.onChange(({ type, resource, object, old }) => {
      if (resource !== resources.pods) {
        return;
      }
      const pod = object as StoredPod;
      if (type === "add") {
        this.#added(pod);
      }
      const local = this.#pods.get(pod.metadata.uid);
      if (!local) {
        return;
      }
      const deleted = pod.metadata.deletionTimestamp !== undefined;
      const hurried = pod.metadata.deletionGracePeriodSeconds !== old?.metadata.deletionGracePeriodSeconds;
      if (type === "delete" || (deleted && hurried)) {
        this.#soon(local, () => this.#observeDeletion(local));
      }
    });
  }

  /** Pods whose container runs now. */
  running(): ContainerRecord[] {
    return [...this.#pods.values()]
      .filter(({ record }) => record !== undefined && record.endedAt === undefined)
      .map(({ record }) => record as ContainerRecord);
  }

  /** Ends a running container for lack of memory, or evicts its pod. Returns whether there was one. */
  injectFault(podUid: string, how: "oom" | "evict"): boolean {
    const local = this.#pods.get(podUid);
    if (!local?.record || local.over || !local.node?.reachable) {
      return false;
    }
    if (how === "evict") {
      local.reason = "Evicted";
    }
    this.#end(local, 137, how === "oom" ? "OOMKilled" : "Error");
    return true;
  }

  #added(pod: StoredPod): void {
    const behaviour = this.#options.behaviour(pod);
    const local = newLocalPod(pod, behaviour);
    this.#pods.set(local.uid, local);
    if (Number.isFinite(behaviour.scheduleMs)) {
      local.next = this.#timeline.after(behaviour.scheduleMs, () => this.#bind(local));
    }
  }

  #bind(local: LocalPod): void {
    const pod = this.#live(local);
    if (!pod || pod.metadata.deletionTimestamp !== undefined) {
      return;
    }
    const node = this.#nodes.pick();
    if (!node) {
      local.next = this.#timeline.after(5_000, () => this.#bind(local));
      return;
    }
    local.node = node;
    this.#api.patch(resources.pods, pod.metadata, { spec: { nodeName: node.name } });
    this.#pull(local);
  }

  #pull(local: LocalPod): void {
    const { pullMs } = local.behaviour;
    this.#publishSoon(local);
    if (!Number.isFinite(pullMs)) {
      return;
    }
    local.next = this.#timeline.after(this.#chance.between(20, 400) + pullMs, () => this.#start(local));
  }

  #start(local: LocalPod): void {
    const { node, behaviour } = local;
    if (!node || local.over || local.stopping) {
      return;
    }
    const reportedAt = wholeSeconds(this.#nodes.clock(node));
    if (behaviour.startError) {
      const never = {
        exitCode: 128,
        reason: "StartError",
        startedAt: "1970-01-01T00:00:00Z",
        finishedAt: reportedAt,
      };
      this.#neverRun(local, this.#chance.happens(0.5) ? never : { ...never, startedAt: null });
      return;
    }
    const { namespace = "", name } = parseKey(local.key);
    local.record = {
      namespace,
      project: local.project,
      run: local.run,
      pod: name,
      podUid: local.uid,
      node: node.name,
      startedAt: this.#timeline.now,
      endedAt: undefined,
      reportedStartedAt: reportedAt,
      reportedFinishedAt: undefined,
      exitCode: undefined,
      reason: undefined,
      lost: false,
      stripped: false,
    };
    this.#options.observer.containerStarted(local.record);
    local.next = this.#timeline.after(behaviour.runMs, () =>
      this.#end(local, behaviour.exitCode, behaviour.reason),
    );
    this.#publishSoon(local);
  }

  #end(local: LocalPod, exitCode: number, reason: string): void {
    const { record, node } = local;
    if (!record || !node || local.over) {
      return;
    }
    local.over = true;
    local.next?.cancel();
    local.kill?.cancel();
    record.endedAt = this.#timeline.now;
    record.reportedFinishedAt = wholeSeconds(this.#nodes.clock(node));
    record.exitCode = exitCode;
    record.reason = reason;
    this.#options.observer.containerEnded(record);
    this.#publishSoon(local);
  }

  #neverRun(local: LocalPod, terminated: LocalPod["terminated"]): void {
    local.over = true;
    local.next?.cancel();
    local.terminated = terminated;
    this.#publishSoon(local);
  }

  /** The kubelet has observed that its pod is being deleted, or is deleted. */
  #observeDeletion(local: LocalPod): void {
    const pod = this.#live(local);
    local.deleted = true;
    if (!local.node) {
      local.over = true;
      local.next?.cancel();
      if (!pod) {
        this.#pods.delete(local.uid);
      }
      return;
    }
    if (local.over) {
      this.#publishSoon(local);
      return;
    }
    const graceMs = (pod?.metadata.deletionGracePeriodSeconds ?? 30) * 1_000;
    if (!local.record) {
      this.#neverRun(local, this.#chance.happens(0.5) ? STATUS_UNKNOWN : "none");
      return;
    }
    const { stopMs, stopCode } = local.behaviour;
    const kill = () => this.#end(local, 137, "Error");
    if (!local.stopping && stopMs <= graceMs) {
      const reason = stopCode === 0 ? "Completed" : "Error";
      this.#timeline.after(stopMs, () => {
        if (local.node?.alive) {
          this.#end(local, stopCode, reason);
        }
      });
    }
    local.stopping = true;
    local.kill?.cancel();
    local.kill = this.#timeline.after(Math.max(graceMs, 1_000) + this.#chance.between(0, 500), kill);
  }

  #crashed(node: ModelNode): void {
    for (const local of this.#on(node)) {
      local.next?.cancel();
      local.kill?.cancel();
      if (local.over || !local.record) {
        continue;
      }
      // Its end was not observed.
      local.over = true;
      local.record.endedAt = this.#timeline.now;
      local.record.lost = true;
      this.#options.observer.containerEnded(local.record);
    }
  }

  #back(node: ModelNode, rebooted: boolean): void {
    for (const local of this.#on(node)) {
      const { record } = local;
      if (rebooted && !local.over) {
        // A restarted kubelet lists the pods that the apiserver still has, and starts none that is being deleted.
        const pod = this.#live(local);
        const isDeleting = !pod || pod.metadata.deletionTimestamp !== undefined;
        if (local.deleted || isDeleting) {
          this.#neverRun(local, STATUS_UNKNOWN);
        } else {
          this.#pull(local);
        }
      } else if (rebooted && record?.lost && record.reportedFinishedAt === undefined) {
        // The runtime finds what is left of the container, or nothing at all.
        if (this.#chance.happens(0.6)) {
          record.lost = false;
          record.reportedFinishedAt = wholeSeconds(this.#nodes.clock(node));
          record.exitCode = 255;
          record.reason = "Unknown";
        } else {
          local.terminated = STATUS_UNKNOWN;
        }
      }
      const pod = this.#live(local);
      if (!pod || pod.metadata.deletionTimestamp !== undefined) {
        this.#soon(local, () => this.#observeDeletion(local));
      }
      this.#publishSoon(local);
    }
  }

  /** The taint manager deletes the pods of a node that has been silent for long. */
  #taintEvict(node: ModelNode): void {
    for (const local of this.#on(node)) {
      const pod = this.#live(local);
      if (pod && !isTerminal(pod)) {
        this.#api.delete(resources.pods, pod.metadata, { uid: pod.metadata.uid });
      }
    }
  }

  /** Once the kubelet receives a change: not before its node is reachable. */
  #soon(local: LocalPod, run: () => void): void {
    this.#timeline.after(this.#chance.between(10, 500), () => {
      // What happened during an outage is read when the node is back.
      if (local.node === undefined || (local.node.reachable && local.node.alive)) {
        run();
      }
    });
  }

  #publishSoon(local: LocalPod): void {
    if (local.publishing) {
      return;
    }
    local.publishing = true;
    this.#timeline.after(this.#chance.between(20, 1_000), () => {
      local.publishing = false;
      if (local.node?.reachable && local.node.alive) {
        this.#publish(local);
      }
    });
  }

  #publish(local: LocalPod): void {
    const pod = this.#live(local);
    if (!pod) {
      if (local.over) {
        this.#pods.delete(local.uid);
      } else {
        this.#soon(local, () => this.#observeDeletion(local));
      }
      return;
    }
    if (!isTerminal(pod)) {
      const status = podStatus(local);
      this.#api.patch(resources.pods, pod.metadata, { status }, { subresource: "status" });
    }
    const now = this.#live(local);
    // The end is confirmed: what remains are finalizers.
    if (local.over && now?.metadata.deletionTimestamp !== undefined) {
      this.#api.delete(resources.pods, now.metadata, { uid: local.uid, gracePeriodSeconds: 0 });
    }
  }

  #live(local: LocalPod): StoredPod | undefined {
    const pod = this.#api.get<StoredPod>(resources.pods, parseKey(local.key));
    return pod?.metadata.uid === local.uid ? pod : undefined;
  }

  #on(node: ModelNode): LocalPod[] {
    return [...this.#pods.values()].filter((local) => local.node === node);
  }
}
