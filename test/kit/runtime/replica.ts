/**
 * One replica of the widget operator as a process of its own, for tests that kill it. Reads KUBECONFIG, POD_NAME and
 * LEASE_SECONDS.
 */
import { loadKubeConfig } from "@slipway/controller-runtime/kube-config";
import { createLogger, shutdownSignal } from "@slipway/process";
import { childrenOfEveryKind } from "./children-of-every-kind.ts";
import { childResources, widgetOperator } from "./widget-operator.ts";

const leaseMs = Number(process.env.LEASE_SECONDS) * 1_000;
const log = createLogger("replica", "info");
const manager = widgetOperator({
  cluster: loadKubeConfig(),
  identity: process.env.POD_NAME ?? "replica",
  children: childResources,
  desired: childrenOfEveryKind,
  log,
  leaderElection: {
    namespace: "default",
    name: "widget-operator",
    leaseDurationMs: leaseMs,
    renewDeadlineMs: (leaseMs * 2) / 3,
    retryPeriodMs: 300,
  },
});
await manager.run(shutdownSignal(log));
