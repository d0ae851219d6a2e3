export * from "./api-keys.ts";
export * from "./audit.ts";
export { type ConnectOptions, connectLedger, type Ledger } from "./connect.ts";
export * from "./deployments.ts";
export { type Grant, type GrantSubject, insertGrants } from "./grants.ts";
export * from "./idempotency.ts";
export * from "./members.ts";
export { migrateToLatest } from "./migrator.ts";
export * from "./organizations.ts";
export type {
  Deployment,
  DeploymentStatus,
  IdempotencyRecord,
  LedgerSchema,
  Organization,
  ProjectSlot,
  Role,
} from "./schema.ts";
export * from "./slot-request.ts";
export * from "./slots.ts";
export * from "./tombstones.ts";
