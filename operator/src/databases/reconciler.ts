/** One reconcile of a running cluster: the steps that every engine has, in their order. Any of them may end it. */

import type { DatabaseCredentials } from "@slipway/crds";
import type { Finding } from "../projects/status.ts";
import { isReady, ordinalOf, stayingPrimary } from "./common/pods.ts";
import { primaryMissing, ROLLING_OUT, replaceOutdatedPod, roll, SWITCHING_OVER } from "./common/rolling.ts";
import type { Database } from "./database.ts";
import type { ClusterContext, ClusterState, DatabaseDriver, LiveDatabase, LivePod } from "./driver.ts";

/** Until the next reconcile of a cluster in which nothing is in progress, in milliseconds. */
const RESYNC_INTERVAL_MS = 60_000;

/** What every step works with. */
export interface Cluster<Memory = unknown> {
  database: Database;
  live: LiveDatabase;
  context: ClusterContext;
  /** What was done and observed. It may be lost: everything can be repeated. */
  memory: Memory;
}

/** The primary, where a member can take writes, and what the members report; or the state with which the reconcile ends. */
export type Found<MemberStates> =
  | { primary: LivePod | undefined; memberStates: MemberStates }
  | { end: ClusterState };

/** What only the engine knows: the steps of a reconcile that differ. Every one can be repeated, and throws to be retried. */
export interface ClusterSteps<Memory, MemberStates = undefined> {
  /** Until the next reconcile while something is in progress, in milliseconds; events of pods trigger one earlier. */
  readonly pollIntervalMs: number;
  /** The same after a server has not done what it was to do: one that does not answer blocks its caller until the timeout. */
  readonly execRetryMs: number;
  newMemory(): Memory;
  closeMemory?(memory: Memory): void;
  /** Why these credentials cannot be taken over, as a sentence; undefined when they can. Pure. */
  credentialsProblem(credentials: DatabaseCredentials): string | undefined;
  /** Queries the members, and routes clients to the primary. */
  findPrimary(cluster: Cluster<Memory>): Promise<Found<MemberStates>>;
  /** What the cluster is doing while it has no primary, where that is no fault. Pure. */
  underWayWithoutPrimary?(cluster: Cluster<Memory>): Finding | undefined;
  /** Applies the settings that the members share, before any pod gets others. @returns whether they are in force */
  shareSettings?(cluster: Cluster<Memory>): Promise<boolean>;
  /**
   * Ensures accounts and database, and whatever else the servers have to be given.
   * @returns what the servers report; undefined when it could not be done now
   */
  setUp(
    cluster: Cluster<Memory>,
    primary: LivePod,
    memberStates: MemberStates,
  ): Promise<Partial<ClusterState> | undefined>;
  /**
   * `findPrimary` itself prefers members that stay, and a change of primary is only one of labels: a surplus primary means
   * that no other member serves, and nothing waits for a switchover.
   */
  readonly switchesByLabel?: true;
  /** Starts a switchover to one of `candidates` that has every acknowledged write; waits while none has. */
  handOver(
    cluster: Cluster<Memory>,
    from: LivePod,
    candidates: readonly LivePod[],
    memberStates: MemberStates,
  ): Promise<void>;
  /** Whether as many members as requested serve; nothing when they do. Pure. */
  checkMembers(
    cluster: Cluster<Memory>,
    primary: LivePod,
    memberStates: MemberStates,
  ): Pick<ClusterState, "missing" | "requeueAfterMs">;
  /** Whether this primary answers now, and has every acknowledged write. */
  isCaughtUp(cluster: Omit<Cluster, "memory">, primary: LivePod): Promise<boolean>;
}

/** The part of a driver that reconciles clusters. What it has done is remembered for as long as the process. */
export function clusterReconciler<Memory, MemberStates>(
  steps: ClusterSteps<Memory, MemberStates>,
): Required<Pick<DatabaseDriver, "isCaughtUp" | "reconcile" | "forget">> {
  const memories = new Map<string, Memory>();
  const memoryOf = (uid: string) => {
    const memory = memories.get(uid) ?? steps.newMemory();
    memories.set(uid, memory);
    return memory;
  };
  return {
    reconcile: (database, live, context) =>
      reconcileCluster(steps, { database, live, context, memory: memoryOf(database.uid) }),
    isCaughtUp: async (database, live, context) => {
      const primary = stayingPrimary(database, live);
      return primary !== undefined && steps.isCaughtUp({ database, live, context }, primary);
    },
    forget: (uid) => {
      const memory = memories.get(uid);
      if (memory !== undefined) {
        steps.closeMemory?.(memory);
        memories.delete(uid);
      }
    },
  };
}

async function reconcileCluster<Memory, MemberStates>(
  steps: ClusterSteps<Memory, MemberStates>,
  cluster: Cluster<Memory>,
): Promise<ClusterState> {
  const { database, live, context } = cluster;
  const problem = steps.credentialsProblem(context.credentials);
  if (problem) {
    return { missing: credentialsPending(problem), requeueAfterMs: RESYNC_INTERVAL_MS };
  }
  const found = await steps.findPrimary(cluster);
  if ("end" in found) {
    return found.end;
  }
  const { primary, memberStates } = found;
  const withoutPrimary = { missing: primaryMissing(database), requeueAfterMs: steps.pollIntervalMs };
  if (!primary) {
    await replaceOutdatedPod(live, context);
    return { ...withoutPrimary, underWay: steps.underWayWithoutPrimary?.(cluster) };
  }
  const base: ClusterState = { primary: primary.metadata.name };
  if (steps.shareSettings && !(await steps.shareSettings(cluster))) {
    return { ...base, ...withoutPrimary };
  }
  const facts = await steps.setUp(cluster, primary, memberStates);
  if (!facts) {
    const missing = credentialsPending("The database's accounts are not in place yet.");
    return { ...base, missing, requeueAfterMs: steps.execRetryMs };
  }
  const clusterState: ClusterState = { ...base, requeueAfterMs: RESYNC_INTERVAL_MS, ...facts };
  return isReady(primary)
    ? { ...clusterState, ...(await reconcilePods(steps, cluster, primary, memberStates)) }
    : { ...clusterState, ...withoutPrimary };
}

/** One step towards the wanted pods. */
async function reconcilePods<Memory, MemberStates>(
  steps: ClusterSteps<Memory, MemberStates>,
  cluster: Cluster<Memory>,
  primary: LivePod,
  memberStates: MemberStates,
): Promise<Partial<ClusterState>> {
  const { database, live, context } = cluster;
  const { pollIntervalMs, switchesByLabel } = steps;
  const handOver = async (from: LivePod, candidates: readonly LivePod[]) => {
    await steps.handOver(cluster, from, candidates, memberStates);
    return { underWay: switchesByLabel ? ROLLING_OUT : SWITCHING_OVER, requeueAfterMs: pollIntervalMs };
  };
  if (ordinalOf(primary) >= database.instances && !switchesByLabel) {
    const staying = live.pods.filter((pod) => ordinalOf(pod) < database.instances);
    return handOver(primary, staying);
  }
  const whenDone = () => steps.checkMembers(cluster, primary, memberStates);
  return roll(database, live, primary, { pollMs: pollIntervalMs, handOver, whenDone }, context);
}

function credentialsPending(message: string): Finding {
  return { reason: "CredentialsPending", message };
}
