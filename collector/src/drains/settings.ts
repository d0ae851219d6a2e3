import { type AnalyticsSettings, analyticsVariables, settingsFrom } from "@slipway/analytics";
import { allowedHosts, isInCidrs } from "@slipway/git";
import {
  dnsLabel,
  type Environment,
  listenAddress,
  listOf,
  logLevel,
  parseSettings,
  portNumber,
} from "@slipway/process";
import { z } from "zod";
import { BOUNDS, type DrainBounds } from "./bounds.ts";

const environment = z.object({
  ...analyticsVariables,
  SLIPWAY_ANALYTICS_URL: analyticsVariables.SLIPWAY_ANALYTICS_URL.unwrap(),
  SLIPWAY_LOG_DRAINS_ALLOWED_HOSTS: allowedHosts,
  SLIPWAY_EGRESS_DENIED_CIDRS: listOf(z.union([z.cidrv4(), z.cidrv6()])).default([]),
  SLIPWAY_LOG_DRAINS_MAX_LAG_HOURS: z.coerce.number().int().min(1).max(168).default(168),
  SLIPWAY_NAMESPACE: dnsLabel.default("slipway-system"),
  SLIPWAY_LOG_LEVEL: logLevel.default("info"),
  SLIPWAY_LISTEN_ADDRESS: listenAddress.default("0.0.0.0"),
  SLIPWAY_METRICS_PORT: portNumber.default(9090),
});

/** Settings of the process that delivers log drains. */
export interface DrainSettings {
  store: AnalyticsSettings;
  /** `host:port` of receivers whose addresses may be private. */
  allowedHosts: ReadonlySet<string>;
  /** Whether an address is the cluster's own. */
  isRefused: (address: string) => boolean;
  bounds: DrainBounds;
  /** Where its Lease is. */
  namespace: string;
  logLevel: string;
  listenAddress: string;
  metricsPort: number;
}

/**
 * Reads the settings from environment variables; an empty one counts as absent.
 * @throws ConfigError naming every variable that is missing or wrong, never its value
 */
export function drainSettings(env: Environment): DrainSettings {
  const e = parseSettings(environment, env);
  return {
    store: settingsFrom(e),
    allowedHosts: new Set(e.SLIPWAY_LOG_DRAINS_ALLOWED_HOSTS),
    isRefused: isInCidrs(e.SLIPWAY_EGRESS_DENIED_CIDRS),
    bounds: { ...BOUNDS, maxLagMs: e.SLIPWAY_LOG_DRAINS_MAX_LAG_HOURS * 3_600_000 },
    namespace: e.SLIPWAY_NAMESPACE,
    logLevel: e.SLIPWAY_LOG_LEVEL,
    listenAddress: e.SLIPWAY_LISTEN_ADDRESS,
    metricsPort: e.SLIPWAY_METRICS_PORT,
  };
}
