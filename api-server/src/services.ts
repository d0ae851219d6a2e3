import type { PublicRuntime } from "@slipway/builder";
import type { KubeClient } from "@slipway/controller-runtime";
import type { Catalog, SourcedVariable } from "@slipway/crds";
import type { Ledger } from "@slipway/ledger";
import type { Tracing } from "@slipway/process/tracing";
import type { Logger } from "pino";
import type { Analytics } from "./analytics/analytics.ts";
import type { AuditLog } from "./audit/log.ts";
import type { Authenticator } from "./auth/authenticator.ts";
import type { BackupDefaults } from "./backups/view.ts";
import type { BuildPlatform } from "./builds/platform.ts";
import type { SharedReads } from "./concurrency.ts";
import type { ExecSessions } from "./exec/sessions.ts";
import type { ConnectionOwners } from "./git/connection-owners.ts";
import type { RepositoryIds } from "./git/repository-ids.ts";
import type { GitServers } from "./git/servers.ts";
import type { ApiMetrics } from "./http/api-metrics.ts";
import type { JobRuns } from "./jobs/store.ts";
import type { LogFollower } from "./logs/follower.ts";
import type { Snapshots } from "./metrics/snapshots.ts";
import type { WebhookStore } from "./notifications/store.ts";
import type { UsageBook } from "./organizations/limits.ts";
import type { Payments } from "./payments/settings.ts";
import type { Projects } from "./projects/store.ts";
import type { Supports } from "./projects/supported-types.ts";
import type { RateLimiter } from "./rate-limit/limiter.ts";

/** Dependencies of the routes; created in `main.ts`, or by a test. */
export interface Services {
  logger: Logger;
  metrics: ApiMetrics;
  authenticator: Authenticator;
  rateLimiter: RateLimiter;
  /** Multiplies every limit of the policy table. */
  rateLimitScale: number;
  audit: AuditLog;
  catalog: { readonly current: Catalog };
  /** What the operator supports; nothing else can be created. */
  supports: Supports;
  projects: Projects;
  jobRuns: JobRuns;
  /** Settings of backups; undefined where backups are off. */
  backups: () => BackupDefaults | undefined;
  /** Git servers of tenants. */
  git: GitServers;
  /** Ids of repositories as clients see them. */
  repositoryIds: RepositoryIds;
  /** The organization of each Git connection. */
  connections: ConnectionOwners;
  /** Builds from Git, and their store. */
  builds: BuildPlatform;
  /** What applications can be built for. */
  runtimes: () => readonly PublicRuntime[];
  /** The newest metrics of databases. */
  snapshots: Snapshots;
  /** Analytics of requests to applications. */
  analytics: Analytics;
  /** Whether applications can be scaled by their requests. */
  scalesByRequests: boolean;
  /** Logs of applications as they are written. */
  logs: LogFollower;
  /** Commands that run in instances. */
  exec: ExecSessions;
  kube: KubeClient;
  /** Reads of projects' environment variables, by namespace and name. */
  environments: SharedReads<SourcedVariable[]>;
  /** Traces of requests; undefined where there are none. */
  tracing?: Tracing;
  ledger: Ledger;
  /** Webhooks of organizations, and what is delivered to them. */
  webhooks: WebhookStore;
  /** How webhooks of payments are received. */
  payments: Payments;
  /** Whether the platform has a server that takes mails. */
  sendsEmail: boolean;
  /** Whether plans of applications, workers and databases are charged. */
  metersPlans: boolean;
  /** Ceilings of organizations. */
  usage: UsageBook;
  /** Zone of default domains. */
  domainZone: string;
  /** Hostnames that no project can have; a single label is a name in the zone. */
  reservedHostnames: readonly string[];
  /** Addresses and CIDRs whose X-Forwarded-For is trusted. */
  trustedProxies: readonly string[];
  now: () => Date;
}
