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

/** When an instance was sampled last, in seconds: at all, and with CPU or memory. */
interface Measured {
  at: number;
  usedAt: number | undefined;
}

const secondsOf = (ms: number): number => Math.floor(ms / 1000);
const hasUse = ({ cpuMicroseconds, memoryBytes }: InstanceSample): boolean =>
  cpuMicroseconds !== null || memoryBytes !== null;

/** Leaves out what the kubelet has not measured again, by the times of the samples that were noted last. */
export class MeasuredOnce {
  #last: ReadonlyMap<string, Measured> = new Map();

  /** What is new of one sampling. */
  of(samples: readonly InstanceSample[]): InstanceSample[] {
    return samples.flatMap((sample) => newOf(sample, this.#last.get(sample.pod)));
  }

  /**
   * Notes a sampling whose new samples are stored. Pods that are not in it are forgotten.
   * @param fresh what `of` has returned
   */
  note(samples: readonly InstanceSample[], fresh: readonly InstanceSample[]): void {
    const before = this.#last;
    const stored = new Map(fresh.map((one) => [one.pod, one]));
    this.#last = new Map(
      samples.map((sample) => {
        const known = before.get(sample.pod);
        const { at } = stored.get(sample.pod) ?? sample;
        const usedAt = hasUse(sample) ? secondsOf(sample.at) : known?.usedAt;
        return [
          sample.pod,
          { at: stored.has(sample.pod) ? secondsOf(at) : (known?.at ?? secondsOf(at)), usedAt },
        ];
      }),
    );
  }
}

/** While a container is down the kubelet may repeat what it used last: network and restarts go on, at the time of the network. */
function newOf(sample: InstanceSample, before: Measured | undefined): InstanceSample[] {
  const { at, networkAt } = sample;
  if (!hasUse(sample) || secondsOf(at) !== before?.usedAt) {
    return secondsOf(at) === before?.at ? [] : [sample];
  }
  return networkAt !== null && secondsOf(networkAt) > before.at
    ? [{ ...sample, at: networkAt, startedAt: null, cpuMicroseconds: null, memoryBytes: null }]
    : [];
}
