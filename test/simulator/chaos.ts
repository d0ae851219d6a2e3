/** Faults around the operator: machines, networks, the controller-manager, the ledger, administrators. */

import { KubeError, resources } from "@slipway/controller-runtime";
import type { Apiserver } from "./apiserver.ts";
import { type ModelCatalog, PLANS } from "./catalog.ts";
import type { ContainerRecord } from "./container.ts";
import type { ControllerManager } from "./controller-manager.ts";
import type { InvariantChecker } from "./invariant-checker.ts";
import type { Kubelets } from "./kubelets.ts";
import type { ModelLedger } from "./ledger.ts";
import type { Nodes } from "./nodes.ts";
import type { StoredPod } from "./objects.ts";
import type { Chance } from "./random.ts";
import type { Timeline } from "./timeline.ts";

export interface ChaosOptions {
  /** Milliseconds between two of a kind on the average; Infinity for never. */
  nodeFailsMs: number;
  managerStopsMs: number;
  ledgerStopsMs: number;
  clockStepsMs: number;
  priceChangesMs: number;
  /** Of all containers, those that have a fault; a probability. */
  containerFaults: number;
  maxSkewMs: number;
}

export interface ChaosParts {
  timeline: Timeline;
  api: Apiserver;
  chance: Chance;
  nodes: Nodes;
  kubelets: Kubelets;
  manager: ControllerManager;
  ledger: ModelLedger;
  catalog: ModelCatalog;
  checker: InvariantChecker;
}

export class Chaos {
  readonly #parts: ChaosParts;
  readonly #options: ChaosOptions;
  #stopped = false;

  constructor(parts: ChaosParts, options: ChaosOptions) {
    this.#parts = parts;
    this.#options = options;
    const { chance, manager, ledger, catalog } = parts;
    this.#every(options.nodeFailsMs, () => this.#failNode());
    this.#every(options.managerStopsMs, () => manager.stop(chance.between(5_000, 240_000)));
    this.#every(options.ledgerStopsMs, () => ledger.stop(chance.between(5_000, 360_000)));
    this.#every(options.clockStepsMs, () => this.#stepClock());
    this.#every(options.priceChangesMs, () => catalog.change(chance.pick(PLANS), chance.next()));
  }

  stop(): void {
    this.#stopped = true;
  }

  /** A container that has started may have a fault. */
  started(record: ContainerRecord): void {
    const { timeline, chance } = this.#parts;
    if (this.#stopped || !chance.happens(this.#options.containerFaults)) {
      return;
    }
    const after = chance.happens(0.5) ? chance.between(0, 3_000) : chance.exponential(30_000);
    timeline.after(after, () => {
      if (!this.#stopped) {
        this.#injectFault(record);
      }
    });
  }

  #every(mean: number, run: () => void): void {
    if (!Number.isFinite(mean)) {
      return;
    }
    this.#parts.timeline.after(this.#parts.chance.exponential(mean), () => {
      if (this.#stopped) {
        return;
      }
      run();
      this.#every(mean, run);
    });
  }

  #failNode(): void {
    const { chance, nodes, checker } = this.#parts;
    const node = chance.pick(nodes.all);
    const how = chance.weighted({ partition: 6, crash: 4, loss: 1 });
    const ms = how === "loss" ? chance.between(200_000, 900_000) : chance.between(3_000, 700_000);
    if (node.reachable) {
      checker.recordForAll(`${node.name} fails for ${Math.round(ms / 1_000)} s: ${how}`);
    }
    nodes.fail(node, how, ms);
  }

  #stepClock(): void {
    const { chance, nodes } = this.#parts;
    const { maxSkewMs } = this.#options;
    chance.pick(nodes.all).clockOffset = Math.round(chance.between(-maxSkewMs, maxSkewMs));
  }

  #injectFault(record: ContainerRecord): void {
    const { api, chance, kubelets, checker } = this.#parts;
    const { namespace, pod: name, run, project } = record;
    const pod = api.get<StoredPod>(resources.pods, { namespace, name });
    if (pod?.metadata.uid !== record.podUid) {
      return;
    }
    const how = chance.weighted({ oom: 4, evict: 4, delete: 6, hurry: 2, job: 3, strip: 2, pod: 2 });
    checker.record(project, () => `fault: ${how} ${name}`);
    if (how === "oom" || how === "evict") {
      kubelets.injectFault(record.podUid, how);
    } else if (how === "delete") {
      this.#delete(() => api.delete(resources.pods, { namespace, name }));
    } else if (how === "hurry") {
      this.#delete(() => api.delete(resources.pods, { namespace, name }, { gracePeriodSeconds: 0 }));
    } else if (how === "job") {
      this.#delete(() => api.delete(resources.jobs, { namespace, name: run }));
    } else {
      checker.tampered(run, record.podUid);
      api.strip(resources.pods, { namespace, name });
      if (how === "strip") {
        api.strip(resources.jobs, { namespace, name: run });
      }
    }
  }

  #delete(run: () => void): void {
    try {
      run();
    } catch (error) {
      if (!(error instanceof KubeError)) {
        throw error;
      }
    }
  }
}
