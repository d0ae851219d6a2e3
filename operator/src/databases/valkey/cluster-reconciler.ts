/** Reconciles running Valkey instances: role labels, passwords, replication, rolling updates. */

import { isReady, ordinalOf, processOf, startOf, stayingPrimary } from "../common/pods.ts";
import { primaryMissing, replaceOutdatedPod, roll, SWITCHING_OVER } from "../common/rolling.ts";
import { labelRole } from "../common/steps.ts";
import type { Database } from "../database.ts";
import type { ClusterContext, ClusterState, LiveDatabase, LivePod } from "../driver.ts";
import { credentialsProblem } from "./accounts.ts";
import { accountCommand, follow, priorityCommand, query, switchOver } from "./commands.ts";
import { sizeOf } from "./names.ts";
import { SentinelSubscription } from "./sentinel-subscription.ts";
import type { MemberState } from "./topology.ts";
import { choosePrimary, detached, type MemberStates, relabelled, silentPrimary } from "./topology.ts";

/** Until the next reconcile while something is in progress, in milliseconds. */
const POLL_INTERVAL_MS = 1_000;
/** How often several instances are queried for the primary while not all of their Sentinels are subscribed to. */
const UNSUBSCRIBED_QUERY_INTERVAL_MS = 10_000;
const RESYNC_INTERVAL_MS = 60_000;

/** How long Sentinels have to attach an instance to the primary before the operator does, above all during a failover. */
const REATTACH_AFTER_MS = 20_000;

/** How long the other instances are waited for once one has reported that it is the primary and has replicas. */
const STRAGGLER_TIMEOUT_MS = 2_000;

/** What was done and observed. It may be lost: everything can be repeated. */
interface Memory {
  /** Hash of the credentials that each process has, by process. */
  accounts: Map<string, string>;
  /** Since when each process has not followed the primary, in milliseconds. */
  detached: Map<string, number>;
  subscription: SentinelSubscription;
}

export class ValkeyClusterReconciler {
  readonly #memories = new Map<string, Memory>();

  forget(uid: string): void {
    this.#memories.get(uid)?.subscription.close();
    this.#memories.delete(uid);
  }

  async reconcile(database: Database, live: LiveDatabase, context: ClusterContext): Promise<ClusterState> {
    const problem = credentialsProblem(context.credentials);
    if (problem) {
      return {
        missing: { reason: "CredentialsPending", message: problem },
        requeueAfterMs: RESYNC_INTERVAL_MS,
      };
    }
    const memory = this.#memory(database.uid);
    const memberStates = await queryMembers(database, live, memory, context);
    const primary = choosePrimary(database, memberStates) ?? silentPrimary(live.pods, memberStates);
    for (const { pod, role } of relabelled(live.pods, primary, memberStates)) {
      await labelRole(pod, role, context);
    }
    await reattachReplicas(database, primary, memberStates, memory, context);
    if (!primary || !isReady(primary)) {
      await replaceOutdatedPod(live, context);
      return { missing: primaryMissing(database), requeueAfterMs: POLL_INTERVAL_MS };
    }
    const clusterState: ClusterState = {
      primary: primary.metadata.name,
      runningVersion: memberStates.get(primary)?.version ?? context.status.runningVersion,
      credentialsHash: hasCredentials(database, live, memory) ? database.credentialsHash : undefined,
      requeueAfterMs: RESYNC_INTERVAL_MS,
    };
    if (sizeOf(database) > 1 && !memory.subscription.subscribe(database, primary, live.pods, context)) {
      clusterState.requeueAfterMs = UNSUBSCRIBED_QUERY_INTERVAL_MS;
    }
    if (clusterState.credentialsHash === undefined || !memberStates.has(primary)) {
      clusterState.requeueAfterMs = POLL_INTERVAL_MS;
    }
    return { ...clusterState, ...(await reconcilePods(database, live, primary, memberStates, context)) };
  }

  #memory(uid: string): Memory {
    const memory = this.#memories.get(uid) ?? {
      accounts: new Map(),
      detached: new Map(),
      subscription: new SentinelSubscription(),
    };
    this.#memories.set(uid, memory);
    return memory;
  }
}

/**
 * The data of the serving primary count. Every running instance has to confirm it: while one of them reports another primary,
 * or does not answer, a failover may be in progress.
 */
