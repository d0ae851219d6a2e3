import { z } from "zod";
import { decimal, planId } from "./fields.ts";
import { SLEEP_SECONDS } from "./project/parts.ts";

/**
 * The plan catalog: prices, resources and limits of all that is sold. A YAML file (`SLIPWAY_CATALOG_FILE`) that the
 * platform's operator owns; both processes read it and reload it on change.
 */

/** A Kubernetes quantity of CPU or memory, restricted to what is sensible for a container. */
const quantity = (about: string) =>
  z
    .string()
    .regex(/^[1-9][0-9]*(m|Ki|Mi|Gi)?$/, { message: "must be a quantity such as 250m or 512Mi" })
    .describe(about);

const amounts = (about: string) =>
  z.strictObject({ cpu: quantity("CPU."), memory: quantity("Memory.") }).describe(about);

/** What one instance gets. */
export const resources = z.strictObject({
  requests: amounts("What is reserved for one instance: small, so that plans fit small clusters."),
  limits: amounts("What one instance may use: what is sold."),
});
export type Resources = z.output<typeof resources>;

/** Prices of a plan by payment mode, in BRL cents. */
export const prices = z.strictObject({
  hourly: decimal("Price of an hour."),
  monthly: decimal("Price of a month."),
  yearly: decimal("Price of a year."),
});
export type Prices = z.output<typeof prices>;

const features = z.array(z.string().min(1).max(200)).max(50).describe("What the plan is advertised with.");

/**
 * Limits that a client reads. `free_storage_size` is shown unchanged; further keys may be added by the platform's
 * operator and are passed through.
 */
const permissions = z
  .record(z.string(), z.union([z.string(), z.number(), z.boolean()]))
  .describe("Permissions as /v1 shows them.");

/** A countable limit of an organization; plans that name the same scope share its slots. */
export const planLimit = z.strictObject({
  scope: planId.describe("Name of the set of slots."),
  counts: z.enum(["instances", "projects"]).describe("What takes a slot."),
  max: z.int().min(1).max(1000).describe("Slots of one organization."),
  code: z
    .string()
    .regex(/^[A-Z0-9_]+$/)
    .describe("Code of the refusal when no slot is left."),
  exceededCode: z
    .string()
    .regex(/^[A-Z0-9_]+$/)
    .describe("Code of the refusal when some are left, but fewer than asked for.")
    .optional(),
});
export type PlanLimit = z.output<typeof planLimit>;

const base = {
  plan: planId,
  free: z.boolean().default(false).describe("Whether the plan costs nothing."),
  resources,
  features,
  permissions,
  limit: planLimit.optional(),
};

/** Of a plan whose projects have volumes that outlive their pods. */
const retainDeletedVolumesHours = z
  .int()
  .min(0)
  .max(24)
  .optional()
  .describe(
    "Hours for which volumes of a deleted project are retained, and the project can be undeleted; 0, as without it: deletion is final.",
  );

/** Of a plan whose projects' logs are kept. */
const logDays = z
  .int()
  .min(1)
  .max(365)
  .optional()
  .describe("Days for which lines of its projects' logs can be searched; 8 without it.");

/** What is given back of a term that was paid ahead when its project is deleted: docs/billing.md. */
const refund = z
  .enum(["none", "prorated"])
  .optional()
  .describe(
    "Of a term that was paid ahead, given as credit when its project is deleted: the unused part, or nothing, as without it.",
  );
export type Refund = NonNullable<z.output<typeof refund>>;

/** Capabilities of an HTTP plan; `logs` is always true. */
export const capabilities = z.strictObject({
  logs: z.literal(true),
  metrics: z.boolean(),
  healthcheck: z.boolean(),
  autoscaling: z.boolean(),
  custom_subdomain: z.boolean(),
  network_access: z.boolean(),
});
export type Capabilities = z.output<typeof capabilities>;

const sleepPlanSeconds = z
  .int()
  .min(SLEEP_SECONDS.min)
  .max(SLEEP_SECONDS.max)
  .describe(
    "Least time without a request, in seconds, after which a project sleeps that has chosen to; without it none on the plan does.",
  )
  .optional();

