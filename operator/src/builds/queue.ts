/** The order of builds, and which of them may start. */

import { type Build, formerAnnotations } from "@slipway/crds";

export const isEnded = ({ status }: Build): boolean =>
  status?.phase === "success" || status?.phase === "failed" || status?.phase === "superseded";

/** When a build was requested, as RFC 3339: comparable as text. */
export function requestedAt({ metadata, spec }: Build): string {
  const created = new Date(metadata.creationTimestamp ?? 0).getTime();
  const requested = Date.parse(spec.requestedAt ?? metadata.annotations?.[formerAnnotations.updatedAt] ?? "");
  // The creator's clock may be wrong: it only refines the second.
  return new Date(Math.abs(requested - created) < 2_000 ? requested : created).toISOString();
}

/** Whether a build was requested after another: a strict total order. */
export function isNewer(a: Build, b: Build): boolean {
  const [one, other] = [requestedAt(a), requestedAt(b)];
  return one === other ? a.metadata.name > b.metadata.name : one > other;
}

export const isSameProject = (a: Build, b: Build): boolean =>
  a.metadata.namespace === b.metadata.namespace && a.spec.projectRef.name === b.spec.projectRef.name;

/** Whether a newer build of the project was requested, whatever its state. */
export function hasNewer(build: Build, builds: readonly Build[]): boolean {
  return builds.some(
    (other) =>
      isSameProject(other, build) && other.metadata.uid !== build.metadata.uid && isNewer(other, build),
  );
}

/** Whether it uses up one of the organization's quota. */
export const isBuilding = ({ status }: Build): boolean =>
  status?.phase === "building" && status.step !== "publish";

/** How many builds may run concurrently. */
export interface ConcurrencyQuota {
  /** Of one organization. */
  readonly organization: number;
  /** Of all. */
  readonly platform: number;
}

/** The running and the waiting builds of an organization beside one build, the oldest first. */
interface Queue {
  readonly running: number;
  readonly waiting: readonly Build[];
}

/** By namespace. Builds that a newer one of their project supersedes do not count. */
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
 * Whether a pending build may start. An organization's quota goes to its oldest builds first; the platform's quota to the
 * organizations with fewest running, and among these to the oldest, so that no queue delays another organization's first build.
 * @param builds of all organizations
 * @param starting uids of builds that are being started
 */
export function isAdmissible(
  build: Build,
  builds: readonly Build[],
  starting: ReadonlySet<string>,
  places: ConcurrencyQuota,
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

const uidOf = ({ metadata }: Build): string => metadata.uid ?? "";

/** Starts that no status shows yet, and failed ones. */
export class PendingStarts {
  readonly #starting = new Set<string>();
  /** They are retried; meanwhile they use no quota, and no build waits for them. */
  readonly #failed = new Set<string>();

  /** Reserves quota for a build synchronously, before any other worker can. */
  reserve(build: Build): void {
    this.#starting.add(uidOf(build));
    this.#failed.delete(uidOf(build));
  }

  /** Releases the quota of a build that could not be started: its Git server does not answer, or a quota is full. */
  release(build: Build): void {
    this.#starting.delete(uidOf(build));
    this.#failed.add(uidOf(build));
  }

  /**
   * The builds that compete with a build for quota.
   * @param builds of all organizations
   */
  competing(build: Build, builds: readonly Build[]): { builds: Build[]; starting: ReadonlySet<string> } {
    const known = new Map(builds.map((one) => [uidOf(one), one]));
    for (const uids of [this.#starting, this.#failed]) {
      for (const uid of uids) {
        const one = known.get(uid);
        if (!one || isEnded(one) || isBuilding(one)) {
          uids.delete(uid);
        }
      }
    }
    const counted = builds.filter((one) => uidOf(one) === uidOf(build) || !this.#failed.has(uidOf(one)));
    return { builds: counted, starting: this.#starting };
  }
}
