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
  /** Tokens that the platform issued up to then are refused. */
  tokens_revoked_at: ColumnType<Date | null, never, Date>;
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
  /** After this the holder counts as dead; null while there is none. */
  held_until: Date | null;
  created_at: CreatedAt;
}

interface DomainReservationTable {
  organization_id: string;
  hostname: string;
  first_claimed_at: Date;
  last_claimed_at: Date;
}

interface ProjectTombstoneTable {
  organization_id: string;
  project_id: string;
  deleted_at: CreatedAt;
}

/** What a project was called when it was deleted; deletions by earlier versions have none. */
interface DeletedProjectNameTable {
  organization_id: string;
  project_id: string;
  name: string;
}

/** `in_progress` is the only one that another may follow. */
export type DeploymentStatus = "in_progress" | "succeeded" | "failed" | "superseded";

interface DeploymentTable {
  /** Unique in the project. */
  id: string;
  organization_id: string;
  project_id: string;
  /** Of the custom resource: a name may be given again. Null of rows of earlier versions. */
  project_uid: string | null;
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

interface QuotaReservationTable {
  organization_id: string;
  project_id: string;
  plan: string;
  /** Scope that the plan's limit counts in; null on a plan without a limit. */
  scope: string | null;
  slots: number;
  /** When the quota was last requested. */
  taken_at: ColumnType<Date, Date | undefined, Date>;
  /** Grows with every reservation, over all projects; a bigint in decimal. */
  version: ColumnType<string, never, string>;
}

interface PlanCapacityTable {
  plan: string;
  max_projects: number;
}

/** `pending` and `building` are the ones that another may follow. */
export type BuildStatus = "pending" | "building" | "success" | "failed" | "superseded";

interface BuildTable {
  /** Unique in the project. */
  id: string;
  organization_id: string;
  project_id: string;
  /** Another project of the same id has another uid, and none of these builds. */
  project_uid: string;
  triggered_by: string;
  branch: string | null;
  tag: string | null;
  commit_sha: string | null;
  /** First line of the commit's message. */
  commit_message: string | null;
  status: BuildStatus;
  /** `sha256:...` of the image, once it is in the registry. */
  digest: string | null;
  error_code: string | null;
  error_message: string | null;
  /** Whether the log was cut at its limit. */
  log_truncated: ColumnType<boolean, boolean | undefined, boolean>;
  created_at: Date;
  started_at: Date | null;
  finished_at: Date | null;
  /** When its containers ran, in the attempt that ended it: what is charged of one that has ended. */
  ran_from: ColumnType<Date | null, Date | null | undefined, Date | null>;
  ran_until: ColumnType<Date | null, Date | null | undefined, Date | null>;
  updated_at: Date;
}

interface BuildLogChunkTable {
  organization_id: string;
  project_id: string;
  build_id: string;
  /** A bigint in decimal. */
  sequence: ColumnType<string, number, never>;
  at: Date;
  level: string;
  step: string;
  message: string;
  final: ColumnType<boolean, boolean | undefined, never>;
}

interface BuildTriggerTable {
  organization_id: string;
  project_uid: string;
  trigger: string;
  ref: string;
  commit_sha: string;
  /** Null of deployments from before the project was built. */
  build_id: string | null;
  seen_at: CreatedAt;
}

interface GitDeliveryTable {
  organization_id: string;
  connection_id: string;
  delivery_id: string;
  received_at: CreatedAt;
}

interface GitDeliveryQueueTable {
  sequence: Generated<string>;
  organization_id: string;
  connection_id: string;
  delivery_id: string;
  event: string;
  received_at: CreatedAt;
  attempts: Generated<number>;
  due_at: Generated<Date>;
  held_until: Date | null;
}

/** Why nothing is sent to a webhook: its receiver failed for days, asked for no more (of e-mail: unsubscribed), or a client switched it off. */
export type WebhookDisabledReason = "failing" | "gone" | "requested" | "unsubscribed";

interface WebhookTable {
  id: string;
  organization_id: string;
  url: string;
  /** Of the URL, with its port: so many requests go to one at a time. */
  host: string;
  description: string | null;
  event_types: string[];
  /** Those whose events are sent; null of all. */
  project_ids: string[] | null;
  created_at: CreatedAt;
  updated_at: Generated<Date>;
  /** Since when it gets what it subscribes to now: nothing is sent that happened before. */
  subscribed_since: Generated<Date>;
  /** Since when no attempt has succeeded; null while the last one has. */
  failing_since: Date | null;
  last_failed_at: Date | null;
  disabled_at: Date | null;
  disabled_reason: WebhookDisabledReason | null;
  /** Events that were over a bound; a bigint in decimal. */
  dropped_events: Generated<string>;
  /** Of a recipient of e-mail, whose `url` is `mailto:` and this; null of a webhook. */
  email: Generated<string | null>;
  /** When the recipient has confirmed; while it has not, confirmation mails alone are sent. */
  confirmed_at: Generated<Date | null>;
  /** What confirms until it expires. */
  confirmation_code: Generated<string | null>;
  confirmation_expires_at: Generated<Date | null>;
  /** How often another code was given. */
  confirmation_tries: Generated<number>;
  /** In the link with which the recipient ends all mail. */
  unsubscribe_token: Generated<string | null>;
}

/** Confirmation mails that were requested. */
interface EmailConfirmationTable {
  sequence: Generated<string>;
  organization_id: string;
  mailbox: string;
  created_at: CreatedAt;
}

/** `pending` is the only one that another follows by itself. */
export type WebhookDeliveryStatus = "pending" | "succeeded" | "failed";

interface WebhookDeliveryTable {
  sequence: Generated<string>;
  organization_id: string;
  webhook_id: string;
  event_id: string;
  event_type: string;
  project_id: string | null;
  payload: string;
  created_at: CreatedAt;
  status: Generated<WebhookDeliveryStatus>;
  /** How often it was leased: a lease that has expired has another count. */
  leases: Generated<number>;
  /** Those whose outcome is recorded. */
  attempts: Generated<number>;
  due_at: Generated<Date>;
  held_until: Date | null;
  attempted_at: Date | null;
  finished_at: Date | null;
  response_code: number | null;
  response_body: string | null;
  error: string | null;
}

interface WebhookSkippedEventTable {
  organization_id: string;
  event_id: string;
  created_at: CreatedAt;
}

interface RetiredImageTable {
  organization_id: string;
  project_id: string;
  digest: string;
  retired_at: CreatedAt;
}

/** What an organization may have only so much of. */
export type UsageKind = "projects" | "customDomains" | "variableBytes";

interface OrganizationUsageTable {
  organization_id: string;
  kind: UsageKind;
  /** The project's id, or of bytes of variables the Secret's name. */
  name: string;
  /** A bigint in decimal. */
  amount: ColumnType<string, number, number | string>;
  /** When it was last reserved or found. */
  reserved_at: ColumnType<Date, never, Date>;
}

interface BudgetTable {
  organization_id: string;
  /** BRL cents, a decimal. */
  amount: string;
  notices: number[];
  hard_cap: boolean;
  /** Another one with each other amount. */
  revision: Generated<string>;
  revised_at: CreatedAt;
  created_at: CreatedAt;
  updated_at: CreatedAt;
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
  domain_reservations: DomainReservationTable;
  project_tombstones: ProjectTombstoneTable;
  deleted_project_names: DeletedProjectNameTable;
  deployments: DeploymentTable;
  project_slots: QuotaReservationTable;
  plan_capacities: PlanCapacityTable;
  organization_usage: OrganizationUsageTable;
  builds: BuildTable;
  build_log_chunks: BuildLogChunkTable;
  build_triggers: BuildTriggerTable;
  git_deliveries: GitDeliveryTable;
  git_delivery_queue: GitDeliveryQueueTable;
  retired_images: RetiredImageTable;
  webhooks: WebhookTable;
  webhook_deliveries: WebhookDeliveryTable;
  webhook_skipped_events: WebhookSkippedEventTable;
  email_confirmations: EmailConfirmationTable;
  budgets: BudgetTable;
}

export type Organization = Selectable<OrganizationTable>;
export type IdempotencyRecord = Selectable<IdempotencyTable>;
export type Deployment = Selectable<DeploymentTable>;
export type QuotaReservationRow = Selectable<QuotaReservationTable>;
export type Build = Selectable<BuildTable>;
export type RetiredImage = Selectable<RetiredImageTable>;
export type Webhook = Selectable<WebhookTable>;
export type WebhookDelivery = Selectable<WebhookDeliveryTable>;
