import type { ChildProcess } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { KubeClient } from "@slipway/controller-runtime";
import { loadKubeConfig } from "@slipway/controller-runtime/kube-config";
import { startApiserver, type TestApiserver } from "../../hack/cluster/apiserver.ts";
import { bundleOf, writeBundles } from "../../hack/images/bundle.ts";
import { root } from "../../hack/lib/paths.ts";
import { freePorts } from "../../hack/lib/ports.ts";
import { waitFor } from "../../hack/lib/wait.ts";
import { EtcdClient } from "../kit/clusters/etcd-client.ts";
import { startNode, writeTokenKey } from "../kit/processes/node.ts";
import { startPostgres } from "../kit/servers/postgresql.ts";
import { serviceAccountEnvironment } from "./service-account.ts";
import { prepareCluster, prepareLedger } from "./setup.ts";

/** What an API server needs, and how to start it. */
export interface ApiBench {
  apiserver: TestApiserver;
  etcd: EtcdClient;
  /** A key of the organization, which may read every project. */
  key: string;
  /** For files of the benchmark. */
  directory: string;
  start(options?: { catalogFile?: string; valkeyUrl?: string | undefined }): Promise<ApiProcess>;
}

/** The API server of a benchmark. */
export interface ApiProcess {
  process: ChildProcess;
  url: string;
  metricsUrl: string;
}

/** Starts a kube-apiserver and a PostgreSQL with an organization. @param cleanups to be called from the last to the first */
export async function prepareApiBench(cleanups: (() => unknown)[]): Promise<ApiBench> {
  const directory = mkdtempSync(join(tmpdir(), "slipway-bench-"));
  cleanups.push(() => rmSync(directory, { recursive: true, force: true }));
  const [apiserver, postgres] = await Promise.all([startApiserver(), startPostgres(), writeBundles(root)]);
  cleanups.push(apiserver.stop, postgres.stop);
  const kube = KubeClient.fromConfig(loadKubeConfig({ file: apiserver.kubeconfig }));
  cleanups.push(() => kube.close());
  await prepareCluster(kube);
  const key = await prepareLedger(postgres.url);
  const account = await serviceAccountEnvironment(kube, apiserver, join(directory, "service-account"));
  const start: ApiBench["start"] = async (options = {}) => {
    const api = await startApi({ ...options, directory, ledgerUrl: postgres.url, account });
    cleanups.push(() => api.process.kill("SIGKILL"));
    return api;
  };
  return { apiserver, etcd: new EtcdClient(apiserver.etcd), key, directory, start };
}

/** Starts an API server with a service account and resolves once it is ready. @param directory for its key of tokens */
export async function startApi({
  directory,
  ledgerUrl,
  account,
  catalogFile = join(root, "charts/slipway/files/catalog.yaml"),
  valkeyUrl,
}: {
  directory: string;
  ledgerUrl: string;
  account: Record<string, string>;
  catalogFile?: string;
  valkeyUrl?: string | undefined;
}): Promise<ApiProcess> {
  const [port = 0, metricsPort = 0] = await freePorts(2);
  const keyFile = join(directory, "token-key.pem");
  writeTokenKey(keyFile);
  const child = startNode(bundleOf("api-server"), [], {
    // As the chart has it.
    NODE_OPTIONS: "--max-semi-space-size=4",
    MALLOC_ARENA_MAX: "2",
    SLIPWAY_LEDGER_URL: ledgerUrl,
    SLIPWAY_CATALOG_FILE: catalogFile,
    SLIPWAY_TOKEN_KEY_FILE: keyFile,
    ...(valkeyUrl === undefined ? {} : { SLIPWAY_VALKEY_URL: valkeyUrl }),
    SLIPWAY_RATE_LIMIT_SCALE: "1000000000",
    SLIPWAY_LISTEN_ADDRESS: "127.0.0.1",
    SLIPWAY_PORT: String(port),
    SLIPWAY_METRICS_PORT: String(metricsPort),
    SLIPWAY_LOG_LEVEL: "warn",
    ...account,
  });
  const metrics = `http://127.0.0.1:${metricsPort}`;
  // 100,000 projects take kube-apiserver and it minutes.
  await waitFor("the API server", 400_000, async () => (await fetch(`${metrics}/readyz`)).ok);
  return { process: child, url: `http://127.0.0.1:${port}`, metricsUrl: `${metrics}/metrics` };
}

/** Resolves once the API server has so many projects in memory. */
export function waitForProjects({ metricsUrl }: ApiProcess, count: number): Promise<unknown> {
  return waitFor(`${count} projects in memory`, 400_000, async () =>
    (await (await fetch(metricsUrl)).text()).includes(`\nslipway_api_projects ${count}\n`),
  );
}
