/** MariaDB: a Galera group of three, one of which is the primary. */

import { hashJson } from "@slipway/controller-runtime";
import { roles } from "../common/metadata.ts";
import { isReady, startOf } from "../common/pods.ts";
import { replicasMissing } from "../common/rolling.ts";
import { mustSetPassword, noCredentials, reloadCertificates, setUpOnce } from "../common/setup.ts";
import { labelPods, queryPods, type Relabelling } from "../common/steps.ts";
import type { ClusterContext, DatabaseDriver, LivePod } from "../driver.ts";
import { type Cluster, type ClusterSteps, clusterReconciler } from "../reconciler.ts";
import { order, queryMember, runScript } from "./commands.ts";
import { userConnections } from "./config.ts";
import { moveEvents } from "./events.ts";
import { desired } from "./manifests.ts";
import { isServing, isSynced } from "./member-state.ts";
import { MARIADB_PORT } from "./names.ts";
import { decide } from "./recovery.ts";
import { credentialsProblem, parseSetup, setupScript } from "./sql.ts";
import { type GroupMemory, groupOf, removeAcceptance, startGroup } from "./start-group.ts";
import { candidatesOf, choosePrimary, type MemberStates, relabelled, silentPrimary } from "./topology.ts";

/** Until the next reconcile while something is in progress, in milliseconds. */
const POLL_INTERVAL_MS = 1_000;
/**
 * How often members are queried for their state: events of pods already report one that is deleted, or not ready, as a member
 * is that is no longer in the group.
 */
const QUERY_INTERVAL_MS = 60_000;

/** How slow a primary may be that its kubelet considers ready. */
const SILENT_MS = 10_000;

interface Memory extends GroupMemory {
  /** Since when the primary has not answered though it is ready, in milliseconds. */
  silentSince?: number;
}

export function mariadbDriver(): DatabaseDriver {
  return { name: "mariadb", port: MARIADB_PORT, desired, ...clusterReconciler(steps) };
}

const steps: ClusterSteps<Memory, MemberStates> = {
  pollIntervalMs: POLL_INTERVAL_MS,
  execRetryMs: 10_000,
  newMemory: () => ({ certificates: new Map() }),
  credentialsProblem,

  async findPrimary(cluster) {
    const { live, context, memory } = cluster;
    const running = live.pods.filter((pod) => startOf(pod) !== undefined);
    const memberStates = await queryPods(running, (pod) => queryMember(pod, context));
    const silent = silentPrimary(live.pods, memberStates);
    if (isWaitedFor(silent, memory, context)) {
      return { end: { primary: silent?.metadata.name, requeueAfterMs: POLL_INTERVAL_MS } };
    }
    const decision = decide(groupOf(cluster, memberStates));
    if (decision.kind !== "serve") {
      return { end: await startGroup(decision, cluster, steps) };
    }
    memory.leaderlessSince = undefined;
    memory.refused = undefined;
    // It was accepted for one refusal, and nothing is refused any more.
    await removeAcceptance(cluster);
    const primary = choosePrimary(memberStates);
    await relabel(relabelled(live.pods, primary), memberStates, context);
    return { primary, memberStates };
  },

  async setUp(cluster, primary, memberStates) {
    const { database, live, context } = cluster;
    const facts = await setUpAccounts(cluster, primary);
    if (!facts) {
      return undefined;
    }
    const certificates = await reloadCertificates(cluster, async (pod) => {
      const state = memberStates.get(pod);
      return state?.phase === "running" && order(pod, "reload", state.run, context);
    });
    const eventsRun = await moveEvents(live, primary, memberStates, context);
    const isWhole = live.pods.filter((pod) => isServing(memberStates.get(pod))).length >= database.instances;
    // It counts as set up once every member has joined: until then an empty one has lost nothing.
    const { credentialsHash, ...known } = facts;
    return {
      ...known,
      ...certificates,
      ...(isWhole || database.bootstrapped ? { credentialsHash } : {}),
      requeueAfterMs: eventsRun ? QUERY_INTERVAL_MS : POLL_INTERVAL_MS,
    };
  },

  async handOver({ context }, from, candidates, memberStates) {
    const synced = candidatesOf(memberStates).filter((pod) => isSynced(memberStates.get(pod)));
    const to = candidates.filter(isReady).find((pod) => synced.includes(pod));
    if (to) {
      const state = memberStates.get(from);
      if (state?.phase === "running" && state.events) {
        await order(from, "note", state.run, context);
      }
      // Their labels as `findPrimary` has left them, and not as they were observed before it.
      const changes = [
        { pod: from, role: roles.replica },
        { pod: to, role: roles.primary },
      ];
      await relabel(changes, memberStates, context);
    }
  },

  checkMembers: ({ database, live }, _primary, memberStates) =>
    live.pods.filter((pod) => isReady(pod) && isServing(memberStates.get(pod))).length >= database.instances
      ? {}
      : {
          missing: replicasMissing("Not every instance is in the group."),
          requeueAfterMs: POLL_INTERVAL_MS,
        },

  /** A member of the part that has a majority, with nothing left to apply, has whatever any of them acknowledged. */
  isCaughtUp: async ({ context }, primary) => isSynced(await queryMember(primary, context)),
};

/** A primary that is slow to answer stays the primary for a while: a switchover shortens no wait, and ends sessions. */
function isWaitedFor(silent: LivePod | undefined, memory: Memory, { clock }: ClusterContext): boolean {
  const now = clock.now().getTime();
  memory.silentSince = silent && (memory.silentSince ?? now);
  return memory.silentSince !== undefined && now - memory.silentSince < SILENT_MS;
}

/** Routes clients to the primary, by labels. A new one has applied all that was acknowledged before. */
function relabel(
  changes: readonly Relabelling[],
  memberStates: MemberStates,
  context: ClusterContext,
): Promise<void> {
  return labelPods(changes, context, async (pod) => {
    const state = memberStates.get(pod);
    if (state?.phase === "running") {
      await order(pod, "settle", state.run, context);
    }
  });
}

function setUpAccounts({ database, memory, context }: Cluster<Memory>, primary: LivePod) {
  const { credentials } = context;
  const connections = userConnections(database);
  const run = () => {
    const setPassword = mustSetPassword(database, context);
    return runScript(primary, setupScript({ credentials, setPassword, connections }), context);
  };
  const errors = /^ERROR ([0-9]+)/gm;
  const revision = hashJson(setupScript({ credentials: noCredentials, setPassword: true, connections }));
  return setUpOnce(database, primary, memory, { run, parse: parseSetup, errors, revision }, context);
}
