/**
 * What every process of the platform shares: settings, logger, clock, mounted files, ops server, concurrency limits, timeouts and
 * signatures of webhooks.
 * `tracing/` has the OpenTelemetry tracing, with an entry of its own. Depends on no other package.
 */

export {
  type Clock,
  type Random,
  sleep,
  systemClock,
  TimeoutError,
  type Timer,
  withTimeout,
} from "./clock.ts";
export { ConcurrencyLimiter, type ConcurrencyLimits, type Release } from "./concurrency-limiter.ts";
export { createLogger, type Logger, silentLogger } from "./logger.ts";
export { MountedFile, registerFiles } from "./mounted-file.ts";
export { type Check, type OpsServerOptions, startOpsServer } from "./ops-server.ts";
export { collectProcessMetrics } from "./process-metrics.ts";
export {
  addressList,
  ConfigError,
  commaSeparated,
  DNS_NAME,
  dnsLabel,
  dnsName,
  type Environment,
  jsonText,
  listenAddress,
  listOf,
  logLevel,
  parseSettings,
  portNumber,
} from "./settings.ts";
export { shutdownSignal } from "./shutdown-signal.ts";
export {
  isSignedByStripe,
  type ReceivedWebhook,
  SIGNATURE_TOLERANCE_SECONDS,
  type SignedContent,
  signedHeaders,
  verifiedStandardId,
} from "./webhook-signatures.ts";
