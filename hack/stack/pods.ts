import type { Kubectl } from "../cluster/kubectl.ts";
import { systemNamespace } from "./chart.ts";
import { type PodList, type ReadyPod, readyPods } from "./ready-pods.ts";

/** Ready pods of a Deployment of Slipway's own, found by its selector. */
export async function podsOf(kubectl: Kubectl, deployment: string): Promise<ReadyPod[]> {
  const get = (args: string[]) => kubectl(["-n", systemNamespace, "get", ...args, "-o", "json"]);
  const { spec } = JSON.parse(await get(["deployment", deployment])) as {
    spec: { selector: { matchLabels: Record<string, string> } };
  };
  const labels = Object.entries(spec.selector.matchLabels).map(([key, value]) => `${key}=${value}`);
  return readyPods(JSON.parse(await get(["pods", "-l", labels.join(",")])) as PodList);
}
