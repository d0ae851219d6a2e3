/** The operator's settings, read from the environment once, at start. */

import { isIP, isIPv6 } from "node:net";
import { allowedGitHosts, githubAppConfig, githubEnvironment } from "@slipway/git";
import {
  commaSeparated,
  dnsLabel,
  dnsName,
  type Environment,
  listOf,
  logLevel,
  parseSettings,
  portNumber,
} from "@slipway/process";
import { type TracingSettings, tracingSettings, tracingVariables } from "@slipway/process/tracing";
import { z } from "zod";
import { ALLOW_LISTS, type AllowList } from "./applications/access.ts";
import { OWN_ANNOTATIONS } from "./applications/access-list.ts";
import type { BuildConfig } from "./builds/mounted-files.ts";
import { type DatabaseConfig, OUTSIDE_TYPES } from "./databases/settings.ts";
import { parseCidr } from "./net/cidr.ts";
import { type Placement, placement } from "./workload/app.ts";

const cidrList = commaSeparated.transform((cidrs, context) => {
  for (const cidr of cidrs) {
    try {
      parseCidr(cidr);
    } catch (error) {
      context.addIssue({ code: "custom", message: (error as Error).message });
    }
  }
  return cidrs;
});

const portList = listOf(z.string().regex(/^[1-9][0-9]{0,4}$/, "must be ports")).transform((ports) =>
  ports.map(Number),
);

/** `ip` or `ip:port`, an IPv6 address with a port in brackets. */
const dnsServer = z.string().refine(
  (text) => {
    const [, bracketed, plain = text, port = "53"] =
      /^(?:\[(.+)\]|([^:]+))(?::([0-9]{1,5}))?$/.exec(text) ?? [];
    return (bracketed === undefined ? isIP(plain) > 0 : isIPv6(bracketed)) && Number(port) <= 65_535;
  },
  { message: "must be ip or ip:port" },
);

const annotations = z.string().transform((text, context) => {
  try {
    return z.record(z.string(), z.string()).parse(JSON.parse(text));
  } catch {
    context.addIssue({ code: "custom", message: "must be a JSON object of strings" });
    return z.NEVER;
  }
});

const pods = z
  .string()
  .transform((text, context) => {
    try {
      return JSON.parse(text) as unknown;
    } catch {
      context.addIssue({ code: "custom", message: "must be JSON" });
      return z.NEVER;
    }
  })
  .pipe(placement);

const variables = z.object({
  SLIPWAY_LEDGER_URL: z.url({ protocol: /^postgres(ql)?$/ }),
  SLIPWAY_CATALOG_FILE: z.string().min(1),
  SLIPWAY_DOMAIN_ZONE: dnsName.default("apps.localhost"),
  SLIPWAY_RESERVED_HOSTNAMES: listOf(dnsName).default([]),
  SLIPWAY_DNS_SERVERS: listOf(dnsServer).default([]),
  SLIPWAY_NAMESPACE: dnsLabel,
  POD_NAME: z.string().min(1).optional(),
  SLIPWAY_INGRESS_CLASS: dnsName.default("traefik"),
  SLIPWAY_INGRESS_NAMESPACE: dnsLabel.default("slipway-ingress"),
  SLIPWAY_INGRESS_ANNOTATIONS: annotations.default({}),
  SLIPWAY_INGRESS_ALLOW_LIST: z.enum(ALLOW_LISTS).default("traefik"),
  SLIPWAY_CERTIFICATE_ISSUER: dnsName.optional(),
  SLIPWAY_INGRESS_PROBE_URL: z.url({ protocol: /^https?$/ }).optional(),
  SLIPWAY_DNS_NAMESPACE: dnsLabel.default("kube-system"),
  SLIPWAY_EGRESS_DENIED_CIDRS: cidrList,
  SLIPWAY_ROLLOUT_DEADLINE_SECONDS: z.coerce.number().int().min(10).max(3_600).default(300),
  SLIPWAY_KUBELET_CA_FILE: z.string().min(1).optional(),
  SLIPWAY_KUBELET_VERIFY: z.enum(["true", "false"]).default("true"),
  SLIPWAY_JOB_RUN_LIMIT_SECONDS: z.coerce.number().int().min(60).max(3_600).default(3_600),
  SLIPWAY_JOB_ADMISSION_WINDOW_SECONDS: z.coerce.number().int().min(1).max(3_600).default(120),
  SLIPWAY_JOB_START_DEADLINE_SECONDS: z.coerce.number().int().min(1).max(86_400).default(600),
  SLIPWAY_DATABASE_IMAGES_FILE: z.string().min(1).optional(),
  SLIPWAY_BACKUPS_FILE: z.string().min(1).optional(),
  SLIPWAY_BACKUPS_S3_DIR: z.string().min(1).optional(),
  SLIPWAY_BUILDS_FILE: z.string().min(1).optional(),
  SLIPWAY_REGISTRY_KEY_FILE: z.string().min(1).optional(),
  SLIPWAY_BUILD_TOOLS_DIR: z.string().min(1).optional(),
  SLIPWAY_GIT_ALLOWED_HOSTS: allowedGitHosts,
  SLIPWAY_GIT_CA_FILE: z.string().min(1).optional(),
  ...githubEnvironment,
  SLIPWAY_DATABASE_OUTSIDE: z.enum(OUTSIDE_TYPES).default("None"),
  SLIPWAY_PLAN_CHANGE_SECONDS: z.coerce.number().int().min(10).max(3_600).default(600),
  SLIPWAY_DATABASE_VOLUME_GRACE_SECONDS: z.coerce.number().int().min(0).max(31_536_000).default(86_400),
  SLIPWAY_DATABASE_HOST: z.union([dnsName, z.ipv4(), z.ipv6()]).optional(),
  SLIPWAY_TENANT_PODS: pods.optional(),
  SLIPWAY_DATABASE_PODS: pods.optional(),
  SLIPWAY_APISERVER_CIDRS: cidrList.default([]),
  SLIPWAY_APISERVER_PORTS: portList.default([443, 6443]),
  ...tracingVariables,
  SLIPWAY_LOG_LEVEL: logLevel.default("info"),
  SLIPWAY_METRICS_PORT: portNumber.default(9090),
});