export async function isCaughtUp(
  database: Database,
  live: LiveDatabase,
  context: ClusterContext,
): Promise<boolean> {
  const primary = stayingPrimary(database, live);
  const running = live.pods.filter((pod) => startOf(pod) !== undefined);
  const memberStates = new Map<LivePod, MemberState>();
  await Promise.all(
    running.map(async (pod) => {
      const facts = await query(pod, [], context);
      if (facts) {
        memberStates.set(pod, facts);
      }
    }),
  );
  return (
    primary !== undefined &&
    memberStates.size === running.length &&
    memberStates.get(primary)?.role === "primary" &&
    detached(database, primary, memberStates).length === 0
  );
}

/** Queries every running instance, and sets the project's password where it is not set. */
async function queryMembers(
  database: Database,
  live: LiveDatabase,
  memory: Memory,
  context: ClusterContext,
): Promise<MemberStates> {
  const hash = database.credentialsHash;
  const running = live.pods.filter((pod) => startOf(pod) !== undefined && !pod.metadata.deletionTimestamp);
  const known = memory.accounts;
  memory.accounts = new Map();
  const stragglers = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  const asked = await Promise.all(
    running.map(async (pod): Promise<[LivePod, MemberState | undefined]> => {
      const process = processOf(pod);
      const has = known.get(process);
      const account = has === hash ? undefined : accountCommand(context.credentials);
      const first = await query(pod, [account], context, stragglers.signal);
      const priority = first && priorityCommand(database, pod, first);
      const facts = priority ? await query(pod, [priority], context, stragglers.signal) : first;
      if (facts?.role === "primary" && facts.followers > 0) {
        timer ??= setTimeout(() => stragglers.abort(), STRAGGLER_TIMEOUT_MS);
      }
      const now = first ? hash : has;
      if (now !== undefined) {
        memory.accounts.set(process, now);
      }
      return [pod, facts];
    }),
  );
  clearTimeout(timer);
  return new Map(asked.flatMap(([pod, facts]): [LivePod, MemberState][] => (facts ? [[pod, facts]] : [])));
}

/** Whether every instance that serves has the project's password. */
function hasCredentials(database: Database, live: LiveDatabase, { accounts }: Memory): boolean {
  return live.pods.filter(isReady).every((pod) => accounts.get(processOf(pod)) === database.credentialsHash);
}

/** Makes instances that have not followed the primary for long enough follow it. */
async function reattachReplicas(
  database: Database,
  primary: LivePod | undefined,
  memberStates: MemberStates,
  memory: Memory,
  context: ClusterContext,
): Promise<void> {
  const now = context.clock.now().getTime();
  const before = memory.detached;
  memory.detached = new Map();
  for (const pod of detached(database, primary, memberStates)) {
    const process = processOf(pod);
    const since = before.get(process) ?? now;
    memory.detached.set(process, since);
    if (primary && now - since >= REATTACH_AFTER_MS) {
      await follow(database, pod, primary, context);
    }
  }
}

/** One step towards the wanted pods. */
function reconcilePods(
  database: Database,
  live: LiveDatabase,
  primary: LivePod,
  memberStates: MemberStates,
  context: ClusterContext,
): Promise<Partial<ClusterState>> {
  const { instances } = database;
  if (ordinalOf(primary) >= instances) {
    const staying = live.pods.filter((pod) => ordinalOf(pod) < instances);
    return handOver(staying, context);
  }
  const rolling = {
    pollMs: POLL_INTERVAL_MS,
    handOver: (_from: LivePod, to: readonly LivePod[]) => handOver(to, context),
    whenDone: (): Partial<ClusterState> =>
      following(database, live, primary, memberStates)
        ? {}
        : {
            missing: { reason: "ReplicasMissing", message: "Not every replica follows." },
            requeueAfterMs: POLL_INTERVAL_MS,
          },
  };
  return roll(database, live, primary, rolling, context);
}

function following(
  { instances }: Database,
  { pods }: LiveDatabase,
  primary: LivePod,
  memberStates: MemberStates,
): boolean {
  const facts = memberStates.get(primary);
  // A primary that does not answer has not reported that a replica is missing.
  const followed = !facts || facts.followers >= instances - 1;
  return followed && pods.filter(isReady).length >= instances;
}

/** Has a replica's Sentinel switch the primary over to it. */
async function handOver(
  candidates: readonly LivePod[],
  context: ClusterContext,
): Promise<Partial<ClusterState>> {
  const to = candidates.find(isReady);
  if (to) {
    const answer = await switchOver(to, context);
    if (answer !== "OK") {
      context.log.warn({ answer }, "a Sentinel rejected a switchover");
    }
  }
  return { underWay: SWITCHING_OVER, requeueAfterMs: POLL_INTERVAL_MS };
}
