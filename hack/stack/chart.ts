import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { parse, stringify } from "yaml";
import { z } from "zod";
import { builderSeccompProfile } from "../cluster/builds/seccomp.ts";
import type { Cluster } from "../cluster/cluster.ts";
import type { DatabaseValues } from "../images/databases.ts";
import { run } from "../lib/exec.ts";
import { writeFileAtomic } from "../lib/files.ts";
import { confDir, root } from "../lib/paths.ts";
import { say, UserError } from "../lib/steps.ts";
import { isMapping, knownValues, valuesSchema } from "./known-values.ts";

/** Release name and namespace of Slipway wherever these scripts install it. */
export const release = "slipway";
export const systemNamespace = "slipway-system";
export const domainZone = "apps.localhost";
/** Secret of the platform's namespace with what webhooks of payments are signed with, in both forms. */
export const paymentSecrets = { name: "slipway-payment-secrets", key: "secrets" } as const;
const ingressNamespace = "slipway-ingress";
const deployments = ["slipway-operator", "slipway-api-server", "slipway-admin"];

/** What the chart needs of builds. Authorities are PEM. */
export interface BuildsOfChart {
  /** The builder's. */
  image: string;
  registry: { host: string; ca: string };
  /** The stack's own Git server, whose address is private, and where it reaches the API. */
  git: { host: string; ca: string; hookUrl: string | undefined };
  baseImages: Record<string, unknown>;
  /** Those that steps of builds trust; empty for their images' own. */
  ca: string;
  toolsSecret: string;
}

export interface ChartInput {
  images: {
    operator: string;
    apiServer: string;
    ledger: string;
    /** Of a ledger with two instances alone. */
    ledgerPatroni?: string;
    valkey: string;
    analytics: string;
  };
  rateLimitScale: number;
  /** Addresses of the cluster; undefined where these scripts do not know them, and the chart's defaults apply. */
  networks: Cluster["networks"];
  /** What builds need; undefined where these scripts do not provide it. */
  builds: BuildsOfChart | undefined;
  /** Where the collector of network analytics finds and keeps what it needs; undefined: there is none. */
  collector: Cluster["collector"];
  /** How projects' access lists reach the cluster's ingress. */
  allowList: "traefik" | "none";
  /** Whether the cluster's own authority has signed its kubelets' certificates. */
  kubeletsVerified: boolean;
  /** Whether the cluster's ingress is the one of hack/cluster/addons, with an entry point of its own for the API. */
  ownIngress: boolean;
  databases: {
    images: DatabaseValues;
    /** Where node ports are reached; undefined where these scripts do not know, and databases stay inside. */
    host: string | undefined;
  };
}

/** Values of charts/slipway for a stack of hack/up.sh. */
export function chartValues(input: ChartInput): Record<string, unknown> {
  const { networks, databases, builds } = input;
  const apiIngress = {
    enabled: input.ownIngress,
    annotations: { "traefik.ingress.kubernetes.io/router.entrypoints": "api" },
    host: "",
  };
  return {
    images: { ...input.images, pullPolicy: "IfNotPresent" },
    domainZone,
    rateLimitScale: input.rateLimitScale,
    catalogRequests: "small",
    // Images are near and nobody waits for a slow start: a test that a rollout fails need not take minutes.
    rolloutDeadlineSeconds: 90,
    ingress: {
      className: "traefik",
      namespace: ingressNamespace,
      allowList: input.allowList,
      ...(input.ownIngress ? { probeUrl: `http://traefik.${ingressNamespace}` } : {}),
    },
    // The least there is: tests of sleep wait for it. None sleeps that has not chosen to.
    ...(input.ownIngress && input.collector
      ? { catalogSleepAfterSeconds: { basic: 10 }, sleep: { enabled: true, resources: share("20m") } }
      : {}),
    kubelet: { verify: input.kubeletsVerified },
    databases: {
      images: databases.images,
      ...(databases.host ? { outside: { type: "NodePort", host: databases.host } } : {}),
    },
    ...(builds
      ? {
          git: gitValues(builds),
          webhooks: webhookValues(builds),
          email: emailValues(builds),
          builds: buildsValues(builds),
          billing: {
            payments: {
              stripe: { existingSecret: paymentSecrets },
              generic: { existingSecret: paymentSecrets },
            },
          },
        }
      : {}),
    // Small, and kept for the shortest time: data of the embedded cluster is for trials.
    backups: {
      enabled: true,
      store: "volume",
      volume: { size: "5Gi" },
      retentionDays: 1,
      // None but those that are requested: at half past two all databases of a test run would be backed up together.
      schedule: "",
      verifySchedule: "",
    },
    // Tests report requests over OTLP, of projects of their own.
    ...(input.collector
      ? { analytics: analyticsValues(input.collector), requestScaling: { besideOtlp: true } }
      : {}),
    operator: { resources: share("200m") },
    ledger: { embedded: { resources: share("100m") } },
    apiServer: {
      resources: share("100m"),
      ingress: apiIngress,
      ...(networks ? { trustedProxies: [networks.pods] } : {}),
    },
    ...(networks
      ? {
          networkPolicy: {
            deniedCidrs: networks.denied,
            apiserver: { cidrs: networks.apiserver },
            kubelet: { cidrs: networks.nodes },
            ...(builds
              ? {
                  git: { ports: [443, addressOf(builds.git.host).port] },
                  webhooks: { ports: [443, ...RECEIVER_PORTS] },
                }
              : {}),
          },
        }
      : {}),
  };
}

