/** Valkey: one instance, or several of which Sentinels keep one the primary. */

import { isReady, processOf, startOf } from "../common/pods.ts";
import { replicasMissing } from "../common/rolling.ts";
import { passwordsHash } from "../common/setup.ts";
import { labelPods, queryPods } from "../common/steps.ts";
import type { DatabaseDriver, LivePod } from "../driver.ts";
import { type Cluster, type ClusterSteps, clusterReconciler } from "../reconciler.ts";
import { accountCommand, follow, priorityCommand, query, switchOver } from "./commands.ts";
import { desired } from "./manifests.ts";
import { credentialsProblem, nodeServices, sizeOf, VALKEY_PORT } from "./names.ts";
import { SentinelSubscription } from "./sentinel-subscription.ts";
import { choosePrimary, detached, type MemberStates, relabelled, silentPrimary } from "./topology.ts";

/** Until the next reconcile while something is in progress, in milliseconds. */
const POLL_INTERVAL_MS = 1_000;
/** How often several instances are queried for the primary while not all of their Sentinels are subscribed to. */
const UNSUBSCRIBED_QUERY_INTERVAL_MS = 10_000;

/** How long Sentinels have to attach an instance to the primary before the operator does, above all during a failover. */
const REATTACH_AFTER_MS = 20_000;

/** How long the other instances are waited for once one has reported that it is the primary and has replicas. */
const STRAGGLER_TIMEOUT_MS = 2_000;

interface Memory {
  /** Hash of the passwords that each process has, by process. */
  accounts: Map<string, string>;
  /** Since when each process has not followed the primary, in milliseconds. */
  detached: Map<string, number>;
  subscription: SentinelSubscription;
}

export function valkeyDriver(): DatabaseDriver {
  return {
    name: "valkey",
    port: VALKEY_PORT,
    desired,
    services: nodeServices,
    ...clusterReconciler(steps),
  };
}

const steps: ClusterSteps<Memory, MemberStates> = {
  pollIntervalMs: POLL_INTERVAL_MS,
  execRetryMs: POLL_INTERVAL_MS,
  newMemory: () => ({
    accounts: new Map(),
    detached: new Map(),
    subscription: new SentinelSubscription(),
  }),
  closeMemory: ({ subscription }) => subscription.close(),
  credentialsProblem,

  async findPrimary(cluster) {
    const { database, live, context } = cluster;
    const memberStates = await queryMembers(cluster);
    const primary = choosePrimary(database, memberStates) ?? silentPrimary(live.pods, memberStates);
    await labelPods(relabelled(live.pods, primary, memberStates), context);
    await reattachReplicas(cluster, primary, memberStates);
    return { primary: primary && isReady(primary) ? primary : undefined, memberStates };
  },

  /** Passwords are set as members are queried. */
  async setUp({ database, live, memory, context }, primary, memberStates) {
    const hash = passwordsHash(database, context);
    const isSetUp = live.pods.filter(isReady).every((pod) => memory.accounts.get(processOf(pod)) === hash);
    const isSubscribed =
      sizeOf(database) === 1 || memory.subscription.subscribe(database, primary, live.pods, context);
    return {
      runningVersion: memberStates.get(primary)?.version ?? context.status.runningVersion,
      credentialsHash: isSetUp ? database.credentialsHash : undefined,
      ...(isSubscribed ? {} : { requeueAfterMs: UNSUBSCRIBED_QUERY_INTERVAL_MS }),
      ...(isSetUp && memberStates.has(primary) ? {} : { requeueAfterMs: POLL_INTERVAL_MS }),
    };
  },

  /** Has a replica's Sentinel switch the primary over to it. */
  async handOver({ context }, _from, candidates) {
    const to = candidates.find(isReady);
    const answer = to && (await switchOver(to, context));
    if (answer !== undefined && answer !== "OK") {
      context.log.warn({ answer }, "a Sentinel rejected a switchover");
    }
  },

  checkMembers({ database: { instances }, live }, primary, memberStates) {
    const state = memberStates.get(primary);
    // A primary that does not answer has not reported that a replica is missing.
    const isFollowed = !state || state.followers >= instances - 1;
    return isFollowed && live.pods.filter(isReady).length >= instances
      ? {}
      : { missing: replicasMissing("Not every replica follows."), requeueAfterMs: POLL_INTERVAL_MS };
  },

  /**
   * The data of the serving primary count. Every running instance has to confirm it: while one of them reports another primary,
   * or does not answer, a failover may be in progress.
   */
  async isCaughtUp({ database, live, context }, primary) {
    const running = live.pods.filter((pod) => startOf(pod) !== undefined);
    const memberStates = await queryPods(running, (pod) => query(pod, [], context));
    return (
      memberStates.size === running.length &&
      memberStates.get(primary)?.role === "primary" &&
      detached(database, primary, memberStates).length === 0
    );
  },
};

/** Queries every running instance, and sets the project's password where it is not set. */
async function queryMembers({ database, live, memory, context }: Cluster<Memory>): Promise<MemberStates> {
  const hash = passwordsHash(database, context);
  const running = live.pods.filter((pod) => startOf(pod) !== undefined && !pod.metadata.deletionTimestamp);
  const known = memory.accounts;
  memory.accounts = new Map();
  const stragglers = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  const memberStates = await queryPods(running, async (pod) => {
    const process = processOf(pod);
    const has = known.get(process);
    const account = has === hash ? undefined : accountCommand(context.credentials);
    const state = await query(pod, [account], context, stragglers.signal);
    if (state?.role === "primary" && state.followers > 0) {
      timer ??= setTimeout(() => stragglers.abort(), STRAGGLER_TIMEOUT_MS);
    }
    const now = state ? hash : has;
    if (now !== undefined) {
      memory.accounts.set(process, now);
    }
    return state;
  });
  clearTimeout(timer);
  const corrected = await correctPriorities({ database, context }, memberStates);
  return new Map([...memberStates, ...corrected]);
}

/** Which replicas Sentinels may promote depends on what all of them have. @returns the states of those whose priority was wrong */
async function correctPriorities(
  { database, context }: Pick<Cluster<Memory>, "database" | "context">,
  memberStates: MemberStates,
): Promise<MemberStates> {
  const commands = new Map<LivePod, string>();
  for (const pod of memberStates.keys()) {
    const command = priorityCommand(database, pod, memberStates);
    if (command !== undefined) {
      commands.set(pod, command);
    }
  }
  return queryPods([...commands.keys()], (pod) => query(pod, [commands.get(pod)], context));
}

/** Reattaches instances that have not followed the primary for long enough. */
async function reattachReplicas(
  { database, memory, context }: Cluster<Memory>,
  primary: LivePod | undefined,
  memberStates: MemberStates,
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