export const httpPlan = z.strictObject({
  ...base,
  prices,
  capabilities,
  sleepAfterSeconds: sleepPlanSeconds,
  maxInstances: z.int().min(1).max(100).describe("Most instances of one project."),
  retainDeletedVolumesHours,
  logDays,
  refund,
});
export type HttpPlan = z.output<typeof httpPlan>;

export const jobPlan = z.strictObject({
  ...base,
  pricePerMinute: decimal("Price of a minute in BRL cents; it may be a fraction."),
});
export type JobPlan = z.output<typeof jobPlan>;

export const storagePlan = z.strictObject({
  storage: planId.describe("Storage type."),
  persistent: z.boolean(),
  prices: prices.describe("Prices of 1 GB."),
  storageClass: z
    .string()
    .max(253)
    .optional()
    .describe("StorageClass of the volumes; the cluster's default without it."),
  ephemeralRequest: quantity("Reserved of a node's disk for one instance without a volume.")
    .optional()
    .describe(
      "Of what is not persistent: reserved of a node's disk for one instance. Without it all that it may use, for a node whose disk is full ends its pods.",
    ),
});
export type StoragePlan = z.output<typeof storagePlan>;

const range = { min: z.int().min(0), default: z.int().min(0), max: z.int().min(0), editable: z.boolean() };

/** What a plan offers for one engine; the API shows it under `engines.<name>`. */
export const engineOffer = z
  .strictObject({
    instances: z.strictObject(range),
    storage: z.strictObject({ ...range, included: z.int().min(0), step: z.int().min(1) }),
    versions: z.array(z.string()).min(1).max(20),
    defaultVersion: z.string(),
    billing: z.strictObject({
      instances: z.enum(["per_instance", "per_project"]),
      storage: z.enum(["per_instance_gb", "per_project_gb", "none"]),
    }),
  })
  .refine(({ versions, defaultVersion }) => versions.includes(defaultVersion), {
    message: "must be one of versions",
    path: ["defaultVersion"],
  })
  .refine(({ instances: i }) => i.min <= i.default && i.default <= i.max && i.editable === i.min < i.max, {
    message: "needs min <= default <= max, and is editable only when min < max",
    path: ["instances"],
  })
  .refine(({ storage: s }) => s.min <= s.default && s.default <= s.max, {
    message: "needs min <= default <= max",
    path: ["storage"],
  });
export type EngineOffer = z.output<typeof engineOffer>;

/** Which metrics snapshots a plan gives. `tier` distinguishes plans of Valkey. */
const metrics = z.strictObject({
  access: z.enum(["snapshot", "none"]),
  tier: z.enum(["valkey_realtime", "valkey_premium", "valkey_enterprise"]).optional(),
});

const engineNames = ["postgresql", "mariadb", "clickhouse", "valkey"] as const;
export type EngineName = (typeof engineNames)[number];

/** A plan of databases or managed services: `db-*`, `analytics-*`, `cache-*`, `queue-*`. */
export const databasePlan = z.strictObject({
  ...base,
  prices,
  metrics,
  retainDeletedVolumesHours,
  logDays,
  refund,
  engines: z.partialRecord(z.enum(engineNames), engineOffer).refine((all) => Object.keys(all).length > 0, {
    message: "must name at least one engine",
  }),
});
export type DatabasePlan = z.output<typeof databasePlan>;

const field = z.strictObject({
  name: z.string(),
  type: z.enum(["string", "number", "boolean"]),
  required: z.boolean(),
  secret: z.boolean().optional(),
  options: z.array(z.string()).optional(),
  unit: z.string().optional(),
  description: z.string(),
});

/** An engine as `GET /v1/project/database/catalog` shows it; `plans` derive from the plans that offer it. */
export const engine = z.strictObject({
  id: z.enum(engineNames),
  name: z.string().min(1),
  versions: z.array(z.string()).min(1).max(20),
  paymentModes: z.array(z.enum(["hourly", "monthly", "yearly"])).min(1),
  configurationFields: z.array(field),
  connectionFields: z.array(field),
});
export type Engine = z.output<typeof engine>;