/** What the platform's pods get of processors that tenants' pods use up: a share by what all of them request. */
const share = (cpu: string) => ({ requests: { cpu } });

/** `address:port` in its parts. */
function addressOf(host: string): { address: string; port: number } {
  const { hostname, port } = new URL(`https://${host}`);
  return { address: hostname, port: Number(port) };
}

/** Small: the embedded cluster has the machine for itself, but so have all of its databases. */
function analyticsValues(collector: NonNullable<Cluster["collector"]>) {
  return {
    enabled: true,
    embedded: {
      resources: { requests: { cpu: "20m", memory: "256Mi" }, limits: { memory: "1536Mi" } },
      storage: { size: "5Gi" },
    },
    collector: {
      ...collector,
      otlp: { enabled: true },
      resources: { requests: { cpu: "10m", memory: "160Mi" }, limits: { memory: "384Mi" } },
    },
  };
}

function gitValues({ git }: BuildsOfChart) {
  return { allowedHosts: [git.host], ca: git.ca, ...(git.hookUrl ? { hookUrl: git.hookUrl } : {}) };
}

/** Ports of this machine at which tests receive deliveries, certified by the stack's authority. */
const RECEIVER_PORTS = [5010, 5011];

function webhookValues({ git }: BuildsOfChart) {
  const { address } = addressOf(git.host);
  return { allowedHosts: RECEIVER_PORTS.map((port) => `${address}:${port}`), ca: git.ca };
}

/** Port of this machine at which a test takes mails. */
const MAIL_PORT = 5012;

function emailValues({ git }: BuildsOfChart) {
  return {
    from: "slipway@stack.example",
    publicUrl: git.hookUrl ?? "https://stack.example",
    smtp: { host: addressOf(git.host).address, port: MAIL_PORT, ca: git.ca },
  };
}

function buildsValues({ image, registry, git, baseImages, ca, toolsSecret }: BuildsOfChart) {
  const own = addressOf(registry.host);
  const networkPolicy = { cidrs: [`${own.address}/32`], port: own.port };
  return {
    enabled: true,
    image,
    registry: { ...registry, networkPolicy },
    baseImages,
    ca,
    toolsSecret,
    // The machine's disk is not a cluster's.
    cache: { size: "4Gi", bytes: 3_000_000_000 },
    limits: { ephemeralRequest: "256Mi" },
    seccompProfile: builderSeccompProfile,
    opened: [own, addressOf(git.host)],
  };
}

/** What a cluster's ingress can do about access lists: those of these scripts all run Traefik with its definitions. */
export async function allowListOf({ kind, kubectl }: Cluster): Promise<ChartInput["allowList"]> {
  if (kind !== "context") {
    return "traefik";
  }
  const found = await kubectl(["get", "crd", "middlewares.traefik.io", "--ignore-not-found", "-o", "name"]);
  return found.trim() === "" ? "none" : "traefik";
}

/** The chart of these sources. */
export const ownChart = join(root, "charts/slipway");

/**
 * Installs or upgrades the chart, and waits until both processes have rolled out. A release that an interrupted run
 * left half done is taken over.
 * @param chart folder or archive
 * @param more values that replace those of the stack
 */
export async function installChart(
  cluster: Cluster,
  chart: string,
  input: ChartInput,
  more: Record<string, unknown>,
  log: string,
): Promise<void> {
  const values = join(confDir, "values.yaml");
  // The bundle of an earlier release may be installed. What others give is not changed: they want to know what it refuses.
  const { known, unknown } = knownValues(await valuesSchema(chart), chartValues(input));
  if (unknown.length > 0) {
    say(`the chart does not have ${unknown.join(", ")}: left out`);
  }
  await writeFileAtomic(values, stringify(merged(known, more)));
  await forgetPending(cluster, log);
  const args = ["upgrade", "--install", release, chart, "-n", systemNamespace];
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

/** The values that `SLIPWAY_VALUES` names. @throws UserError when the file is missing, or is not a YAML mapping */
export async function readValues(path: string | undefined): Promise<Record<string, unknown>> {
  if (path === undefined) {
    return {};
  }
  try {
    return z.record(z.string(), z.unknown()).parse(parse(await readFile(path, "utf8")));
  } catch (error) {
    throw new UserError(`SLIPWAY_VALUES: ${path} is not a file of chart values: ${(error as Error).message}`);
  }
}

/** Values with others that replace them, mapping by mapping, as Helm merges values files. Pure. */
export function merged(
  values: Record<string, unknown>,
  others: Record<string, unknown>,
): Record<string, unknown> {
  const entries = Object.entries(others).map(([key, other]) => {
    const value = values[key];
    return [key, isMapping(value) && isMapping(other) ? merged(value, other) : other];
  });
  return { ...values, ...Object.fromEntries(entries) };
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
