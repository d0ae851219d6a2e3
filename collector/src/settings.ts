import { type AnalyticsSettings, analyticsVariables, settingsFrom } from "@slipway/analytics";
import type { KubeletAddress } from "@slipway/controller-runtime";
import {
  addressList,
  ConfigError,
  dnsLabel,
  type Environment,
  listenAddress,
  logLevel,
  parseSettings,
  portNumber,
} from "@slipway/process";
import { z } from "zod";
import { type TrustedProxies, trustedProxies } from "./client-address.ts";
import type { LogBoundsOptions } from "./log-bounds.ts";
import type { Source } from "./log-files.ts";

const positive = z.coerce.number().int().min(1);

const environment = z.object({
  ...analyticsVariables,
  SLIPWAY_ANALYTICS_URL: analyticsVariables.SLIPWAY_ANALYTICS_URL.unwrap(),
  SLIPWAY_COLLECTOR_POD_LOGS: z.string().min(1).default("/var/log/pods"),
  SLIPWAY_COLLECTOR_STATE: z.string().min(1).default("/var/lib/slipway/collector"),
  SLIPWAY_COLLECTOR_BUFFER_BYTES: z.coerce.number().int().min(1_000_000).default(536_870_912),
  SLIPWAY_COLLECTOR_KEEP_FREE_BYTES: z.coerce.number().int().min(0).default(1_073_741_824),
  SLIPWAY_COLLECTOR_CONTAINER: dnsLabel.default("traefik"),
  SLIPWAY_COLLECTOR_OTLP_PORT: portNumber.optional(),
  SLIPWAY_COLLECTOR_OTLP_TOKEN_FILE: z.string().min(1).optional(),
  SLIPWAY_COLLECTOR_LOGS: z.enum(["true", "false"]).default("false"),
  SLIPWAY_COLLECTOR_LOG_DAYS: positive.max(365).default(8),
  SLIPWAY_COLLECTOR_LOG_BUFFER_BYTES: z.coerce.number().int().min(1_000_000).default(268_435_456),
  SLIPWAY_COLLECTOR_LOG_PROJECT_LINES: positive.default(500),
  SLIPWAY_COLLECTOR_LOG_PROJECT_BYTES: positive.default(131_072),
  SLIPWAY_COLLECTOR_LOG_ORGANIZATION_LINES: positive.default(2_000),
  SLIPWAY_COLLECTOR_LOG_ORGANIZATION_BYTES: positive.default(524_288),
  SLIPWAY_COLLECTOR_LOG_ORGANIZATION_DAY_BYTES: positive.default(536_870_912),
  SLIPWAY_COLLECTOR_LOG_BURST_SECONDS: positive.default(60),
  SLIPWAY_COLLECTOR_METRICS: z.enum(["true", "false"]).default("false"),
  SLIPWAY_COLLECTOR_METRICS_SECONDS: z.coerce.number().int().min(15).max(30).default(30),
  SLIPWAY_COLLECTOR_METRICS_BUFFER_BYTES: z.coerce.number().int().min(1_000_000).default(67_108_864),
  SLIPWAY_NODE_ADDRESS: z.union([z.ipv4(), z.ipv6()], "must be an IP address").optional(),
  SLIPWAY_KUBELET_PORT: portNumber.default(10_250),
  SLIPWAY_KUBELET_CA_FILE: z.string().min(1).optional(),
  SLIPWAY_NODE_NAME: z.string().min(1).max(253).optional(),
  SLIPWAY_INGRESS_NAMESPACE: dnsLabel.default("slipway-ingress"),
  SLIPWAY_NAMESPACE: z.string().min(1).default("slipway-system"),
  SLIPWAY_TRUSTED_PROXIES: addressList.default([]),
  SLIPWAY_LOG_LEVEL: logLevel.default("info"),
  SLIPWAY_LISTEN_ADDRESS: listenAddress.default("0.0.0.0"),
  SLIPWAY_METRICS_PORT: portNumber.default(9090),
});

/** How the logs of projects' instances are kept. */
export interface LogSettings {
  /** Days for which the store keeps them: the longest of all plans. */
  days: number;
  bounds: LogBoundsOptions;
}

/** How what instances use is sampled. */
export interface MetricsSettings {
  intervalMs: number;
  /** Where this node's kubelet listens. */
  kubelet: KubeletAddress;
  /** Whose certificate it must have; without a file that of the cluster's own authority. */
  trust: { caFile?: string; verify: true };
}

