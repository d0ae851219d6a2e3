/** Compares the ranges that tenants are denied with the cluster's own addresses, as long as the process runs. */

import { type ChildKind, type Manager, resources, type Store } from "@slipway/controller-runtime";
import { sleep } from "@slipway/process";
import { Gauge } from "prom-client";
import type { Node } from "../metrics/nodes.ts";
import {
  ADDRESS_KINDS,
  type ClusterStores,
  clusterAddresses,
  openAddresses,
  type Service,
} from "./cluster-addresses.ts";

/** Between two comparisons, in milliseconds: nodes come and go. */
const PERIOD_MS = 60_000;
/** Most ranges of a kind that are logged. */
const LOGGED = 20;

export interface EgressCheckOptions {
  nodes: Store<Node>;
  /** Where projects' Services are among. */
  children: readonly ChildKind[];
  cluster: ClusterStores;
  denied: readonly string[];
}

/** Adds the comparison and its metric to a manager. Open ranges are logged whenever they change. */
export function addEgressCheck(manager: Manager, options: EgressCheckOptions): void {
  const { nodes, children, cluster, denied } = options;
  const services = children.find(({ resource }) => resource === resources.services)?.store;
  const open = () =>
    openAddresses(clusterAddresses(nodes.list(), (services?.list() ?? []) as Service[], cluster), denied);
  new Gauge({
    name: "slipway_egress_open_ranges",
    help: "Ranges of the cluster's own addresses that tenants' policies do not deny, by what has them.",
    labelNames: ["kind"],
    registers: [manager.registry],
    collect() {
      const found = open();
      for (const kind of ADDRESS_KINDS) {
        this.set({ kind }, found[kind].length);
      }
    },
  });
  let logged = "";
  manager.addRunnable({
    name: "egress-check",
    async run(signal) {
      while (!signal.aborted) {
        const found = open();
        const ranges = ADDRESS_KINDS.filter((kind) => found[kind].length > 0).map(
          (kind) => `${kind} ${found[kind].slice(0, LOGGED).join(" ")}`,
        );
        if (ranges.join() !== logged) {
          logged = ranges.join();
          if (logged === "") {
            manager.log.info({}, "tenants reach no address of the cluster");
          } else {
            manager.log.error({ ranges }, "tenants reach addresses of the cluster; deny them");
          }
        }
        await sleep(manager.clock, PERIOD_MS, signal);
      }
    },
  });
}
