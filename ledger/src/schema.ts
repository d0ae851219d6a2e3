import type { ColumnType, Generated, Selectable } from "kysely";

type CreatedAt = ColumnType<Date, never, never>;

export type Role = "owner" | "assistant" | "member";

interface OrganizationTable {
  id: string;
  name: string;
  /** A blocked organization's creations answer 402. */
  blocked: Generated<boolean>;
  created_at: CreatedAt;
}

interface UserTable {
  id: string;
  created_at: CreatedAt;
}

interface MembershipTable {
  user_id: string;
  organization_id: string;
  role: Role;
  created_at: CreatedAt;
}

interface ApiKeyTable {
  /** Public part of the key: names it in lists, logs and the audit log. */
  id: string;
  organization_id: string;
  /** What every key of this kind starts with, for secret scanners. */
  prefix: string;
  /** SHA-256 of the whole key. The key itself is stored nowhere. */
  sha256: Buffer;
  created_at: CreatedAt;
  revoked_at: ColumnType<Date | null, never, Date | null>;
}

interface GrantTable {
  id: Generated<string>;
  organization_id: string;
  /** Exactly one of `api_key_id` and `user_id` is set. */
  api_key_id: string | null;
  user_id: string | null;
  permission: string;
  resource: string;
  created_at: CreatedAt;
}

interface AuditLogTable {
  id: Generated<string>;
  at: ColumnType<Date, Date | undefined, never>;
  organization_id: string | null;
  actor: string;
  operation: string;
  project_id: string | null;
  source_ip: string | null;
  /** Null while the outcome is unknown: the write runs, or its process ended in the middle of it. */
  status: number | null;
  code: string | null;
  finished_at: Date | null;
}

interface IdempotencyTable {
  organization_id: string;
  key: string;
  body_sha256: Buffer;
  /** The resource is named by this id, so a retry finishes what a crash left half done. */
  project_id: string;
  completed_at: ColumnType<Date | null, never, Date>;
  /** Who creates under the key now; null while nobody does. */
  holder: string | null;
  /** After this the holder is taken for dead; null while there is none. */
  held_until: Date | null;
  created_at: CreatedAt;
}

interface ProjectTombstoneTable {
  organization_id: string;
  project_id: string;
  deleted_at: CreatedAt;
}

/** `in_progress` is the only one that another may follow. */
export type DeploymentStatus = "in_progress" | "succeeded" | "failed" | "superseded";

interface DeploymentTable {
  /** Unique in the project. */
  id: string;
  organization_id: string;
  project_id: string;
  created_at: Date;
  finished_at: Date | null;
  status: DeploymentStatus;
  /** Whether the image was another than the deployment's before. */
  updated_image: boolean;
  image: string;
  /** `sha256:...`, once it was resolved. */
  digest: string | null;
  settings_hash: string;
  message: string | null;
}

interface ProjectSlotTable {
  organization_id: string;
  project_id: string;
  plan: string;
  /** Set of slots that the plan's limit counts in; null on a plan without a limit. */
  scope: string | null;
  slots: number;
  /** When the slot was last asked for. */
  taken_at: ColumnType<Date, Date | undefined, Date>;
  /** Grows with every taking, over all slots; a bigint in decimal. */
  version: ColumnType<string, never, string>;
}

interface PlanCapacityTable {
  plan: string;
  max_projects: number;
}

/** The tables, as kysely sees them. Migrations are the truth; this follows them. */
export interface LedgerSchema {
  organizations: OrganizationTable;
  users: UserTable;
  memberships: MembershipTable;
  api_keys: ApiKeyTable;
  grants: GrantTable;
  audit_log: AuditLogTable;
  idempotency_records: IdempotencyTable;
  project_tombstones: ProjectTombstoneTable;
  deployments: DeploymentTable;
  project_slots: ProjectSlotTable;
  plan_capacities: PlanCapacityTable;
}

export type Organization = Selectable<OrganizationTable>;
export type IdempotencyRecord = Selectable<IdempotencyTable>;
export type Deployment = Selectable<DeploymentTable>;
export type ProjectSlot = Selectable<ProjectSlotTable>;
