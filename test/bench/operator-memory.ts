/**
 * `npm run bench:operator-memory`: resident memory of an operator that keeps 200 and then 2,000 public HTTP projects, and the time
 * that it takes to make their children, against a real etcd and kube-apiserver. There is no kubelet: no pods.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { KubeClient, resources } from "@slipway/controller-runtime";
import { loadKubeConfig } from "@slipway/controller-runtime/kube-config";
import { organizationNamespace } from "@slipway/crds";
import { startApiserver } from "../../hack/cluster/apiserver.ts";
import { root } from "../../hack/lib/paths.ts";
import { freePorts } from "../../hack/lib/ports.ts";
import { waitFor } from "../../hack/lib/wait.ts";
import { applyCrds } from "../kit/clusters/definitions.ts";
import { countQuotas } from "../kit/clusters/quotas.ts";
import { startNode } from "../kit/processes/node.ts";
import { startPostgres } from "../kit/servers/postgresql.ts";
import { createProjects, ORGANIZATION, prepareLedger, residentMiB } from "./setup.ts";

const directory = mkdtempSync(join(tmpdir(), "slipway-bench-"));
const cleanups: (() => unknown)[] = [() => rmSync(directory, { recursive: true, force: true })];
const namespace = organizationNamespace(ORGANIZATION);

async function bench(): Promise<void> {
  const [apiserver, postgres] = await Promise.all([startApiserver(), startPostgres()]);
  cleanups.push(apiserver.stop, postgres.stop);
  const kube = KubeClient.fromConfig(loadKubeConfig({ file: apiserver.kubeconfig }));
  cleanups.push(() => kube.close());
  await applyCrds(kube);
  cleanups.push(countQuotas(kube));
  await prepareLedger(postgres.url);
  await kube.create(resources.namespaces, { metadata: { name: "slipway-system" } });

  const [metricsPort = 0] = await freePorts(1);
  const operator = startNode("operator/src/main.ts", [], {
    SLIPWAY_LEDGER_URL: postgres.url,
    SLIPWAY_CATALOG_FILE: join(root, "charts/slipway/files/catalog.yaml"),
    SLIPWAY_NAMESPACE: "slipway-system",
    // No ingress controller runs here, whose class the operator would wait for.
    SLIPWAY_INGRESS_ALLOW_LIST: "none",
    SLIPWAY_EGRESS_DENIED_CIDRS: "10.0.0.0/8",
    SLIPWAY_METRICS_PORT: String(metricsPort),
    SLIPWAY_LOG_LEVEL: "error",
    KUBECONFIG: apiserver.kubeconfig,
  });
  cleanups.push(() => operator.kill("SIGKILL"));
  await waitFor("the organization's namespace", 60_000, async () => {
    const found = await kube.getOrUndefined(resources.namespaces, { name: namespace });
    return found?.metadata?.annotations?.["slipway.dev/guarded"] !== undefined;
  });
  console.log(`operator with no project: ${residentMiB(operator.pid as number).toFixed(0)} MiB`);

  let made = 0;
  for (const projects of [200, 2_000]) {
    const start = performance.now();
    await createProjects(kube, made, projects);
    made = projects;
    await waitFor(`children of ${projects} projects`, 600_000, async () => {
      const { items } = await kube.list(resources.ingresses, { namespace });
      return items.length === projects;
    });
    const seconds = ((performance.now() - start) / 1000).toFixed(0);
    const memory = residentMiB(operator.pid as number).toFixed(0);
    console.log(`operator with ${projects} projects: ${memory} MiB; their children stood after ${seconds} s`);
  }
}

try {
  await bench();
} finally {
  for (const cleanup of cleanups.reverse()) {
    await cleanup();
  }
}
