/** State of the run's container, from its pod. Pure. */

import { APP_CONTAINER, type RunPod } from "./cluster.ts";

/** State of a container; unknown fields are absent. Times are the node's, in whole seconds. */
export type ContainerFacts =
  /** Not started yet, and it still may. */
  | { state: "pending" }
  | { state: "running"; startedAt: Date }
  /** It will never run again. Without `startedAt` it never ran, as far as the pod knows. */
  | { state: "ended"; startedAt?: Date; finishedAt?: Date; exitCode?: number; reason?: string };

/** Reads a pod. */
export function readContainer(pod: RunPod): ContainerFacts {
  const { phase, reason } = pod.status ?? {};
  const over = phase === "Failed" || phase === "Succeeded";
  const app = pod.status?.containerStatuses?.find(({ name }) => name === APP_CONTAINER)?.state;
  if (app?.terminated) {
    const { exitCode, reason: why } = app.terminated;
    return {
      state: "ended",
      ...known("startedAt", moment(app.terminated.startedAt)),
      ...known("finishedAt", moment(app.terminated.finishedAt)),
      ...known("exitCode", exitCode),
      ...known("reason", why),
    };
  }
  const startedAt = moment(app?.running?.startedAt);
  if (over) {
    // Its node was deleted, or rejected it: no more is reported.
    return { state: "ended", ...known("startedAt", startedAt), ...known("reason", reason) };
  }
  if (startedAt) {
    return { state: "running", startedAt };
  }
  const deleted = pod.metadata.deletionTimestamp !== undefined;
  // No node has it, and a pod that is being deleted is not scheduled.
  if (deleted && !pod.spec?.nodeName) {
    return { state: "ended", ...known("reason", reason) };
  }
  return { state: "pending" };
}

/** A time that a kubelet wrote: where there was none it writes null, or the beginning of 1970. */
function moment(text: string | null | undefined): Date | undefined {
  const time = text ? Date.parse(text) : Number.NaN;
  return time > 0 ? new Date(time) : undefined;
}

function known<K extends string, V>(key: K, value: V | undefined): { [key in K]?: V } {
  return value === undefined ? {} : ({ [key]: value } as { [key in K]?: V });
}
