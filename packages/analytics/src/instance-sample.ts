/** What one instance of a project used at one moment, as its node's kubelet reports it. What is not known is null, never zero. */
export interface InstanceSample {
  /** Organization's id. */
  organization: string;
  /** Project's id. */
  project: string;
  /** Name of the pod. */
  instance: string;
  /** The pod's uid: pods of databases have the names of earlier ones. */
  pod: string;
  /** When CPU and memory were measured, in milliseconds since the epoch; stored in whole seconds. With the pod it identifies the sample. */
  at: number;
  /** When the node started, by its clock of this moment, in milliseconds since the epoch: it changes where the clock is set, and with the node's next start. */
  bootedAt: number;
  /** When the container started whose CPU this is, in milliseconds since the epoch. */
  startedAt: number | null;
  /** CPU time since then, in microseconds of one core. */
  cpuMicroseconds: number | null;
  /** The working set. */
  memoryBytes: number | null;
  /** When the pod's network was measured, in milliseconds since the epoch. */
  networkAt: number | null;
  /** Bytes since the pod's network was made. */
  receivedBytes: number | null;
  transmittedBytes: number | null;
  /** Restarts of the container since the pod was made. */
  restarts: number | null;
  /** Of the project's volume. */
  volumeUsedBytes: number | null;
  volumeCapacityBytes: number | null;
}

/** Samples that are inserted together or not at all, under an id as that of `EventBatch`. */
export interface SampleBatch {
  /** 1 to 200 printable ASCII characters. */
  id: string;
  events: InstanceSample[];
}
