/** Quotas beside a bare apiserver. */
import { setTimeout as sleep } from "node:timers/promises";
import { type KubeClient, resources } from "@slipway/controller-runtime";
import { isCounted, type Quota } from "../../../operator/src/organizations/reconciler.ts";

const EVERY_MS = 300;

/**
 * Copies the limits of every quota to its status, as kube-controller-manager does, which does not run beside a bare apiserver. What is used is
 * counted from zero by the apiserver itself, and nothing is ever counted down. @returns what ends it
 */
export function countQuotas(client: KubeClient): () => Promise<void> {
  const stop = new AbortController();
  const counting = (async () => {
    while (!stop.signal.aborted) {
      // An apiserver that a test stops is queried again.
      await countOnce(client).catch(() => undefined);
      await sleep(EVERY_MS, undefined, { signal: stop.signal }).catch(() => undefined);
    }
  })();
  return async () => {
    stop.abort();
    await counting;
  };
}

async function countOnce(client: KubeClient): Promise<void> {
  for (const quota of await client.listAll<Quota>(resources.resourceQuotas)) {
    const { metadata, spec, status } = quota;
    const hard = spec?.hard ?? {};
    if (isCounted(hard, quota)) {
      continue;
    }
    const used = { ...Object.fromEntries(Object.keys(hard).map((what) => [what, "0"])), ...status?.used };
    const ref = { namespace: metadata?.namespace, name: metadata?.name ?? "" };
    await client.patch(resources.resourceQuotas, ref, { status: { hard, used } }, { subresource: "status" });
  }
}