/** Settings of one collector. */
export interface CollectorSettings {
  store: AnalyticsSettings;
  /** The kubelet's folder of pods' logs. */
  podLogs: string;
  /** Folder of the batches, which must outlive the pod. */
  stateFolder: string;
  /** Bytes of batches from which on nothing more is read. */
  maxBufferBytes: number;
  /** Bytes of the disk that the batches leave free. */
  keepFreeBytes: number;
  /** The ingress's containers. */
  source: Source;
  /** Port for logs and spans over OTLP; undefined: none are taken. */
  otlpPort: number | undefined;
  /** File with the token of those who send them; undefined: none is required. */
  otlpTokenFile: string | undefined;
  /** Bytes of batches of projects' logs from which on no more of those are read. */
  logBufferBytes: number;
  /** Undefined: logs of projects are not kept. */
  logs: LogSettings | undefined;
  /** Bytes of batches of samples from which on nothing is sampled. */
  metricsBufferBytes: number;
  /** Undefined: instances are not sampled. */
  metrics: MetricsSettings | undefined;
  /** The node whose pods are read; there where `logs` or `metrics` are. */
  node: string | undefined;
  systemNamespace: string;
  isTrusted: TrustedProxies;
  logLevel: string;
  listenAddress: string;
  metricsPort: number;
}

/**
 * Reads the settings from environment variables; an empty one counts as absent.
 * @throws ConfigError naming every variable that is missing or wrong, never its value
 */
export function collectorSettings(env: Environment): CollectorSettings {
  const e = parseSettings(environment, env);
  return {
    store: settingsFrom(e),
    podLogs: e.SLIPWAY_COLLECTOR_POD_LOGS,
    stateFolder: e.SLIPWAY_COLLECTOR_STATE,
    maxBufferBytes: e.SLIPWAY_COLLECTOR_BUFFER_BYTES,
    keepFreeBytes: e.SLIPWAY_COLLECTOR_KEEP_FREE_BYTES,
    source: { namespace: e.SLIPWAY_INGRESS_NAMESPACE, container: e.SLIPWAY_COLLECTOR_CONTAINER },
    otlpPort: e.SLIPWAY_COLLECTOR_OTLP_PORT,
    otlpTokenFile: e.SLIPWAY_COLLECTOR_OTLP_TOKEN_FILE,
    logBufferBytes: e.SLIPWAY_COLLECTOR_LOG_BUFFER_BYTES,
    logs: logSettings(e),
    metricsBufferBytes: e.SLIPWAY_COLLECTOR_METRICS_BUFFER_BYTES,
    metrics: metricsSettings(e),
    node: e.SLIPWAY_NODE_NAME,
    systemNamespace: e.SLIPWAY_NAMESPACE,
    isTrusted: trustedProxies(e.SLIPWAY_TRUSTED_PROXIES),
    logLevel: e.SLIPWAY_LOG_LEVEL,
    listenAddress: e.SLIPWAY_LISTEN_ADDRESS,
    metricsPort: e.SLIPWAY_METRICS_PORT,
  };
}

function logSettings(e: z.output<typeof environment>): LogSettings | undefined {
  if (e.SLIPWAY_COLLECTOR_LOGS === "false") {
    return undefined;
  }
  requireNode(e, "SLIPWAY_COLLECTOR_LOGS");
  return {
    days: e.SLIPWAY_COLLECTOR_LOG_DAYS,
    bounds: {
      project: {
        linesPerSecond: e.SLIPWAY_COLLECTOR_LOG_PROJECT_LINES,
        bytesPerSecond: e.SLIPWAY_COLLECTOR_LOG_PROJECT_BYTES,
      },
      organization: {
        linesPerSecond: e.SLIPWAY_COLLECTOR_LOG_ORGANIZATION_LINES,
        bytesPerSecond: e.SLIPWAY_COLLECTOR_LOG_ORGANIZATION_BYTES,
      },
      burstSeconds: e.SLIPWAY_COLLECTOR_LOG_BURST_SECONDS,
      organizationBytesPerDay: e.SLIPWAY_COLLECTOR_LOG_ORGANIZATION_DAY_BYTES,
    },
  };
}

function metricsSettings(e: z.output<typeof environment>): MetricsSettings | undefined {
  if (e.SLIPWAY_COLLECTOR_METRICS === "false") {
    return undefined;
  }
  requireNode(e, "SLIPWAY_COLLECTOR_METRICS");
  if (e.SLIPWAY_NODE_ADDRESS === undefined) {
    throw new ConfigError("SLIPWAY_NODE_ADDRESS is required with SLIPWAY_COLLECTOR_METRICS");
  }
  const caFile = e.SLIPWAY_KUBELET_CA_FILE;
  return {
    intervalMs: e.SLIPWAY_COLLECTOR_METRICS_SECONDS * 1000,
    kubelet: { host: e.SLIPWAY_NODE_ADDRESS, port: e.SLIPWAY_KUBELET_PORT },
    trust: { ...(caFile === undefined ? {} : { caFile }), verify: true },
  };
}

function requireNode(e: z.output<typeof environment>, variable: string): void {
  if (e.SLIPWAY_NODE_NAME === undefined) {
    throw new ConfigError(`SLIPWAY_NODE_NAME is required with ${variable}`);
  }
}
