import { PatchStrategy, setHeaderOptions } from "@kubernetes/client-node";
import { expect } from "vitest";
import { cluster } from "./cluster.ts";
import { eventually } from "./eventually.ts";
import { systemNamespace } from "./operator.ts";

/** Receivers of log drains on this machine. */

/** The node's address, where pods find what this machine serves. */
export const RECEIVERS_HOST = "10.244.0.1";

const deployment = { name: "slipway-log-drains", namespace: systemNamespace };

/** Has drains connect to these ports of {@link RECEIVERS_HOST}, as `logDrains.allowedHosts` would. Restarts the process that delivers. */
export async function allowReceivers(ports: readonly number[]): Promise<void> {
  const value = ports.map((port) => `${RECEIVERS_HOST}:${port}`).join(",");
  const env = [{ name: "SLIPWAY_LOG_DRAINS_ALLOWED_HOSTS", value }];
  const body = { spec: { template: { spec: { containers: [{ name: "log-drains", env }] } } } };
  const options = setHeaderOptions("Content-Type", PatchStrategy.StrategicMergePatch);
  await cluster.apps.patchNamespacedDeployment({ ...deployment, body }, options);
  await eventually(async () => {
    const { metadata, status } = await cluster.apps.readNamespacedDeployment(deployment);
    expect(status?.observedGeneration).toBe(metadata?.generation);
    expect([status?.updatedReplicas, status?.readyReplicas, status?.replicas]).toEqual([1, 1, 1]);
  });
}
