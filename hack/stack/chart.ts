import { join } from "node:path";
import { stringify } from "yaml";
import type { Cluster } from "../cluster/cluster.ts";
import { run } from "../lib/exec.ts";
import { writeFileAtomic } from "../lib/files.ts";
import { confDir, root } from "../lib/paths.ts";

/** Release name and namespace of Slipway wherever these scripts install it. */
export const release = "slipway";
export const systemNamespace = "slipway-system";
export const domainZone = "apps.localhost";
const ingressNamespace = "slipway-ingress";
const deployments = ["slipway-operator", "slipway-api-server"];

export interface ChartInput {
  images: { operator: string; apiServer: string; ledger: string; valkey: string };
  rateLimitScale: number;
  /** Addresses of the cluster; undefined where these scripts do not know them, and the chart's defaults stand. */
  networks: Cluster["networks"];
  /** How projects' access lists reach the cluster's ingress. */
  allowList: "traefik" | "none";
  /** Whether the cluster's ingress is the one of hack/cluster/addons, with an entry point of its own for the API. */
  ownIngress: boolean;
}

/** Values of charts/slipway for a stack made by hack/up.sh. */
export function chartValues(input: ChartInput): Record<string, unknown> {
  const { networks } = input;
  const apiIngress = {
    enabled: input.ownIngress,
    annotations: { "traefik.ingress.kubernetes.io/router.entrypoints": "api" },
    host: "",
  };
  return {
    images: { ...input.images, pullPolicy: "IfNotPresent" },
    domainZone,
    rateLimitScale: input.rateLimitScale,
    // Images are near and nobody waits for a slow start: a test that a rollout fails need not take minutes.
    rolloutDeadlineSeconds: 90,
    ingress: {
      className: "traefik",
      namespace: ingressNamespace,
      allowList: input.allowList,
      ...(input.ownIngress ? { probeUrl: `http://traefik.${ingressNamespace}` } : {}),
    },
    apiServer: { ingress: apiIngress, ...(networks ? { trustedProxies: [networks.pods] } : {}) },
    ...(networks
      ? { networkPolicy: { deniedCidrs: networks.denied, apiserver: { cidrs: networks.apiserver } } }
      : {}),
  };
}

/** What a cluster's ingress can do about access lists: those of these scripts all run Traefik with its definitions. */
export async function allowListOf({ kind, kubectl }: Cluster): Promise<ChartInput["allowList"]> {
  if (kind !== "context") return "traefik";
  const found = await kubectl(["get", "crd", "middlewares.traefik.io", "--ignore-not-found", "-o", "name"]);
  return found.trim() === "" ? "none" : "traefik";
}

/**
 * Installs or upgrades the chart, and waits until both processes have rolled out. A release that an interrupted run
 * left half done is taken over.
 */
export async function installChart(cluster: Cluster, input: ChartInput, log: string): Promise<void> {
  const values = join(confDir, "values.yaml");
  await writeFileAtomic(values, stringify(chartValues(input)));
  await forgetPending(cluster, log);
  const args = ["upgrade", "--install", release, join(root, "charts/slipway"), "-n", systemNamespace];
  args.push(
    "--create-namespace",
    "-f",
    values,
    "--history-max",
    "5",
    "--timeout",
    "5m",
    "--wait",
    "--take-ownership",
  );
  try {
    await run(cluster.helm, [...args, "--kubeconfig", cluster.kubeconfig], { log });
    for (const name of deployments) {
      const rollout = ["rollout", "status", `deployment/${name}`, "--timeout=180s"];
      await cluster.kubectl(["-n", systemNamespace, ...rollout], { log });
    }
  } catch (error) {
    await noteState(cluster, log);
    throw error;
  }
}

/** Writes what the platform's pods say into the log, where the reason for a failed rollout is found. */
async function noteState(cluster: Cluster, log: string): Promise<void> {
  const kubectl = (args: string[]) =>
    cluster.kubectl(["-n", systemNamespace, ...args], { log }).catch(() => "");
  await kubectl(["get", "pods", "-o", "wide"]);
  await kubectl(["get", "events", "--sort-by=.lastTimestamp"]);
  for (const name of deployments) {
    await kubectl(["logs", `deployment/${name}`, "--all-containers", "--prefix", "--tail=20"]);
  }
}

/** Removes the record of an upgrade that never ended: helm refuses every later one because of it. */
async function forgetPending(cluster: Cluster, log: string): Promise<void> {
  const selector = `owner=helm,name=${release},status in (pending-install,pending-upgrade,pending-rollback)`;
  await cluster.kubectl(["-n", systemNamespace, "delete", "secret", "-l", selector, "--ignore-not-found"], {
    log,
  });
}
