/** Which time of a build is charged: that in which containers ran, in the attempt that ended it. Pure. */

import type { BuildStatus } from "@slipway/crds";
import type { Decision, Observation } from "./decide.ts";

/** As a build's status has it. */
export type ChargedTime = Pick<BuildStatus, "ranFrom" | "ranUntil">;

/**
 * What a build's status says of it after a decision. An attempt that is lost, or after which another one may follow, is not charged, and a build that is
 * superseded then is not either. What is published was built before.
 */
export function chargedTime(
  { build, pod }: Pick<Observation, "build" | "pod">,
  decision: Decision,
): ChargedTime {
  const { status } = build;
  if (status?.step === "publish" || decision.do === "cleanUp") {
    return { ranFrom: status?.ranFrom, ranUntil: status?.ranUntil };
  }
  if (!pod || pod.state.state === "waiting" || decision.do === "start") {
    return {};
  }
  const { from, until } = pod.ran ?? {};
  switch (pod.state.state) {
    case "running":
      return { ranFrom: from };
    case "done":
      return { ranFrom: from, ranUntil: until };
    case "failed": {
      const isLast = decision.do === "end" && decision.phase === "failed";
      return isLast || !pod.state.passing ? { ranFrom: from, ranUntil: until } : {};
    }
  }
}

/**
 * The charged time of a build that ends.
 * @param now when containers that run are about to be stopped; it is only called where some do
 * @param deadlineSeconds the node lets no pod run longer
 */
export function endedTime(
  { ranFrom, ranUntil }: ChargedTime,
  { now, deadlineSeconds }: { now: () => Date; deadlineSeconds: number },
): ChargedTime {
  if (ranFrom === undefined) {
    return {};
  }
  const from = Date.parse(ranFrom);
  const until = ranUntil === undefined ? now().getTime() : Date.parse(ranUntil);
  const most = from + deadlineSeconds * 1_000;
  return { ranFrom, ranUntil: new Date(Math.max(from, Math.min(until, most))).toISOString() };
}
