/** Nodes: clocks that are off, networks that fail, machines that crash and some that never come back. */

import { resources } from "@slipway/controller-runtime";
import type { Apiserver } from "./apiserver.ts";
import { type StoredNode, wholeSeconds } from "./objects.ts";
import type { Chance } from "./random.ts";
import type { Timeline } from "./timeline.ts";

/**
 * The defaults of Kubernetes 1.34: a kubelet renews its Lease every 10 s (kubelet: nodeLeaseDurationSeconds 40, a quarter of
 * it), the node lifecycle controller checks every 5 s (nodeMonitorPeriod), and a node is not ready when nothing came for 50 s
 * (nodeMonitorGracePeriod).
 */
const RENEW_MS = 10_000;
const MONITOR_MS = 5_000;
const GRACE_MS = 50_000;
/** The longest time in which a silent node is still reported as ready. */
export const MAX_SILENT_MS = GRACE_MS + MONITOR_MS;
/** After so long its pods are deleted (the toleration that every pod has). */
const EVICT_MS = 300_000;

export interface ModelNode {
  readonly name: string;
  /** Whether the apiserver and the kubelet reach one another. */
  reachable: boolean;
  /** Whether the machine runs. */
  alive: boolean;
  /** Milliseconds by which its clock is ahead. */
  clockOffset: number;
  /** Raised by every outage, so that what was planned before it can detect it. */
  era: number;
}

export interface NodesOptions {
  count: number;
  /** Most milliseconds that a clock is off. */
  maxSkewMs: number;
}

export class Nodes {
  readonly all: ModelNode[];
  readonly #timeline: Timeline;
  readonly #api: Apiserver;
  readonly #chance: Chance;
  /** Called when a machine crashed, when it is back, and when its pods are evicted. */
  onCrash: (node: ModelNode) => void = () => {};
  onBack: (node: ModelNode, rebooted: boolean) => void = () => {};
  onEvict: (node: ModelNode) => void = () => {};

  constructor(timeline: Timeline, api: Apiserver, chance: Chance, { count, maxSkewMs }: NodesOptions) {
    this.#timeline = timeline;
    this.#api = api;
    this.#chance = chance;
    this.all = Array.from({ length: count }, (_, index) => ({
      name: `node-${index}`,
      reachable: true,
      alive: true,
      clockOffset: Math.round(chance.between(-maxSkewMs, maxSkewMs)),
      era: 0,
    }));
    for (const node of this.all) {
      this.#setReady(node, "True", "KubeletReady");
    }
  }

  /** One that can take a pod: the scheduler binds to none that is unreachable, or that is tainted as not ready. */
  pick(): ModelNode | undefined {
    const ready = this.all.filter((node) => node.reachable && node.alive && this.#isReady(node));
    return ready.length === 0 ? undefined : this.#chance.pick(ready);
  }

  find(name: string): ModelNode | undefined {
    return this.all.find((node) => node.name === name);
  }

  /** What the node's clock shows. */
  clock(node: ModelNode): number {
    return this.#timeline.now + node.clockOffset;
  }

  /** Takes a node off the network, or down, for a while. */
  fail(node: ModelNode, how: "partition" | "crash" | "loss", ms: number): void {
    if (!node.reachable) {
      return;
    }
    node.reachable = false;
    node.era += 1;
    const { era } = node;
    if (how !== "partition") {
      node.alive = false;
      this.onCrash(node);
    }
    const during = (after: number, run: () => void) =>
      this.#timeline.after(after, () => {
        if (node.era === era && !node.reachable) {
          run();
        }
      });
    const silentMs = this.#chance.between(GRACE_MS - RENEW_MS, MAX_SILENT_MS);
    during(silentMs, () => this.#setReady(node, "Unknown", "NodeStatusUnknown"));
    during(silentMs + EVICT_MS, () => this.onEvict(node));
    if (how === "loss") {
      during(ms / 2, () => this.#api.strip(resources.nodes, { name: node.name }));
    }
    this.#timeline.after(ms, () => this.#restore(node, how !== "partition"));
  }

  #isReady({ name }: ModelNode): boolean {
    const node = this.#api.get<StoredNode>(resources.nodes, { name });
    return node?.status.conditions.some(({ status }) => status === "True") ?? false;
  }

  #restore(node: ModelNode, rebooted: boolean): void {
    node.reachable = true;
    node.alive = true;
    this.onBack(node, rebooted);
    const { era } = node;
    this.#timeline.after(this.#chance.between(500, 10_000), () => {
      if (node.era === era) {
        this.#setReady(node, "True", "KubeletReady");
      }
    });
  }

  #setReady(node: ModelNode, status: string, reason: string): void {
    const ref = { name: node.name };
    const known = this.#api.get<StoredNode>(resources.nodes, ref);
    // Only a kubelet creates its Node again.
    if (!known && status !== "True") {
      return;
    }
    if (!known) {
      this.#api.create(resources.nodes, { metadata: ref });
    }
    const before = known?.status.conditions.find((condition) => condition.status === status);
    const lastTransitionTime = before?.lastTransitionTime ?? wholeSeconds(this.#timeline.now);
    const conditions = [{ type: "Ready", status, reason, lastTransitionTime }];
    this.#api.patch(resources.nodes, ref, { status: { conditions } }, { subresource: "status" });
  }
}
