import { readdir, readFile } from "node:fs/promises";
import { cluster } from "./cluster.ts";

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
  if (pod === undefined) throw new Error(`no operator pod holds the Lease (holder: ${holder})`);
  return pod;
}

/** Kills the operator process of a pod with SIGKILL, on this machine: the embedded cluster's node is this machine. */
export async function killOperator(pod: string): Promise<void> {
  for (const entry of await readdir("/proc")) {
    if (!/^\d+$/.test(entry)) continue;
    // A process may end between the listing and the read; then it is not the one.
    const [environment, command] = await Promise.all(
      ["environ", "cmdline"].map((file) => readFile(`/proc/${entry}/${file}`, "utf8").catch(() => "")),
    );
    const variables = environment?.split("\0") ?? [];
    if (variables.includes(`POD_NAME=${pod}`) && command?.includes("operator/src/main.ts")) {
      process.kill(Number(entry), "SIGKILL");
      return;
    }
  }
  throw new Error(`no operator process of pod ${pod} runs on this machine`);
}
