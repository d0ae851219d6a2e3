import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { KubeClient } from "@slipway/controller-runtime";
import { loadKubeConfig } from "@slipway/controller-runtime/kube-config";
import { organizationNamespace } from "@slipway/crds";
import { startApiserver } from "../../hack/cluster/apiserver.ts";
import { root } from "../../hack/lib/paths.ts";
import { freePorts } from "../../hack/lib/ports.ts";
import { waitFor } from "../../hack/lib/wait.ts";
import { startNode, writeTokenKey } from "../kit/processes/node.ts";
import { startPostgres } from "../kit/servers/postgresql.ts";
import { startValkey } from "../kit/servers/valkey.ts";
import { type Measurement, type Target, takeTurns } from "./load.ts";
import { report } from "./report.ts";
import {
  createRunningProjects,
  ORGANIZATION,
  prepareCluster,
  prepareLedger,
  projectId,
  residentMiB,
} from "./setup.ts";

/**
 * `node test/bench/reads.ts`: GET /v1/project/:id with authentication, beside a bare Fastify that answers the same
 * JSON and beside kube-apiserver's GET of the same object, in turns within one run, each server in its own process.
 * Ends with code 1 when a goal of the design is missed.
 */
const { values } = parseArgs({
  options: {
    rounds: { type: "string", default: "5" },
    seconds: { type: "string", default: "5" },
    connections: { type: "string", default: "20" },
    // Counts rate limits in a Valkey, as with several replicas; the goals are those of a single one.
    valkey: { type: "boolean", default: false },
    catalog: { type: "string", default: join(root, "charts/slipway/files/catalog.yaml") },
  },
});
const rounds = Number(values.rounds);
const options = { seconds: Number(values.seconds), connections: Number(values.connections) };

const directory = mkdtempSync(join(tmpdir(), "slipway-bench-"));
const cleanups: (() => unknown)[] = [() => rmSync(directory, { recursive: true, force: true })];

async function bench(): Promise<boolean> {
  const [apiserver, postgres] = await Promise.all([startApiserver(), startPostgres()]);
  cleanups.push(apiserver.stop, postgres.stop);
  const config = loadKubeConfig({ file: apiserver.kubeconfig });
  const kube = KubeClient.fromConfig(config);
  cleanups.push(() => kube.close());
  await prepareCluster(kube);
  const key = await prepareLedger(postgres.url);
  await createRunningProjects(kube, 0, 200);

  const shared = values.valkey ? await startValkey() : undefined;
  if (shared) {
    cleanups.push(shared.stop);
  }
  const [port = 0, metricsPort = 0, barePort = 0] = await freePorts(3);
  const keyFile = join(directory, "token-key.pem");
  writeTokenKey(keyFile);
  const api = startNode("api-server/src/main.ts", [], {
    SLIPWAY_LEDGER_URL: postgres.url,
    SLIPWAY_CATALOG_FILE: values.catalog,
    SLIPWAY_TOKEN_KEY_FILE: keyFile,
    ...(shared ? { SLIPWAY_VALKEY_URL: shared.url } : {}),
    SLIPWAY_RATE_LIMIT_SCALE: "1000000000",
    SLIPWAY_LISTEN_ADDRESS: "127.0.0.1",
    SLIPWAY_PORT: String(port),
    SLIPWAY_METRICS_PORT: String(metricsPort),
    SLIPWAY_LOG_LEVEL: "warn",
    KUBECONFIG: apiserver.kubeconfig,
  });
  cleanups.push(() => api.kill("SIGKILL"));
  await waitFor(
    "the API server",
    30_000,
    async () => (await fetch(`http://127.0.0.1:${metricsPort}/readyz`)).ok,
  );

  const id = projectId(7);
  const path = `/v1/project/${id}`;
  const slipway: Target = {
    name: "slipway",
    url: `http://127.0.0.1:${port}${path}`,
    headers: { "x-api-key": key },
    pid: api.pid,
  };
  const answer = await (await fetch(slipway.url, { headers: slipway.headers })).text();
  const answerFile = join(directory, "answer.json");
  writeFileSync(answerFile, answer);
  const bareServer = startNode("test/bench/bare-server.ts", [answerFile, String(barePort)]);
  cleanups.push(() => bareServer.kill("SIGKILL"));
  const bare: Target = {
    name: "bare Fastify",
    url: `http://127.0.0.1:${barePort}${path}`,
    pid: bareServer.pid,
  };
  const bareAnswer = await waitFor("bare Fastify", 30_000, async () => (await fetch(bare.url)).text());
  if (bareAnswer !== answer) {
    throw new Error("the bare server does not answer the same JSON");
  }

  const user = config.getCurrentUser();
  const cluster = config.getCurrentCluster();
  const pem = (file: string | undefined, data: string | undefined): Buffer =>
    data ? Buffer.from(data, "base64") : readFileSync(file ?? "");
  const kubeApiserver: Target = {
    name: "kube-apiserver",
    url: `${apiserver.url}/apis/slipway.dev/v1alpha1/namespaces/${organizationNamespace(ORGANIZATION)}/projects/${id}`,
    tls: {
      cert: pem(user?.certFile, user?.certData),
      key: pem(user?.keyFile, user?.keyData),
      ca: pem(cluster?.caFile, cluster?.caData),
    },
  };

  const memory200 = residentMiB(api.pid as number);
  const results = await takeTurns([slipway, bare, kubeApiserver], rounds, options);
  const memory200Loaded = residentMiB(api.pid as number);
  await createRunningProjects(kube, 200, 2_000);
  await waitFor("2,000 projects in memory", 60_000, async () => {
    const metrics = await (await fetch(`http://127.0.0.1:${metricsPort}/metrics`)).text();
    return /^slipway_api_projects 2000$/m.test(metrics);
  });
  const after2000 = await takeTurns([slipway, bare], rounds, options);
  const memory2000 = residentMiB(api.pid as number);

  return report({
    what: `median of ${rounds} rounds of ${options.seconds} s, ${options.connections} connections`,
    at200: results as [Measurement, Measurement, Measurement],
    at2000: after2000 as [Measurement, Measurement],
    memory: { before: memory200, at200: memory200Loaded, at2000: memory2000 },
  });
}

try {
  if (!(await bench())) {
    process.exitCode = 1;
  }
} finally {
  for (const cleanup of cleanups.reverse()) {
    await cleanup();
  }
}
