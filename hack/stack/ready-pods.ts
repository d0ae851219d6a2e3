/** What of a list of pods is read here. */
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

/** The pods of a kubectl list that are ready, have an address and are not on their way out; by name. */
export function readyPods(list: PodList): ReadyPod[] {
  return list.items
    .filter((pod) => pod.metadata.deletionTimestamp === undefined)
    .filter((pod) => pod.status.conditions?.some((one) => one.type === "Ready" && one.status === "True"))
    .flatMap((pod) => (pod.status.podIP ? [{ name: pod.metadata.name, ip: pod.status.podIP }] : []))
    .sort((a, b) => a.name.localeCompare(b.name));
}
