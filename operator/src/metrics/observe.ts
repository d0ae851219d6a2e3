/** Creates the ports of the jobrun controller: logs, samples, and the store of nodes. */

import {
  type ClusterConfig,
  Kubelets,
  kubeletTrust,
  type Manager,
  type Store,
} from "@slipway/controller-runtime";
import { Counter } from "prom-client";
import type { Config } from "../config.ts";
import type { RunLogs, RunSamples } from "../jobs/runs/ports.ts";
import { createRunLogs, type StoreRunLog } from "../logs/run-logs.ts";
import { requestedTokens } from "./kubelet-token.ts";
import { createNodeStore, kubeletAddress, type Node } from "./nodes.ts";
import { KubeletSamples } from "./run-samples.ts";

export interface Observe {
  nodes: Store<Node>;
  logs: RunLogs;
  samples: RunSamples;
}

/** Adds the store of nodes and what reads kubelets to a manager. */
export function addObserve(
  manager: Manager,
  options: {
    cluster: ClusterConfig | { url: string };
    config: Pick<Config, "namespace" | "kubelet">;
    storeLog: StoreRunLog;
  },
): Observe {
  const { client, clock, log, registry } = manager;
  const { config, cluster, storeLog } = options;
  const nodes = createNodeStore(manager);
  const requests = new Counter({
    name: "slipway_kubelet_requests_total",
    help: "Requests for samples to kubelets, by result.",
    labelNames: ["result"],
    registers: [registry],
  });
  for (const result of ["success", "error"]) {
    requests.inc({ result }, 0);
  }
  const samples = new KubeletSamples({
    kubelets: new Kubelets({
      trust: kubeletTrust(config.kubelet, cluster),
      token: requestedTokens(client, config.namespace, clock),
      clock,
      userAgent: "slipway.dev/operator",
      container: "app",
    }),
    addressOf: (name) => kubeletAddress(nodes.get(undefined, name)),
    clock,
    log,
    onRead: (result) => requests.inc({ result }),
  });
  manager.addRunnable({ name: "samples", everyShard: true, run: (signal) => samples.run(signal) });
  return { nodes, logs: createRunLogs({ client, store: storeLog }), samples };
}
