import type { InstanceSample } from "@slipway/analytics";
import { type PodReading, podReadingsOf, type Summary } from "@slipway/controller-runtime";
import type { InstancePod } from "./pod-owners.ts";

/** What a kubelet reports, as samples of projects' instances. Pure. */

/** Instances of one sampling of a node: of all organizations, and of one. */
export const MOST_INSTANCES = 1_000;
export const MOST_OF_ORGANIZATION = 200;

/** How far a kubelet's time may be from that of its node, in milliseconds: what is older is of a container that has ended. */
const MOST_AGE_MS = 120_000;

/** When a sample is taken. */
export interface Moment {
  now: number;
  bootedAt: number;
}

/**
 * One sample for each instance that the kubelet, or the cluster, says something of; those that the kubelet has readings of come first.
 * @param pods instances of this node, the longest known first
 * @param moment in milliseconds since the epoch: now, and when the node started, by the same clock
 * @returns `omitted`: instances beyond the bounds
 */
export function samplesOf(
  summary: Summary,
  pods: readonly InstancePod[],
  moment: Moment,
): { samples: InstanceSample[]; omitted: number } {
  const readings = new Map<string, ReadonlyMap<string, PodReading>>();
  const measured: InstanceSample[] = [];
  const others: InstanceSample[] = [];
  for (const pod of pods) {
    const ofContainer = readings.get(pod.container) ?? podReadingsOf(summary, pod.container);
    readings.set(pod.container, ofContainer);
    const sample = sampleOf(pod, ofContainer.get(pod.uid), moment);
    if (sample) {
      (isMeasured(sample) ? measured : others).push(sample);
    }
  }
  return bounded([...measured, ...others]);
}

/** Whether the kubelet says what it uses. */
const isMeasured = ({ cpuMicroseconds, memoryBytes, networkAt }: InstanceSample): boolean =>
  cpuMicroseconds !== null || memoryBytes !== null || networkAt !== null;

function bounded(found: readonly InstanceSample[]): { samples: InstanceSample[]; omitted: number } {
  const counted = new Map<string, number>();
  const samples: InstanceSample[] = [];
  for (const sample of found) {
    const others = counted.get(sample.organization) ?? 0;
    if (samples.length < MOST_INSTANCES && others < MOST_OF_ORGANIZATION) {
      counted.set(sample.organization, others + 1);
      samples.push(sample);
    }
  }
  return { samples, omitted: found.length - samples.length };
}

/** @returns undefined for a pod of which nothing is known yet */
function sampleOf(
  { organization, project, instance, uid, restarts }: InstancePod,
  reading: PodReading | undefined,
  { now, bootedAt }: Moment,
): InstanceSample | undefined {
  const { container, network, volumes } = reading ?? {};
  const isCurrent = (at: number | undefined) => at !== undefined && Math.abs(now - at) <= MOST_AGE_MS;
  const cpu = isCurrent(container?.cpu?.at) ? container?.cpu : undefined;
  const memory = isCurrent(container?.memory?.at) ? container?.memory : undefined;
  const counted = isCurrent(network?.at) ? network : undefined;
  const volume = volumes?.values().find(({ isClaim }) => isClaim);
  if (!cpu && !memory && !counted && !volume && restarts === undefined) {
    return undefined;
  }
  return {
    ...{ organization, project, instance, pod: uid },
    // The kubelet's own times: rates between readings that it has kept for a while would be wrong otherwise.
    at: cpu?.at ?? memory?.at ?? counted?.at ?? now,
    bootedAt,
    startedAt: container?.createdAt ?? null,
    cpuMicroseconds: cpu === undefined ? null : cpu.coreNanoSeconds / 1000,
    memoryBytes: memory?.workingSetBytes ?? null,
    networkAt: counted?.at ?? null,
    receivedBytes: counted?.receivedBytes ?? null,
    transmittedBytes: counted?.transmittedBytes ?? null,
    restarts: restarts ?? null,
    volumeUsedBytes: volume?.usedBytes ?? null,
    volumeCapacityBytes: volume?.capacityBytes ?? null,
  };
}

/** Leaves out samples that the kubelet has not measured again, by the times of those before. */
export class MeasuredOnce {
  #last = new Map<string, number>();

  /** What is new of one sampling. Pods that are not in it are forgotten. */
  of(samples: readonly InstanceSample[]): InstanceSample[] {
    const before = this.#last;
    this.#last = new Map(samples.map(({ pod, at }) => [pod, Math.floor(at / 1000)]));
    return samples.filter(({ pod, at }) => before.get(pod) !== Math.floor(at / 1000));
  }
}
