/** Which build came before which, and which may begin. Pure. */

import { type Build, formerAnnotations } from "@slipway/crds";

export const isEnded = ({ status }: Build): boolean =>
  status?.phase === "success" || status?.phase === "failed" || status?.phase === "superseded";

/** When a build was asked for, as RFC 3339: comparable as text. */
export function requestedAt({ metadata, spec }: Build): string {
  const created = new Date(metadata.creationTimestamp ?? 0).getTime();
  const requested = Date.parse(spec.requestedAt ?? metadata.annotations?.[formerAnnotations.updatedAt] ?? "");
  // The creator's clock may be wrong: it only decides which part of the second it was.
  return new Date(Math.abs(requested - created) < 2_000 ? requested : created).toISOString();
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

/** How many builds may run at once. */
export interface Places {
  /** Of one organization. */
  readonly organization: number;
  /** Of all. */
  readonly platform: number;
}

/** What one organization builds beside one build, and what waits, the oldest first. */
interface Queue {
  readonly running: number;
  readonly waiting: readonly Build[];
}

/** By namespace. What gives way to a newer build of its project does not wait. */
function queuesBeside(
  build: Build,
  builds: readonly Build[],
  starting: ReadonlySet<string>,
): Map<string | undefined, Queue> {
  const newest = new Map<string, Build>();
  const projectOf = ({ metadata, spec }: Build): string => `${metadata.namespace}/${spec.projectRef.name}`;
  for (const one of builds) {
    const known = newest.get(projectOf(one));
    if (known === undefined || isNewer(one, known)) {
      newest.set(projectOf(one), one);
    }
  }
  const others = builds.filter((one) => !isEnded(one) && one.metadata.uid !== build.metadata.uid);
  const isRunning = (one: Build): boolean => isBuilding(one) || starting.has(one.metadata.uid ?? "");
  const queueOf = (own: readonly Build[]): Queue => ({
    running: own.filter(isRunning).length,
    waiting: own
      .filter((one) => !isRunning(one) && one.status?.phase !== "building")
      .filter((one) => newest.get(projectOf(one)) === one)
      .sort((a, b) => (isNewer(a, b) ? 1 : -1)),
  });
  const byNamespace = Map.groupBy(others, ({ metadata }) => metadata.namespace);
  return new Map([...byNamespace].map(([namespace, own]) => [namespace, queueOf(own)]));
}

/**
 * Whether it is a pending build's turn. Places of an organization go to its oldest first; those of the platform to the
 * organizations that have fewest, and among these to the oldest, so that nobody's queue keeps another's first build waiting.
 * @param builds of all organizations
 * @param starting uids of those that are being started right now
 */
export function isItsTurn(
  build: Build,
  builds: readonly Build[],
  starting: ReadonlySet<string>,
  places: Places,
): boolean {
  const queues = queuesBeside(build, builds, starting);
  const own = queues.get(build.metadata.namespace);
  const share = (own?.running ?? 0) + (own?.waiting.filter((other) => isNewer(build, other)).length ?? 0);
  if (share >= places.organization) {
    return false;
  }
  const isAhead = (other: Build, shareOfOther: number): boolean =>
    shareOfOther < places.organization &&
    (shareOfOther < share || (shareOfOther === share && isNewer(build, other)));
  const before = [...queues.values()].reduce(
    (sum, { running, waiting }) =>
      sum + running + waiting.filter((other, index) => isAhead(other, running + index)).length,
    0,
  );
  return before < places.platform;
}
