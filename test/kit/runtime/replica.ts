/**
 * One replica of the widget operator as a process of its own, for tests that kill it. Reads KUBECONFIG, POD_NAME and
 * LEASE_SECONDS.
 */
import { loadKubeConfig } from "@slipway/controller-runtime";
import pino from "pino";
import { awkwardChildren } from "./awkward-children.ts";
import { childResources, widgetOperator } from "./widget-operator.ts";

const leaseMs = Number(process.env.LEASE_SECONDS) * 1_000;
const manager = widgetOperator({
  cluster: loadKubeConfig(),
  identity: process.env.POD_NAME ?? "replica",
  children: childResources,
  desired: awkwardChildren,
  log: pino({ level: "info" }, process.stderr),
  leaderElection: {
    namespace: "default",
    name: "widget-operator",
    leaseDurationMs: leaseMs,
    renewDeadlineMs: (leaseMs * 2) / 3,
    retryPeriodMs: 300,
  },
});
const stop = new AbortController();
process.on("SIGTERM", () => stop.abort());
await manager.run(stop.signal);
