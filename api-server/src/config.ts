import { type AnalyticsSettings, analyticsVariables, settingsFrom } from "@slipway/analytics";
import { allowedHosts, type GithubAppConfig, githubAppConfig, githubEnvironment } from "@slipway/git";
import {
  addressList,
  DNS_NAME,
  type Environment,
  listenAddress,
  listOf,
  logLevel,
  parseSettings,
  portNumber,
} from "@slipway/process";
import { type TracingSettings, tracingSettings, tracingVariables } from "@slipway/process/tracing";
import { z } from "zod";
import { type OidcIssuer, oidcIssuers } from "./auth/oidc-issuer.ts";
import type { ExecLimits } from "./exec/sessions.ts";
import type { PaymentProvider } from "./payments/secrets.ts";

const environment = z.object({
  SLIPWAY_LEDGER_URL: z.url({ protocol: /^postgres(ql)?$/ }),
  SLIPWAY_CATALOG_FILE: z.string().min(1),
  SLIPWAY_DATABASE_IMAGES_FILE: z.string().min(1).optional(),
  SLIPWAY_BACKUPS_FILE: z.string().min(1).optional(),
  SLIPWAY_TOKEN_KEY_FILE: z.string().min(1),
  SLIPWAY_OIDC_ISSUERS: oidcIssuers.default([]),
  SLIPWAY_GIT_ALLOWED_HOSTS: allowedHosts,
  SLIPWAY_GIT_CA_FILE: z.string().min(1).optional(),
  ...githubEnvironment,
  SLIPWAY_GIT_HOOK_URL: z
    .url({ protocol: /^https?$/ })
    .transform((url) => url.replace(/\/+$/, ""))
    .optional(),
  SLIPWAY_BUILDS_FILE: z.string().min(1).optional(),
  SLIPWAY_REGISTRY_KEY_FILE: z.string().min(1).optional(),
  SLIPWAY_DOMAIN_ZONE: z.string().max(190).regex(DNS_NAME, "must be a DNS name").default("apps.localhost"),
  SLIPWAY_VALKEY_URL: z.url({ protocol: /^(redis|valkey)s?$/ }).optional(),
  SLIPWAY_RESERVED_HOSTNAMES: listOf(
    z.string().max(253).regex(DNS_NAME, "must be host names, or labels in the zone"),
  ).default([]),
  SLIPWAY_RATE_LIMIT_SCALE: z.coerce.number().positive().default(1),
  SLIPWAY_TRUSTED_PROXIES: addressList.default([]),
  ...analyticsVariables,
  SLIPWAY_BILLING_METERING: z.enum(["true", "false"]).default("false"),
  SLIPWAY_STRIPE_SECRETS_FILE: z.string().min(1).optional(),
  SLIPWAY_STRIPE_TEST_MODE: z.enum(["true", "false"]).default("false"),
  SLIPWAY_PAYMENT_SECRETS_FILE: z.string().min(1).optional(),
  SLIPWAY_EMAIL: z.enum(["true", "false"]).default("false"),
  SLIPWAY_ANALYTICS_LOGS: z.enum(["true", "false"]).default("false"),
  SLIPWAY_ANALYTICS_METRICS: z.enum(["true", "false"]).default("false"),
  SLIPWAY_REQUEST_SCALING: z.enum(["true", "false"]).default("false"),
  ...tracingVariables,
  SLIPWAY_LOG_LEVEL: logLevel.default("info"),
  SLIPWAY_LISTEN_ADDRESS: listenAddress.default("0.0.0.0"),
  SLIPWAY_PORT: portNumber.default(8080),
  SLIPWAY_METRICS_PORT: portNumber.default(9090),
  SLIPWAY_EXEC_SESSIONS: z.coerce.number().int().min(1).max(1_000).default(64),
  SLIPWAY_EXEC_SESSION_SECONDS: z.coerce.number().int().min(1).max(86_400).default(14_400),
  SLIPWAY_EXEC_IDLE_SECONDS: z.coerce.number().int().min(1).max(86_400).default(900),
  SLIPWAY_DRAIN_SECONDS: z.coerce.number().min(0).max(300).default(5),
});

