import { expect } from "vitest";
import { cluster } from "./cluster.ts";
import { eventually } from "./eventually.ts";
import { killProcess } from "./process.ts";

export const systemNamespace = "slipway-system";
export const operatorAccount = `system:serviceaccount:${systemNamespace}:slipway-operator`;

/** The pod that holds the operator's Lease, by name. */
export async function leader(): Promise<string> {
  const lease = await cluster.coordination.readNamespacedLease({
    namespace: systemNamespace,
    name: "slipway-operator",
  });
  const holder = lease.spec?.holderIdentity ?? "";
  const pods = await cluster.core.listNamespacedPod({
    namespace: systemNamespace,
    labelSelector: "app.kubernetes.io/name=slipway-operator",
  });
  const pod = pods.items.map(({ metadata }) => metadata?.name ?? "").find((name) => holder.startsWith(name));
  if (pod === undefined) {
    throw new Error(`no operator pod holds the Lease (holder: ${holder})`);
  }
  return pod;
}

/** Kills the leading operator with SIGKILL, and waits until a process leads that was not killed. */
export async function replaceLeader(): Promise<void> {
  // The Lease may still name one that ended a moment ago.
  await eventually(async () => killOperator(await leader()), { every: 200 });
  const killedAt = Date.now();
  await eventually(async () => {
    const lease = await cluster.coordination.readNamespacedLease({
      namespace: systemNamespace,
      name: "slipway-operator",
    });
    expect(new Date(lease.spec?.renewTime ?? 0).getTime()).toBeGreaterThan(killedAt);
  });
}

/** Kills the operator process of a pod with SIGKILL. */
export const killOperator = (pod: string): Promise<void> => killProcess(pod, "dist/operator.js");
