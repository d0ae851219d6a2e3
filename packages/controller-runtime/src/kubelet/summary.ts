/** What the kubelet's `/stats/summary` says of containers. Pure. */

/** One reading of a container. Times are whole seconds; a value that the kubelet does not know is absent, never zero. */
export interface Reading {
  /** When the container was created, in milliseconds: at or before its start. */
  readonly createdAt?: number;
  readonly cpu?: { readonly at: number; readonly coreNanoSeconds: number; readonly nanoCores?: number };
  readonly memory?: { readonly at: number; readonly workingSetBytes: number };
}

interface Values {
  time?: unknown;
  usageNanoCores?: unknown;
  usageCoreNanoSeconds?: unknown;
  workingSetBytes?: unknown;
}

interface Container {
  name?: unknown;
  startTime?: unknown;
  cpu?: Values;
  memory?: Values;
}

interface Volume {
  name?: unknown;
  /** The claim that the volume is of; others are the pod's own. */
  pvcRef?: { name?: unknown };
  usedBytes?: unknown;
  capacityBytes?: unknown;
}

/** The parts of the answer that are read; their types are checked. */
export interface Summary {
  pods?: {
    podRef?: { uid?: unknown };
    containers?: Container[];
    network?: { time?: unknown; rxBytes?: unknown; txBytes?: unknown };
    volume?: Volume[];
  }[];
}

/** What a pod's volume holds, and may hold. */
export interface VolumeReading {
  /** Whether it is that of a claim, which outlives the pod. */
  readonly isClaim?: true;
  readonly usedBytes?: number;
  readonly capacityBytes?: number;
}

/** Bytes of a pod's network since it was made. */
export interface NetworkReading {
  /** When they were counted, in milliseconds. */
  readonly at: number;
  readonly receivedBytes: number;
  readonly transmittedBytes: number;
}

/** One reading of a pod: one of its containers, its network, and its volumes by name. */
export interface PodReading {
  readonly container?: Reading;
  readonly network?: NetworkReading;
  readonly volumes: ReadonlyMap<string, VolumeReading>;
}

/** Readings of one container name, of networks and of all volumes by pod uid. Networks and volumes are in the long form of the answer alone. */
export function podReadingsOf(summary: Summary, container: string): Map<string, PodReading> {
  const containers = readingsOf(summary, container);
  const readings = new Map<string, PodReading>();
  for (const { podRef, network, volume } of summary.pods ?? []) {
    if (typeof podRef?.uid !== "string") {
      continue;
    }
    const volumes = new Map<string, VolumeReading>();
    for (const { name, pvcRef, usedBytes, capacityBytes } of volume ?? []) {
      if (typeof name !== "string") {
        continue;
      }
      const [used, capacity] = [positive(usedBytes), positive(capacityBytes)];
      volumes.set(name, {
        ...(typeof pvcRef?.name === "string" ? { isClaim: true } : {}),
        ...(used === undefined ? {} : { usedBytes: used }),
        ...(capacity === undefined ? {} : { capacityBytes: capacity }),
      });
    }
    const found = containers.get(podRef.uid);
    const counted = networkOf(network);
    readings.set(podRef.uid, {
      ...(found === undefined ? {} : { container: found }),
      ...(counted === undefined ? {} : { network: counted }),
      volumes,
    });
  }
  return readings;
}

function networkOf({
  time,
  rxBytes,
  txBytes,
}: NonNullable<NonNullable<Summary["pods"]>[number]["network"]> = {}): NetworkReading | undefined {
  const at = milliseconds(time);
  const [receivedBytes, transmittedBytes] = [positive(rxBytes), positive(txBytes)];
  return at === undefined || receivedBytes === undefined || transmittedBytes === undefined
    ? undefined
    : { at, receivedBytes, transmittedBytes };
}

/** Readings of one container name by pod uid. */
export function readingsOf({ pods }: Summary, container: string): Map<string, Reading> {
  const readings = new Map<string, Reading>();
  for (const { podRef, containers } of pods ?? []) {
    const found = containers?.find(({ name }) => name === container);
    if (found === undefined || typeof podRef?.uid !== "string") {
      continue;
    }
    const { startTime, cpu, memory } = found;
    const createdAt = milliseconds(startTime);
    const [cpuAt, memoryAt] = [milliseconds(cpu?.time), milliseconds(memory?.time)];
    const [counter, now] = [positive(cpu?.usageCoreNanoSeconds), positive(cpu?.usageNanoCores)];
    const bytes = positive(memory?.workingSetBytes);
    readings.set(podRef.uid, {
      ...(createdAt === undefined ? {} : { createdAt }),
      ...(cpuAt === undefined || counter === undefined
        ? {}
        : {
            cpu: { at: cpuAt, coreNanoSeconds: counter, ...(now === undefined ? {} : { nanoCores: now }) },
          }),
      ...(memoryAt === undefined || bytes === undefined
        ? {}
        : { memory: { at: memoryAt, workingSetBytes: bytes } }),
    });
  }
  return readings;
}

/** Whether the kubelet reported pods without any container, as some do in the short form of the answer. */
export function lacksContainers({ pods = [] }: Summary): boolean {
  return pods.length > 0 && pods.every(({ containers }) => containers === undefined || containers === null);
}

/** The kubelet writes zero for what the runtime did not report. */
const positive = (value: unknown): number | undefined =>
  typeof value === "number" && value > 0 ? value : undefined;

function milliseconds(value: unknown): number | undefined {
  const at = typeof value === "string" ? Date.parse(value) : Number.NaN;
  return Number.isNaN(at) ? undefined : at;
}
