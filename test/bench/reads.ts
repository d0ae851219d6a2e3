import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { loadKubeConfig } from "@slipway/controller-runtime/kube-config";
import { organizationNamespace } from "@slipway/crds";
import type { TestApiserver } from "../../hack/cluster/apiserver.ts";
import { root } from "../../hack/lib/paths.ts";
import { freePorts } from "../../hack/lib/ports.ts";
import { waitFor } from "../../hack/lib/wait.ts";
import { startNode } from "../kit/processes/node.ts";
import { startValkey } from "../kit/servers/valkey.ts";
import { prepareApiBench, waitForProjects } from "./api-process.ts";
import { type Measurement, type Target, takeTurns } from "./load.ts";
import { report } from "./report.ts";
import { createRunningProjects, ORGANIZATION, projectId, residentMiB } from "./setup.ts";

/**
 * `node test/bench/reads.ts`: GET /v1/project/:id with authentication, beside a bare Fastify that answers the same
 * JSON and beside kube-apiserver's GET of the same object, in turns within one run, each server in its own process; for several
 * numbers of projects. Ends with code 1 when a goal of the design is missed.
 */
const { values } = parseArgs({
  options: {
    rounds: { type: "string", default: "5" },
    seconds: { type: "string", default: "4" },
    connections: { type: "string", default: "20" },
    // Of one organization, ascending: the API server goes through all of them in one life.
    projects: { type: "string", default: "200,2000,10000" },
    // Counts rate limits in a Valkey, as with several replicas; the goals are those of a single one.
    valkey: { type: "boolean", default: false },
    catalog: { type: "string", default: join(root, "charts/slipway/files/catalog.yaml") },
  },
});
const rounds = Number(values.rounds);
const options = { seconds: Number(values.seconds), connections: Number(values.connections) };

const cleanups: (() => unknown)[] = [];

async function bench(): Promise<boolean> {
  const { apiserver, etcd, key, directory, start } = await prepareApiBench(cleanups);
  const shared = values.valkey ? await startValkey() : undefined;
  if (shared) {
    cleanups.push(shared.stop);
  }
  const api = await start({ catalogFile: values.catalog, valkeyUrl: shared?.url });
  const path = `/v1/project/${projectId(7)}`;
  const slipway: Target = {
    name: "slipway",
    url: `${api.url}${path}`,
    headers: { "x-api-key": key },
    pid: api.process.pid,
    metricsUrl: api.metricsUrl,
  };

  const results = [];
  let known = 0;
  let bare: Target | undefined;
  for (const projects of values.projects.split(",").map(Number)) {
    await createRunningProjects(etcd, known, projects);
    known = projects;
    await waitForProjects(api, projects);
    bare ??= await startBare(
      directory,
      path,
      await (await fetch(slipway.url, { headers: slipway.headers })).text(),
    );
    const before = residentMiB(api.process.pid as number);
    const targets = results.length === 0 ? [slipway, bare, kubeTarget(apiserver)] : [slipway, bare];
    const measured = (await takeTurns(targets, rounds, options)) as [Measurement, Measurement, Measurement?];
    const loaded = residentMiB(api.process.pid as number);
    results.push({ projects, measured, memory: { before, loaded } });
  }
  return report(
    `median of ${rounds} rounds of ${options.seconds} s, ${options.connections} connections`,
    results,
  );
}

/** @param answer what it is to answer, byte for byte */
async function startBare(directory: string, path: string, answer: string): Promise<Target> {
  const [port = 0] = await freePorts(1);
  const answerFile = join(directory, "answer.json");
  writeFileSync(answerFile, answer);
  const server = startNode("test/bench/bare-server.ts", [answerFile, String(port)]);
  cleanups.push(() => server.kill("SIGKILL"));
  const url = `http://127.0.0.1:${port}`;
  const bareAnswer = await waitFor("bare Fastify", 30_000, async () => (await fetch(`${url}${path}`)).text());
  if (bareAnswer !== answer) {
    throw new Error("the bare server does not answer the same JSON");
  }
  return { name: "bare Fastify", url: `${url}${path}`, pid: server.pid, metricsUrl: `${url}/metrics` };
}

/** The same object from kube-apiserver. */
function kubeTarget({ url, kubeconfig }: TestApiserver): Target {
  const config = loadKubeConfig({ file: kubeconfig });
  const user = config.getCurrentUser();
  const cluster = config.getCurrentCluster();
  const pem = (file: string | undefined, data: string | undefined): Buffer =>
    data ? Buffer.from(data, "base64") : readFileSync(file ?? "");
  return {
    name: "kube-apiserver",
    url: `${url}/apis/slipway.dev/v1alpha1/namespaces/${organizationNamespace(ORGANIZATION)}/projects/${projectId(7)}`,
    tls: {
      cert: pem(user?.certFile, user?.certData),
      key: pem(user?.keyFile, user?.keyData),
      ca: pem(cluster?.caFile, cluster?.caData),
    },
  };
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