const environment = variables.superRefine((e, context) => {
  const own = OWN_ANNOTATIONS[e.SLIPWAY_INGRESS_ALLOW_LIST];
  for (const name of own.filter((key) => key in e.SLIPWAY_INGRESS_ANNOTATIONS)) {
    const path = ["SLIPWAY_INGRESS_ANNOTATIONS"];
    context.addIssue({ code: "custom", path, message: `${name} is set by each project's access list` });
  }
  if (e.SLIPWAY_DATABASE_OUTSIDE === "NodePort" && e.SLIPWAY_DATABASE_HOST === undefined) {
    const path = ["SLIPWAY_DATABASE_HOST"];
    context.addIssue({ code: "custom", path, message: "must name where node ports are reached" });
  }
  if (e.SLIPWAY_BUILDS_FILE !== undefined && e.SLIPWAY_REGISTRY_KEY_FILE === undefined) {
    const path = ["SLIPWAY_REGISTRY_KEY_FILE"];
    context.addIssue({
      code: "custom",
      path,
      message: "must name the key that signs tokens of the registry",
    });
  }
});

/** Settings of one operator process. */
export interface Config {
  ledgerUrl: string;
  catalogFile: string;
  /** Zone of default domains. */
  domainZone: string;
  /** Hostnames that no project may have; a single label means `<label>.<zone>`. */
  reservedHostnames: string[];
  /** `ip` or `ip:port` of the name servers that prove the ownership of custom domains; none for the system's. */
  dnsServers: string[];
  /** Where the leader Lease lives. */
  namespace: string;
  /** Holder identity of the Lease; absent outside a cluster. */
  podName?: string;
  ingress: {
    className: string;
    /** Namespace of the controller's pods. */
    namespace: string;
    /** On every project's Ingress. */
    annotations: Readonly<Record<string, string>>;
    /** How the ingress controller enforces access lists. */
    allowList: AllowList;
    /** ClusterIssuer of cert-manager for custom domains; without one they are served plain. */
    certificateIssuer?: string;
    /** Address of the ingress inside the cluster; without one a route counts as ready once it is written. */
    probeUrl?: string;
  };
  dnsNamespace: string;
  egressDeniedCidrs: string[];
  /** Longest time of a rollout without progress before it counts as failed, in seconds. */
  rolloutDeadlineSeconds: number;
  /** Whom the certificates of nodes' kubelets are believed from. */
  kubelet: {
    /** PEM file of their authority; the cluster's own without it. */
    caFile?: string;
    verify: boolean;
  };
  jobs: {
    /** Longest time of a run from its container's start, in seconds. */
    runLimitSeconds: number;
    /** Seconds after its minute in which an occurrence may still be admitted. */
    admissionWindowSeconds: number;
    /** Seconds in which the container of a run must have started once it was admitted. */
    startDeadlineSeconds: number;
  };
  /** Where pods of applications and jobs run. */
  tenantPods?: Placement;
  databases: DatabaseConfig & {
    /** YAML with the engines' images; without it no database can be created. */
    imagesFile?: string;
  };
  /** YAML with the settings of backups; without it there are none. */
  backupsFile?: string;
  /** Folder with the keys of the bucket that backups are kept in. */
  backupsS3Dir?: string;
  /** What builds need; without it there are none. */
  builds?: BuildConfig;
  /** Where traces are exported; without it there are none. */
  tracing?: TracingSettings;
  logLevel: string;
  metricsPort: number;
}

