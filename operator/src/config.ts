/** The operator's settings, read from the environment once, at start. */

import { type AnalyticsSettings, settingsFrom } from "@slipway/analytics";
import type { Shard } from "@slipway/controller-runtime";
import { githubAppConfig } from "@slipway/git";
import type { InvoiceTerms, OverdueTerms } from "@slipway/ledger";
import { type Environment, parseSettings } from "@slipway/process";
import { type TracingSettings, tracingSettings } from "@slipway/process/tracing";
import type { AllowList } from "./applications/access.ts";
import type { BuildConfig } from "./builds/mounted-files.ts";
import type { DatabaseConfig } from "./databases/settings.ts";
import { environment } from "./environment.ts";
import { type SmtpConfig, smtpConfig } from "./notifications/smtp-environment.ts";
import type { Placement } from "./workload/app.ts";

/** Name of the leader's Lease in the operator's namespace; the Leases of further shards end in their index. */
export const LEASE_NAME = "slipway-operator";

/** Where collectors answer about themselves, and how many requests they have counted. */
const COLLECTOR_PORT = 9090;

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
  /** The part of the organizations that this process reconciles. */
  shard: Shard;
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
  /** Projects of an organization that are rolled at a time because variables that they share have changed. */
  variableRollouts: number;
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
  /** Version of what the pods' templates of new deployments are made from. */
  podTemplateVersion: number;
  databases: DatabaseConfig & {
    /** YAML with the engines' images; without it no database can be created. */
    imagesFile?: string;
  };
  /** YAML with the settings of backups; without it there are none. */
  backupsFile?: string;
  /** Folder with the keys of the bucket that backups are kept in. */
  backupsS3Dir?: string;
  /** Folder with what backups of the platform report; where it is set, they may read organizations' Secrets. */
  platformBackupDir?: string;
  /** Whether log drains are delivered: the process that does it may read organizations' Secrets. */
  deliversLogDrains?: boolean;
  /** Where the counts of requests come from by which projects are scaled; without it none are. */
  requestScaling?: {
    /** Name of the ingress's containers. */
    ingressContainer: string;
    collectors: { namespace: string; port: number };
    /** Milliseconds between two readings. */
    intervalMs: number;
  };
  /** Whether projects sleep. There is an activator then, and requests are counted. */
  sleeps?: boolean;
  /** Whether plans of applications, workers and databases are metered. */
  metersPlans?: boolean;
  /** The terms of invoices; without them none are issued. */
  invoices?: InvoiceTerms | undefined;
  /** When overdue invoices block; without it they never do. */
  overdue?: OverdueTerms | undefined;
  /** What builds need; without it there are none. */
  builds?: BuildConfig;
  /** Receivers of webhooks: those whose addresses may be private, and authorities of their certificates beside the public ones. */
  webhooks: { allowedHosts: string[]; caFile?: string };
  /** Where requests and what instances use are kept; without it no alert is about them. */
  analytics?: AnalyticsSettings;
  /** The server that takes mails; without it none are sent. */
  smtp?: SmtpConfig;
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
    shard: { index: e.SLIPWAY_SHARD, count: e.SLIPWAY_SHARDS },
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
    variableRollouts: e.SLIPWAY_VARIABLE_ROLLOUTS,
    kubelet: { caFile: e.SLIPWAY_KUBELET_CA_FILE, verify: e.SLIPWAY_KUBELET_VERIFY === "true" },
    jobs: {
      runLimitSeconds: e.SLIPWAY_JOB_RUN_LIMIT_SECONDS,
      admissionWindowSeconds: e.SLIPWAY_JOB_ADMISSION_WINDOW_SECONDS,
      startDeadlineSeconds: e.SLIPWAY_JOB_START_DEADLINE_SECONDS,
    },
    tenantPods: e.SLIPWAY_TENANT_PODS,
    podTemplateVersion: e.SLIPWAY_POD_TEMPLATE_VERSION,
    databases: {
      pods: e.SLIPWAY_DATABASE_PODS,
      imagesFile: e.SLIPWAY_DATABASE_IMAGES_FILE,
      outside: { type: e.SLIPWAY_DATABASE_OUTSIDE, host: e.SLIPWAY_DATABASE_HOST },
      planChangeMs: e.SLIPWAY_PLAN_CHANGE_SECONDS * 1_000,
      previousPasswordMs: e.SLIPWAY_PREVIOUS_PASSWORD_SECONDS * 1_000,
      volumeGraceMs: e.SLIPWAY_DATABASE_VOLUME_GRACE_SECONDS * 1_000,
      apiserver:
        e.SLIPWAY_APISERVER_CIDRS.length > 0
          ? { cidrs: e.SLIPWAY_APISERVER_CIDRS, ports: e.SLIPWAY_APISERVER_PORTS }
          : undefined,
    },
    backupsFile: e.SLIPWAY_BACKUPS_FILE,
    backupsS3Dir: e.SLIPWAY_BACKUPS_S3_DIR,
    platformBackupDir: e.SLIPWAY_PLATFORM_BACKUP_DIR,
    deliversLogDrains: e.SLIPWAY_LOG_DRAINS === "true",
    requestScaling:
      e.SLIPWAY_REQUEST_SCALING === "true"
        ? {
            ingressContainer: e.SLIPWAY_COLLECTOR_CONTAINER,
            collectors: { namespace: e.SLIPWAY_COLLECTOR_NAMESPACE, port: COLLECTOR_PORT },
            intervalMs: 10_000,
          }
        : undefined,
    sleeps: e.SLIPWAY_SLEEP === "true",
    metersPlans: e.SLIPWAY_BILLING_METERING === "true",
    invoices: e.SLIPWAY_BILLING_INVOICES,
    overdue: e.SLIPWAY_BILLING_OVERDUE,
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
    analytics: settingsFrom(e),
    webhooks: { allowedHosts: e.SLIPWAY_WEBHOOK_ALLOWED_HOSTS, caFile: e.SLIPWAY_WEBHOOK_CA_FILE },
    smtp: smtpConfig(e),
    tracing: tracingSettings(e),
    logLevel: e.SLIPWAY_LOG_LEVEL,
    metricsPort: e.SLIPWAY_METRICS_PORT,
  };
}
