/** One replica of the widget operator as a process of its own, for tests that kill it. Reads KUBECONFIG and POD_NAME. */
import { loadKubeConfig } from "@slipway/kube";
import pino from "pino";
import { awkwardChildren } from "./awkward-children.ts";
import { childResources, widgetOperator } from "./widget-operator.ts";

const manager = widgetOperator({
  cluster: loadKubeConfig(),
  identity: process.env.POD_NAME ?? "replica",
  children: childResources,
  desired: awkwardChildren,
  log: pino({ level: "info" }, process.stderr),
  leaderElection: {
    namespace: "default",
    name: "widget-operator",
    leaseDurationMs: 3_000,
    renewDeadlineMs: 2_000,
    retryPeriodMs: 300,
  },
});
const stop = new AbortController();
process.on("SIGTERM", () => stop.abort());
await manager.run(stop.signal);
