/** One container of a run: what its image will do, and what became of it in truth. */

/** What the container of a pod will do, drawn when the pod is made. */
export interface Behaviour {
  /** Until a node is found; Infinity when none ever is. */
  scheduleMs: number;
  /** Until the image is there; Infinity when it cannot be pulled. */
  pullMs: number;
  /** The runtime cannot start it: no such command. */
  startError: boolean;
  /** How long it runs when nobody stops it. */
  runMs: number;
  exitCode: number;
  /** As the runtime tells an end by itself: Completed, Error, OOMKilled. */
  reason: string;
  /** What it does when asked to stop: after so long, with this code. Over the grace it is killed. */
  stopMs: number;
  stopCode: number;
}

/** A container as it was, whatever the cluster was told of it. */
export interface ContainerRecord {
  readonly namespace: string;
  readonly project: string;
  /** Name of the run, which is the Job's. */
  readonly run: string;
  readonly pod: string;
  readonly podUid: string;
  readonly node: string;
  /** True times in milliseconds. */
  startedAt: number;
  endedAt: number | undefined;
  /** What its node says: whole seconds of the node's clock. */
  readonly toldStartedAt: string;
  toldFinishedAt: string | undefined;
  exitCode: number | undefined;
  reason: string | undefined;
  /** Its node never told of its end: it crashed, or the pod was taken away. */
  lost: boolean;
  /** Its pod was taken out of the apiserver by force. */
  stripped: boolean;
}

/** Who looks on, to judge. */
export interface Witness {
  containerStarted(record: ContainerRecord): void;
  containerEnded(record: ContainerRecord): void;
}