/** Settings of one API server process. */
export interface Config {
  ledgerUrl: string;
  catalogFile: string;
  /** Which databases the platform has images of; undefined: of none. */
  databaseImagesFile: string | undefined;
  /** Settings of backups; undefined: none are taken. */
  backupsFile: string | undefined;
  tokenKeyFile: string;
  /** Issuers whose tokens are user tokens too, beside the own ones. */
  oidcIssuers: OidcIssuer[];
  /** `host:port` of Git servers whose addresses may be private. */
  gitAllowedHosts: string[];
  /** PEM file of authorities that certify Git servers, beside the public ones. */
  gitCaFile: string | undefined;
  /** The platform's GitHub App; undefined: no accounts of GitHub are connected. */
  githubApp: GithubAppConfig | undefined;
  /** The address under which Git servers reach the API; undefined: no hooks are created. */
  gitHookUrl: string | undefined;
  /** Settings of builds; undefined: nothing is built. */
  buildsFile: string | undefined;
  /** PEM private key that signs tokens of the builds' registry. */
  registryKeyFile: string | undefined;
  domainZone: string;
  /** Hostnames that no project gets; a single label is a name in the zone. */
  reservedHostnames: string[];
  /** Where the replicas count rate limits together; undefined counts in memory, for a single replica. */
  valkeyUrl: string | undefined;
  rateLimitScale: number;
  /** Addresses and CIDRs whose X-Forwarded-For is trusted. */
  trustedProxies: string[];
  /** Where access events are kept; undefined: nowhere. */
  analytics: AnalyticsSettings | undefined;
  /** Whether projects' logs are collected into it, too. */
  keepsLogs: boolean;
  /** Whether what their instances use is. */
  keepsMetrics: boolean;
  /** Whether applications can be scaled by their requests. */
  scalesByRequests: boolean;
  /** Whether plans of applications, workers and databases are charged. */
  metersPlans: boolean;
  /** Files of the secrets that webhooks of payments are signed with, by provider; without one they are not received. */
  paymentSecretsFiles: Record<PaymentProvider, string | undefined>;
  /** Whether events of Stripe's test mode count as payments. */
  acceptsStripeTests: boolean;
  /** Whether there is a server that takes mails. */
  sendsEmail: boolean;
  /** Where traces go; undefined: there are none. */
  tracing: TracingSettings | undefined;
  logLevel: string;
  listenAddress: string;
  port: number;
  metricsPort: number;
  /** How long it serves on after SIGTERM, unready, until routers have noticed. */
  drainSeconds: number;
  /** Sessions of commands in instances: of this process, and how long one may take, or be silent. */
  exec: Pick<ExecLimits, "maxSessions" | "maxDurationMs" | "idleMs">;
}

/**
 * Reads the settings from environment variables; an empty one counts as absent.
 * @throws ConfigError naming every variable that is missing or wrong
 */
export function loadConfig(env: Environment): Config {
  const e = parseSettings(environment, env);
  return {
    ledgerUrl: e.SLIPWAY_LEDGER_URL,
    catalogFile: e.SLIPWAY_CATALOG_FILE,
    databaseImagesFile: e.SLIPWAY_DATABASE_IMAGES_FILE,
    backupsFile: e.SLIPWAY_BACKUPS_FILE,
    tokenKeyFile: e.SLIPWAY_TOKEN_KEY_FILE,
    oidcIssuers: e.SLIPWAY_OIDC_ISSUERS,
    gitAllowedHosts: e.SLIPWAY_GIT_ALLOWED_HOSTS,
    gitCaFile: e.SLIPWAY_GIT_CA_FILE,
    githubApp: githubAppConfig(e),
    gitHookUrl: e.SLIPWAY_GIT_HOOK_URL,
    buildsFile: e.SLIPWAY_BUILDS_FILE,
    registryKeyFile: e.SLIPWAY_REGISTRY_KEY_FILE,
    domainZone: e.SLIPWAY_DOMAIN_ZONE,
    reservedHostnames: e.SLIPWAY_RESERVED_HOSTNAMES,
    valkeyUrl: e.SLIPWAY_VALKEY_URL,
    rateLimitScale: e.SLIPWAY_RATE_LIMIT_SCALE,
    trustedProxies: e.SLIPWAY_TRUSTED_PROXIES,
    analytics: settingsFrom(e),
    metersPlans: e.SLIPWAY_BILLING_METERING === "true",
    paymentSecretsFiles: { stripe: e.SLIPWAY_STRIPE_SECRETS_FILE, generic: e.SLIPWAY_PAYMENT_SECRETS_FILE },
    acceptsStripeTests: e.SLIPWAY_STRIPE_TEST_MODE === "true",
    sendsEmail: e.SLIPWAY_EMAIL === "true",
    keepsLogs: e.SLIPWAY_ANALYTICS_LOGS === "true",
    keepsMetrics: e.SLIPWAY_ANALYTICS_METRICS === "true",
    scalesByRequests: e.SLIPWAY_REQUEST_SCALING === "true",
    tracing: tracingSettings(e),
    logLevel: e.SLIPWAY_LOG_LEVEL,
    listenAddress: e.SLIPWAY_LISTEN_ADDRESS,
    port: e.SLIPWAY_PORT,
    metricsPort: e.SLIPWAY_METRICS_PORT,
    drainSeconds: e.SLIPWAY_DRAIN_SECONDS,
    exec: {
      maxSessions: e.SLIPWAY_EXEC_SESSIONS,
      maxDurationMs: e.SLIPWAY_EXEC_SESSION_SECONDS * 1_000,
      idleMs: e.SLIPWAY_EXEC_IDLE_SECONDS * 1_000,
    },
  };
}
