import type { Catalog } from "@slipway/crds";
import type { KubeClient } from "@slipway/kube";
import type { Ledger } from "@slipway/ledger";
import type { Logger } from "pino";
import type { AuditLog } from "./audit-log.ts";
import type { Authenticator } from "./auth/authenticator.ts";
import type { ApiMetrics } from "./metrics.ts";
import type { Projects } from "./projects/store.ts";
import type { RateLimiter } from "./rate-limit/limiter.ts";

/** What the routes work with; made in `main.ts`, or by a test. */
export interface Services {
  logger: Logger;
  metrics: ApiMetrics;
  authenticator: Authenticator;
  rateLimiter: RateLimiter;
  /** Multiplies every limit of the policy table. */
  rateLimitScale: number;
  audit: AuditLog;
  catalog: { readonly current: Catalog };
  projects: Projects;
  kube: KubeClient;
  ledger: Ledger;
  /** Zone of default domains. */
  domainZone: string;
  /** Hostnames that no project gets; single labels stand for a name in the zone. */
  reservedHostnames: readonly string[];
  /** Addresses and CIDRs whose X-Forwarded-For is believed. */
  trustedProxies: readonly string[];
  now: () => Date;
}
