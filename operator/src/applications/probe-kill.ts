/** Which probe had a container ended. Pure. */

/** How a container ended, as the kubelet reports it. */
export interface ContainerTermination {
  reason?: string;
  exitCode?: number;
  signal?: number;
  message?: string;
  startedAt?: string;
  finishedAt?: string;
}

/** A container that the kubelet has ended because of a probe. */
export interface ProbeKill {
  probe: "liveness" | "startup";
  /** RFC 3339. */
  at: string;
}

/** The probe because of which the kubelet ended a container; undefined for one that ended otherwise. */
export function probeThatEnded(
  { startedAt = "", finishedAt = "" }: ContainerTermination,
  kills: readonly ProbeKill[] = [],
): ProbeKill["probe"] | undefined {
  const [start, end] = [Date.parse(startedAt), Date.parse(finishedAt)];
  return kills.find(({ at }) => Date.parse(at) >= start && Date.parse(at) <= end)?.probe;
}
