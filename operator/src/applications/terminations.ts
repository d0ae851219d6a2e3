/** How instances have ended that the platform did not stop. Pure. */

import { LAST_LINES_MAX_LENGTH, type LastTermination, type ProjectStatus } from "@slipway/crds";
import { lastLinesOf } from "../logs/log-tail.ts";
import { appStatus, type PodView } from "./pod-problem.ts";
import { type ContainerTermination, type ProbeKill, probeThatEnded } from "./probe-kill.ts";

/** The end of an instance's container. */
export interface Termination extends LastTermination {
  podUid: string;
}

const PROBE_REASONS: Readonly<Record<ProbeKill["probe"], string>> = {
  liveness: "LivenessFailed",
  startup: "StartupTimeout",
};
const isProbeReason = (reason: string): boolean => Object.values(PROBE_REASONS).includes(reason);

/** The last end of each instance that has ended and was not deleted. */
export function terminationsOf(pods: readonly PodView[]): Termination[] {
  return pods
    .filter(({ metadata }) => !metadata.deletionTimestamp)
    .flatMap((pod) => {
      const container = appStatus(pod);
      const ended = container?.state?.terminated ?? container?.lastState?.terminated;
      if (!ended?.finishedAt) {
        return [];
      }
      const { exitCode = 0, signal, finishedAt, reason = "" } = ended;
      const probe = probeThatEnded(ended, pod.probeKills);
      const lastLines = linesOf(ended);
      return [
        {
          podUid: pod.metadata.uid ?? "",
          instance: pod.metadata.name ?? "",
          exitCode,
          ...(signal ? { signal } : {}),
          reason: probe ? PROBE_REASONS[probe] : reason.slice(0, 64) || "Unknown",
          finishedAt,
          restarts: restartsOf(pod),
          ...(lastLines === "" ? {} : { lastLines }),
        },
      ];
    });
}

/** Restarts of an instance, the one after its last end included, which may be yet to come. */
function restartsOf(pod: PodView): number {
  const { restartCount = 0, state } = appStatus(pod) ?? {};
  return state?.running || pod.status?.phase === "Failed" ? restartCount : restartCount + 1;
}

/** What the kubelet reports of a container that never ran is its own words. */
const RAN: ReadonlySet<string> = new Set(["Error", "OOMKilled", "Completed"]);

function linesOf({ reason = "", message = "" }: ContainerTermination): string {
  return RAN.has(reason) ? lastLinesOf(message, LAST_LINES_MAX_LENGTH) : "";
}

/**
 * The last end to report. One that was reported before stays, though its instance is gone by now, until a later deployment has
 * succeeded; and so does the probe that was its reason, though the Event of it has expired.
 */
export function lastTermination(
  terminations: readonly Termination[],
  { lastTermination: before, deployments: [deployed] = [] }: ProjectStatus,
): LastTermination | undefined {
  const newest = terminations.toSorted(
    (a, b) => b.finishedAt.localeCompare(a.finishedAt) || a.instance.localeCompare(b.instance),
  )[0];
  const isOver =
    before !== undefined &&
    deployed?.status === "succeeded" &&
    Date.parse(deployed.startedAt) > Date.parse(before.finishedAt);
  const kept = isOver ? undefined : before;
  if (newest === undefined || (kept && kept.finishedAt > newest.finishedAt)) {
    return kept;
  }
  const { podUid: _, ...found } = newest;
  const isSame = kept?.instance === found.instance && kept.finishedAt === found.finishedAt;
  return isSame && isProbeReason(kept.reason) ? { ...found, reason: kept.reason } : found;
}
