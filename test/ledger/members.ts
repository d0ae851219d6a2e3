/** The two instances of the stack's ledger: who they are, and what befalls them. */

import { labels } from "@slipway/crds";
import { systemNamespace } from "../../hack/stack/chart.ts";
import { cluster } from "../e2e/support/cluster.ts";
import { eventually } from "../e2e/support/eventually.ts";
import { signalPod, signalProcess } from "../e2e/support/process.ts";

const namespace = systemNamespace;
export const members = ["slipway-ledger-0", "slipway-ledger-1"] as const;

async function podsNow() {
  const labelSelector = "app.kubernetes.io/name=slipway-ledger";
  return (await cluster.core.listNamespacedPod({ namespace, labelSelector })).items;
}

/** @throws Error while none is the primary */
async function primaryNow(): Promise<string> {
  const primary = (await podsNow()).find(({ metadata }) => metadata?.labels?.[labels.role] === "primary");
  if (!primary?.metadata?.name) {
    throw new Error("no instance is the primary");
  }
  return primary.metadata.name;
}

/** Waits until both are ready and what the primary acknowledges is on the other one. @returns the primary's name */
export function untilSynchronous(): Promise<string> {
  return eventually(async () => {
    const [primary, pods] = await Promise.all([primaryNow(), podsNow()]);
    const ready = pods.filter(({ status }) =>
      status?.conditions?.some(({ type, status }) => type === "Ready" && status === "True"),
    );
    const sync = await cluster.core.readNamespacedConfigMap({ namespace, name: "slipway-ledger-sync" });
    const { leader, sync_standby: standby } = sync.metadata?.annotations ?? {};
    const other = members.find((name) => name !== primary);
    if (ready.length !== members.length || leader !== primary || standby !== other) {
      throw new Error(`${ready.length} instances are ready; ${primary} has ${standby} as its standby`);
    }
    return primary;
  });
}

/** Uid and restarts of every pod: others once one was replaced or its container was started again. */
const lives = async () =>
  new Map(
    (await podsNow()).map(({ metadata, status }) => [
      metadata?.name ?? "",
      `${metadata?.uid} ${status?.containerStatuses?.[0]?.restartCount ?? 0}`,
    ]),
  );

/** Does it, and waits until another one is the primary, or the pod or its container is another. */
async function untilNoticed(pod: string, befall: () => Promise<unknown>): Promise<void> {
  const before = (await lives()).get(pod);
  await befall();
  await eventually(async () => {
    const primary = await primaryNow().catch(() => undefined);
    if (primary === pod && (await lives()).get(pod) === before) {
      throw new Error(`nothing befell ${pod}`);
    }
  });
}

const remove = (name: string, gracePeriodSeconds?: number) =>
  cluster.core.deleteNamespacedPod({ namespace, name, gracePeriodSeconds });

/** What befalls the primary, or others with it; resolves once it has had its effect. */
export const befallings: Readonly<Record<string, (primary: string) => Promise<unknown>>> = {
  "the primary's server is killed": (primary) => signalProcess(primary, "postgres -D", "SIGKILL"),
  "the primary's pod is deleted, as by a drain": (primary) => untilNoticed(primary, () => remove(primary)),
  "the primary's pod is deleted by force": (primary) => untilNoticed(primary, () => remove(primary, 0)),
  "the primary's Patroni is frozen": (primary) =>
    untilNoticed(primary, () => signalProcess(primary, "/patroni ", "SIGSTOP")),
  "all processes of the primary are frozen": (primary) =>
    untilNoticed(primary, () => signalPod(primary, "SIGSTOP")),
  "the standby's pod is deleted by force": async (primary) => {
    const standby = members.find((name) => name !== primary) ?? "";
    await untilNoticed(standby, () => remove(standby, 0));
  },
  "both are deleted by force": (primary) =>
    untilNoticed(primary, () => Promise.all(members.map((name) => remove(name, 0)))),
};
