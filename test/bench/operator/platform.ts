import { join } from "node:path";
import { KubeClient } from "@slipway/controller-runtime";
import { loadKubeConfig } from "@slipway/controller-runtime/kube-config";
import { startTestCluster, type TestCluster, testControllers } from "../../../hack/cluster/test-cluster.ts";
import { applyCrds } from "../../kit/clusters/definitions.ts";
import { startPostgres } from "../../kit/servers/postgresql.ts";
import { serviceAccountEnvironment } from "../service-account.ts";
import { prepareLedger } from "../setup.ts";
import type { ContenderOptions } from "./contenders.ts";

/** As a benchmark names itself in the audit log. */
export const CLIENT = "bench";

/** What operators are measured on. */
export interface Platform extends ContenderOptions {
  cluster: TestCluster;
}

/**
 * Starts etcd, kube-apiserver, the controllers that act on an operator's children, and a PostgreSQL with an organization; nothing limits how much
 * an organization may have.
 * @param cleanups to be called from the last to the first
 */
export async function startPlatform(cleanups: (() => unknown)[]): Promise<Platform> {
  const [cluster, postgres] = await Promise.all([
    startTestCluster({
      controllers: [
        ...testControllers,
        "deployment-controller",
        "replicaset-controller",
        "endpoints-controller",
        "endpointslice-controller",
      ],
      flags: { "audit-log-maxsize": 10_000 },
      limits: "raised",
    }),
    startPostgres(),
  ]);
  cleanups.push(cluster.stop, postgres.stop);
  const kube = KubeClient.fromConfig(loadKubeConfig({ file: cluster.kubeconfig }), { userAgent: CLIENT });
  cleanups.push(() => kube.close());
  await applyCrds(kube);
  await cluster.controllerManager.restart();
  await prepareLedger(postgres.url);
  const account = await serviceAccountEnvironment(kube, cluster, join(cluster.dir, "service-account"));
  return { cluster, kube, kubeconfig: cluster.kubeconfig, account, ledgerUrl: postgres.url };
}