/**
 * Reads the settings from environment variables. An empty variable counts as absent.
 * @throws ConfigError naming every variable that is missing or wrong, never its value.
 */
export function loadConfig(env: Environment): Config {
  // Denying nothing must be explicit: an operator without the variable would open nodes and pods to tenants.
  const e = parseSettings(environment, env, ["SLIPWAY_EGRESS_DENIED_CIDRS"]);
  return {
    ledgerUrl: e.SLIPWAY_LEDGER_URL,
    catalogFile: e.SLIPWAY_CATALOG_FILE,
    domainZone: e.SLIPWAY_DOMAIN_ZONE,
    reservedHostnames: e.SLIPWAY_RESERVED_HOSTNAMES,
    dnsServers: e.SLIPWAY_DNS_SERVERS,
    namespace: e.SLIPWAY_NAMESPACE,
    podName: e.POD_NAME,
    ingress: {
      className: e.SLIPWAY_INGRESS_CLASS,
      namespace: e.SLIPWAY_INGRESS_NAMESPACE,
      annotations: e.SLIPWAY_INGRESS_ANNOTATIONS,
      allowList: e.SLIPWAY_INGRESS_ALLOW_LIST,
      certificateIssuer: e.SLIPWAY_CERTIFICATE_ISSUER,
      probeUrl: e.SLIPWAY_INGRESS_PROBE_URL,
    },
    dnsNamespace: e.SLIPWAY_DNS_NAMESPACE,
    egressDeniedCidrs: e.SLIPWAY_EGRESS_DENIED_CIDRS,
    rolloutDeadlineSeconds: e.SLIPWAY_ROLLOUT_DEADLINE_SECONDS,
    kubelet: { caFile: e.SLIPWAY_KUBELET_CA_FILE, verify: e.SLIPWAY_KUBELET_VERIFY === "true" },
    jobs: {
      runLimitSeconds: e.SLIPWAY_JOB_RUN_LIMIT_SECONDS,
      admissionWindowSeconds: e.SLIPWAY_JOB_ADMISSION_WINDOW_SECONDS,
      startDeadlineSeconds: e.SLIPWAY_JOB_START_DEADLINE_SECONDS,
    },
    tenantPods: e.SLIPWAY_TENANT_PODS,
    databases: {
      pods: e.SLIPWAY_DATABASE_PODS,
      imagesFile: e.SLIPWAY_DATABASE_IMAGES_FILE,
      outside: { type: e.SLIPWAY_DATABASE_OUTSIDE, host: e.SLIPWAY_DATABASE_HOST },
      planChangeMs: e.SLIPWAY_PLAN_CHANGE_SECONDS * 1_000,
      volumeGraceMs: e.SLIPWAY_DATABASE_VOLUME_GRACE_SECONDS * 1_000,
      apiserver:
        e.SLIPWAY_APISERVER_CIDRS.length > 0
          ? { cidrs: e.SLIPWAY_APISERVER_CIDRS, ports: e.SLIPWAY_APISERVER_PORTS }
          : undefined,
    },
    backupsFile: e.SLIPWAY_BACKUPS_FILE,
    backupsS3Dir: e.SLIPWAY_BACKUPS_S3_DIR,
    builds:
      e.SLIPWAY_BUILDS_FILE === undefined
        ? undefined
        : {
            file: e.SLIPWAY_BUILDS_FILE,
            registryKeyFile: e.SLIPWAY_REGISTRY_KEY_FILE ?? "",
            toolsDir: e.SLIPWAY_BUILD_TOOLS_DIR,
            gitAllowedHosts: e.SLIPWAY_GIT_ALLOWED_HOSTS,
            gitCaFile: e.SLIPWAY_GIT_CA_FILE,
            githubApp: githubAppConfig(e),
          },
    tracing: tracingSettings(e),
    logLevel: e.SLIPWAY_LOG_LEVEL,
    metricsPort: e.SLIPWAY_METRICS_PORT,
  };
}
