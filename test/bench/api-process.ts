import type { ChildProcess } from "node:child_process";
import { copyFileSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import {
  customResource,
  type KubeClient,
  type KubernetesObject,
  resources,
} from "@slipway/controller-runtime";
import type { TestApiserver } from "../../hack/cluster/apiserver.ts";
import { freePorts } from "../../hack/lib/ports.ts";
import { waitFor } from "../../hack/lib/wait.ts";
import { startNode, writeTokenKey } from "../kit/processes/node.ts";

/** The API server of a benchmark. */
export interface ApiProcess {
  process: ChildProcess;
  url: string;
  metricsUrl: string;
}

export interface ApiProcessOptions {
  apiserver: TestApiserver;
  kube: KubeClient;
  /** For its keys. */
  directory: string;
  ledgerUrl: string;
  catalogFile: string;
  valkeyUrl?: string | undefined;
}

/** The young generation as the chart has it. */
const NODE_OPTIONS = "--max-semi-space-size=16";

/**
 * Starts the API server as a pod has it, with a service account: with a kubeconfig it would have a client's library in memory that no pod
 * has.
 */
export async function startApi(options: ApiProcessOptions): Promise<ApiProcess> {
  const { apiserver, kube, directory, ledgerUrl, catalogFile, valkeyUrl } = options;
  const serviceAccount = join(directory, "service-account");
  mkdirSync(serviceAccount);
  copyFileSync(apiserver.etcd.authority, join(serviceAccount, "ca.crt"));
  writeFileSync(join(serviceAccount, "token"), await serviceAccountToken(kube));
  const { hostname, port: kubePort } = new URL(apiserver.url);
  const [port = 0, metricsPort = 0] = await freePorts(2);
  const keyFile = join(directory, "token-key.pem");
  writeTokenKey(keyFile);
  const child = startNode("api-server/src/main.ts", [], {
    NODE_OPTIONS,
    SLIPWAY_LEDGER_URL: ledgerUrl,
    SLIPWAY_CATALOG_FILE: catalogFile,
    SLIPWAY_TOKEN_KEY_FILE: keyFile,
    ...(valkeyUrl === undefined ? {} : { SLIPWAY_VALKEY_URL: valkeyUrl }),
    SLIPWAY_RATE_LIMIT_SCALE: "1000000000",
    SLIPWAY_LISTEN_ADDRESS: "127.0.0.1",
    SLIPWAY_PORT: String(port),
    SLIPWAY_METRICS_PORT: String(metricsPort),
    SLIPWAY_LOG_LEVEL: "warn",
    SLIPWAY_SERVICE_ACCOUNT_DIR: serviceAccount,
    KUBERNETES_SERVICE_HOST: hostname,
    KUBERNETES_SERVICE_PORT: kubePort,
  });
  const metrics = `http://127.0.0.1:${metricsPort}`;
  await waitFor("the API server", 60_000, async () => (await fetch(`${metrics}/readyz`)).ok);
  return { process: child, url: `http://127.0.0.1:${port}`, metricsUrl: `${metrics}/metrics` };
}

/** Resolves once the API server has so many projects in memory. */
export function waitForProjects({ metricsUrl }: ApiProcess, count: number): Promise<unknown> {
  return waitFor(`${count} projects in memory`, 120_000, async () =>
    (await (await fetch(metricsUrl)).text()).includes(`\nslipway_api_projects ${count}\n`),
  );
}

const clusterRoleBindings = customResource(
  "rbac.authorization.k8s.io",
  "v1",
  "clusterrolebindings",
  "ClusterRoleBinding",
  false,
);

interface TokenRequest extends KubernetesObject {
  spec: { expirationSeconds: number };
  status?: { token: string };
}

/** A token of a service account that may do everything. */
async function serviceAccountToken(kube: KubeClient): Promise<string> {
  const metadata = { name: "api-server", namespace: "default" };
  await kube.create(resources.serviceAccounts, { metadata });
  await kube.create(clusterRoleBindings, {
    metadata: { name: metadata.name },
    roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "cluster-admin" },
    subjects: [{ kind: "ServiceAccount", ...metadata }],
  } as KubernetesObject);
  const body: TokenRequest = {
    apiVersion: "authentication.k8s.io/v1",
    kind: "TokenRequest",
    metadata,
    spec: { expirationSeconds: 3_600 },
  };
  const answer = await kube.create<TokenRequest>(resources.serviceAccounts, body, { subresource: "token" });
  return answer.status?.token ?? "";
}
