import type { Role } from "@slipway/ledger";
import type { GrantSet } from "../policy/grant-set.ts";

/** Who a request comes from, and what it may do in its one organization. */
export interface Principal {
  /** Counts against rate limits; one per key, or per user and organization. */
  credentialId: string;
  /** How the audit log and the logs name it: `api-key:<id>` or `user:<id>`. */
  actor: string;
  organizationId: string;
  kind: "api-key" | "user";
  /** Only of users. */
  role?: Role;
  grants: GrantSet;
  /** When a user token ends, in milliseconds since 1970. */
  expiresAt?: number;
}