/** A ready-made project: `POST /v1/project` names it by id and revision, and the request's own members win over it. */
export const template = z.strictObject({
  id: planId.describe("Id of the template."),
  revision: z.int().min(1).describe("A template is never changed: it gets a new revision."),
  name: z.string().min(1).max(100),
  description: z.string().min(1).max(512).optional(),
  body: z.record(z.string(), z.unknown()).describe("A creation body, without the name."),
});
export type Template = z.output<typeof template>;

/** Ceilings of one organization, paused projects included; the same for /v1 and kubectl. */
export const organizationLimits = z.strictObject({
  projects: z.int().min(1).max(100_000).default(500).describe("Projects."),
  customDomains: z.int().min(0).max(100_000).default(500).describe("Custom domains of all projects."),
  gitConnections: z.int().min(0).max(10_000).default(50).describe("Git connections."),
  backups: z.int().min(0).max(100_000).default(1_000).describe("Backups that are kept."),
  variableGroups: z.int().min(0).max(10_000).default(50).describe("Variable groups."),
  logDrains: z.int().min(0).max(100).default(5).describe("Log drains."),
  variableBytes: z
    .int()
    .min(0)
    .max(10_000_000_000)
    .default(33_554_432)
    .describe("Bytes of variables over /v1, those of deployments that can be rolled back to included."),
});
export type OrganizationLimits = z.output<typeof organizationLimits>;

/** Prices of what projects use beside their plans: docs/billing.md. */
export const resourcePrices = z
  .strictObject({
    buildMinute: decimal("Price of a begun minute of a build.").optional(),
  })
  .describe("In BRL cents; what has none, or 0, is not charged.");

/** What all prices and amounts are in. */
export const CURRENCY = "brl";

/** The whole file, without the rules that span its sections. */
export const catalogFields = z.strictObject({
  currency: z.literal(CURRENCY),
  jobsEnabled: z
    .boolean()
    .default(true)
    .describe("False makes the job catalog answer SCHEDULED_JOBS_UNAVAILABLE."),
  databasesEnabled: z.boolean().default(true).describe("False makes both database catalogs answer 503."),
  httpPlans: z.array(httpPlan).min(1),
  jobPlans: z.array(jobPlan),
  storagePlans: z.array(storagePlan).min(1),
  databasePlans: z.array(databasePlan),
  engines: z.array(engine),
  resourcePrices: resourcePrices.optional(),
  templates: z.array(template).max(200).default([]),
  organizationLimits: organizationLimits.prefault({}),
});
export type Catalog = z.output<typeof catalogFields>;

/** Any plan that a project can be on. */
export type ProjectPlan = HttpPlan | JobPlan | DatabasePlan;

/** The plan of this id, or undefined. */
export function findPlan(all: Catalog, plan: string): ProjectPlan | undefined {
  return (
    all.httpPlans.find((one) => one.plan === plan) ??
    all.jobPlans.find((one) => one.plan === plan) ??
    all.databasePlans.find((one) => one.plan === plan)
  );
}

/** Hours for which volumes of a deleted project on this plan are retained; 0 where its deletion is final. */
export function deletedVolumesRetentionHours(all: Catalog, plan: string): number {
  const found = findPlan(all, plan);
  return found !== undefined && "retainDeletedVolumesHours" in found
    ? (found.retainDeletedVolumesHours ?? 0)
    : 0;
}

/** Days for which logs are kept where a plan says nothing else. */
export const DEFAULT_LOG_DAYS = 8;

/** Days for which lines of the log of a project on this plan can be searched. */
export function logRetentionDays(all: Catalog, plan: string): number {
  const found = findPlan(all, plan);
  return found !== undefined && "logDays" in found ? (found.logDays ?? DEFAULT_LOG_DAYS) : DEFAULT_LOG_DAYS;
}

/** The template of this id and revision, or undefined. */
export function findTemplate(all: Catalog, id: string, revision: number): Template | undefined {
  return all.templates.find((one) => one.id === id && one.revision === revision);
}

/** The HTTP plan of this id, or undefined. */
export function findHttpPlan(all: Catalog, plan: string): HttpPlan | undefined {
  return all.httpPlans.find((one) => one.plan === plan);
}
