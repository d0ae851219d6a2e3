import type { Kubectl } from "../cluster/kubectl.ts";
import { systemNamespace } from "./chart.ts";

/** The part of a list of pods that is read here. */
export interface PodList {
  items: {
    metadata: { name: string; deletionTimestamp?: string };
    status: { podIP?: string; conditions?: { type: string; status: string }[] };
  }[];
}

export interface ReadyPod {
  name: string;
  ip: string;
}

/** The pods of a kubectl list that are ready, have an address and are not being deleted; by name. */
export function readyPods(list: PodList): ReadyPod[] {
  return list.items
    .filter((pod) => pod.metadata.deletionTimestamp === undefined)
    .filter((pod) => pod.status.conditions?.some((one) => one.type === "Ready" && one.status === "True"))
    .flatMap((pod) => (pod.status.podIP ? [{ name: pod.metadata.name, ip: pod.status.podIP }] : []))
    .sort((a, b) => a.name.localeCompare(b.name));
}

/** Ready pods of a Deployment of Slipway's own, found by its selector. */
export async function podsOf(kubectl: Kubectl, deployment: string): Promise<ReadyPod[]> {
  const get = (args: string[]) => kubectl(["-n", systemNamespace, "get", ...args, "-o", "json"]);
  const { spec } = JSON.parse(await get(["deployment", deployment])) as {
    spec: { selector: { matchLabels: Record<string, string> } };
  };
  const labels = Object.entries(spec.selector.matchLabels).map(([key, value]) => `${key}=${value}`);
  return readyPods(JSON.parse(await get(["pods", "-l", labels.join(",")])) as PodList);
}
