import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { customResource, KubeClient, type KubernetesObject, resources } from "@slipway/controller-runtime";
import { loadKubeConfig } from "@slipway/controller-runtime/kube-config";
import { annotations, GROUP, organizationNamespace, type Project, plurals, VERSION } from "@slipway/crds";
import { connectLedger, insertOrganization, type Ledger, migrateToLatest } from "@slipway/ledger";
import { stringify } from "yaml";
import { type Script, scriptArgs } from "../../../hack/cluster/kwok-config.ts";
import {
  startTestCluster,
  type TestCluster,
  type TestClusterOptions,
} from "../../../hack/cluster/test-cluster.ts";
import { waitFor } from "../../../hack/lib/wait.ts";
import { applyCrds } from "../clusters/definitions.ts";
import { startPostgres, type TestPostgres } from "../servers/postgresql.ts";

export const projectResource = customResource(GROUP, VERSION, plurals.Project, "Project");
export const jobRunResource = customResource(GROUP, VERSION, plurals.JobRun, "JobRun");

/** Everything that an operator needs to run jobs: a cluster with pods, and a ledger with organizations. No operator runs yet. */
export interface JobPlatform {
  cluster: TestCluster;
  /** With every permission, and without the proxies between the operator and the cluster. */
  client: KubeClient;
  postgres: TestPostgres;
  ledger: Ledger;
  /** Namespaces of the organizations `chaos0` on; the operator makes them. */
  namespaces: string[];
  /** Waits until the operator has made the organizations' namespaces and their policies, and their quotas are counted. */
  provisioned(): Promise<void>;
  stop(): Promise<void>;
}

/** Starts it on free ports of 127.0.0.1; takes about 20 s. Everything ends with this process. */
export async function startJobPlatform(
  options: TestClusterOptions & { organizations?: number } = {},
): Promise<JobPlatform> {
  const stops: (() => Promise<void>)[] = [];
  const stop = async () => {
    for (const end of stops.reverse()) {
      await end();
    }
  };
  try {
    const [cluster, postgres] = await Promise.all([
      startTestCluster(options).then((started) => {
        stops.push(() => started.stop());
        return started;
      }),
      startPostgres().then((started) => {
        stops.push(() => started.stop());
        return started;
      }),
    ]);
    const client = KubeClient.fromConfig(loadKubeConfig({ file: cluster.kubeconfig }), {
      userAgent: "observer",
    });
    stops.push(() => client.close());
    const ledger = connectLedger({ url: postgres.url, applicationName: "observer", statementTimeoutMs: 0 });
    stops.push(() => ledger.destroy());
    await migrateToLatest(ledger);
    const ids = Array.from({ length: options.organizations ?? 1 }, (_, index) => `chaos${index}`);
    for (const id of ids) {
      await insertOrganization(ledger, { id, name: id });
    }
    await client.create(resources.namespaces, { metadata: { name: "slipway-system" } });
    await applyCrds(client);
    // The quota controller lists only twice a minute which kinds there are to count, and once when it starts.
    await cluster.controllerManager.restart();
    const namespaces = ids.map(organizationNamespace);
    const provisioned = async () => {
      for (const name of namespaces) {
        await waitFor(`${name} to be provisioned`, 150_000, async () => {
          const found = await client.getOrUndefined<KubernetesObject>(resources.namespaces, { name });
          return found?.metadata?.annotations?.[annotations.guarded] !== undefined;
        });
      }
    };
    return { cluster, client, postgres, ledger, namespaces, provisioned, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Writes a kubeconfig without credentials for a server on loopback that requires none. @returns its path */
export async function writePlainKubeconfig(dir: string, name: string, server: string): Promise<string> {
  const path = join(dir, `${name}.kubeconfig`);
  await writeFile(
    path,
    stringify({
      apiVersion: "v1",
      kind: "Config",
      // Without TLS there is nothing to verify, and the client library requires that it is stated.
      clusters: [{ name, cluster: { server, "insecure-skip-tls-verify": true } }],
      users: [{ name, user: {} }],
      contexts: [{ name, context: { cluster: name, user: name } }],
      "current-context": name,
    }),
  );
  return path;
}

export const EVERY_MINUTE = "* * * * *";
/** A schedule that is not due while a test runs. */
export const NOT_NOW = "0 0 29 2 *";

/** A job whose pods follow the script, as `kubectl apply` would make it. */
export function jobProject(
  ref: { namespace: string; name: string },
  script: Script,
  cron = EVERY_MINUTE,
): Project {
  return {
    apiVersion: "slipway.dev/v1alpha1",
    kind: "Project",
    metadata: ref,
    spec: {
      type: "job",
      name: "chaos-job",
      plan: "job-basic",
      paymentMode: "per_minute",
      image: { url: "registry.example/team/job:1.0.0", isPublic: true },
      storage: { persistent: false, capacity: 1 },
      job: { cron, args: scriptArgs(script) },
    },
  };
}
