/** ClickHouse: one server that is its own Keeper, or several that agree by three Keepers beside them. */

import { podProblem } from "../../applications/pod-problem.ts";
import { roles } from "../common/metadata.ts";
import { CONTAINER } from "../common/pod.ts";
import { isReady } from "../common/pods.ts";
import { replicasMissing } from "../common/rolling.ts";
import { labelPods } from "../common/steps.ts";
import type { DatabaseDriver } from "../driver.ts";
import { type ClusterSteps, clusterReconciler } from "../reconciler.ts";
import { query } from "./http-client.ts";
import { desired } from "./manifests.ts";
import { HTTPS_PORT, isReplicated, keeperName } from "./names.ts";
import {
  checkReplication,
  QUERY_RETRY_MS,
  type Query,
  queryServerBy,
  type ServerMemory,
  setUpServers,
} from "./servers.ts";
import { BEHIND, canReplicate, credentialsProblem } from "./sql.ts";
import { choosePrimary, relabelled } from "./topology.ts";

export function clickhouseDriver(send: Query = query): DatabaseDriver {
  return {
    name: "clickhouse",
    port: HTTPS_PORT,
    refuse: ({ spec }, _plan, image) =>
      (spec.instances ?? 1) > 1 && !canReplicate(image)
        ? {
            reason: "FeatureNotSupported",
            message:
              "This platform runs a substitute for ClickHouse that cannot replicate: it has one instance.",
          }
        : undefined,
    desired,
    services: (database) => (isReplicated(database) ? [`*.${keeperName(database)}`] : []),
    ...clusterReconciler(clusterSteps(send)),
    changesPlansInBackground: true,
  };
}

function clusterSteps(send: Query): ClusterSteps<ServerMemory> {
  const queryServer = queryServerBy(send);
  return {
    pollIntervalMs: 2_000,
    execRetryMs: QUERY_RETRY_MS,
    newMemory: () => ({ setUp: new Map() }),
    credentialsProblem,

    async findPrimary({ database, live, context }) {
      const primary = choosePrimary(live.pods, database.instances);
      await labelPods(relabelled(live.pods, primary), context);
      return { primary, memberStates: undefined };
    },

    /** An instance that is being replaced is no fault, though clients cannot write meanwhile. */
    underWayWithoutPrimary({ database, live }) {
      const isStarting = live.pods.every(
        (pod) => pod.metadata.deletionTimestamp !== undefined || podProblem(pod, CONTAINER) === undefined,
      );
      return database.bootstrapped && isStarting
        ? { reason: "RollingOut", message: "An instance is being started." }
        : undefined;
    },

    async setUp(cluster, primary) {
      const runningVersion = await setUpServers(cluster, primary, queryServer);
      return runningVersion === undefined
        ? undefined
        : {
            runningVersion,
            credentialsHash: cluster.database.credentialsHash,
            ...(isReplicated(cluster.database) ? await checkReplication(cluster, primary, queryServer) : {}),
          };
    },

    switchesByLabel: true,

    async handOver({ context }, from, candidates) {
      const to = candidates.find(isReady);
      await labelPods(
        [{ pod: from, role: roles.replica }, ...(to ? [{ pod: to, role: roles.primary }] : [])],
        context,
      );
    },

    checkMembers: ({ database, live }) =>
      live.pods.filter(isReady).length >= database.instances
        ? {}
        : { missing: replicasMissing("Not every instance serves.") },

    /** The primary has fetched all that other servers have acknowledged. */
    async isCaughtUp(cluster, primary) {
      const [behind] = await queryServer(cluster, primary, [BEHIND]);
      return behind === "0";
    },
  };
}
