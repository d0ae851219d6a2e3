/** Which build came before which, and which may begin. Pure. */

import { annotations, type Build } from "@slipway/crds";

/** On a Build: when it was asked for, closer than Kubernetes tells; an RFC 3339 moment. */
export const REQUESTED_AT = annotations.updatedAt;

export const isEnded = ({ status }: Build): boolean =>
  status?.phase === "success" || status?.phase === "failed" || status?.phase === "superseded";

/** When a build was asked for, as RFC 3339: comparable as text. */
export function requestedAt({ metadata }: Build): string {
  const created = new Date(metadata.creationTimestamp ?? 0).getTime();
  const told = Date.parse(metadata.annotations?.[REQUESTED_AT] ?? "");
  // Anybody may write an annotation: it only tells which part of the second it was.
  return new Date(Math.abs(told - created) < 2_000 ? told : created).toISOString();
}

/** Whether a build was asked for after another; one of any two always was. */
export function isNewer(a: Build, b: Build): boolean {
  const [one, other] = [requestedAt(a), requestedAt(b)];
  return one === other ? a.metadata.name > b.metadata.name : one > other;
}

export const isSameProject = (a: Build, b: Build): boolean =>
  a.metadata.namespace === b.metadata.namespace && a.spec.projectRef.name === b.spec.projectRef.name;

/** Whether a newer build of the project was asked for, whatever has become of it. */
export function hasNewer(build: Build, builds: readonly Build[]): boolean {
  return builds.some(
    (other) =>
      isSameProject(other, build) && other.metadata.uid !== build.metadata.uid && isNewer(other, build),
  );
}

/** Whether it holds one of the organization's places. */
export const isBuilding = ({ status }: Build): boolean =>
  status?.phase === "building" && status.step !== "publish";

/**
 * Whether it is a pending build's turn: places go to the oldest first.
 * @param builds of the organization
 * @param starting uids of those that are being started right now
 */
export function isItsTurn(
  build: Build,
  builds: readonly Build[],
  starting: ReadonlySet<string>,
  concurrency: number,
): boolean {
  const before = builds.filter((other) => {
    if (other.metadata.uid === build.metadata.uid || isEnded(other)) return false;
    if (isBuilding(other) || starting.has(other.metadata.uid ?? "")) return true;
    return other.status?.phase !== "building" && isNewer(build, other) && !hasNewer(other, builds);
  });
  return before.length < concurrency;
}
