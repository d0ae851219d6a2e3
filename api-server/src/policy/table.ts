import type { Permission } from "./permissions.ts";

/** Who may call an operation. */
export type Access =
  /** No credential. */
  | { kind: "public" }
  /** Any valid credential of an organization. */
  | { kind: "credential" }
  /** A session of the organization's owner; an API key cannot replace it. */
  | { kind: "owner" }
  /** A grant on `organization:*`, which one depends on `config.type_project` of the body. */
  | { kind: "create"; byType: Readonly<Record<string, Permission>> }
  /** A grant on `project:<id>` of the path. `missing` says who answers for a project that is not there. */
  | { kind: "project"; permission: Permission; missing: "refuse" | "handler" };

export interface RateLimit {
  limit: number;
  windowSeconds: number;
  /** Counted per credential, or per source address. */
  per: "credential" | "ip";
}

export interface Policy {
  access: Access;
  rateLimit: RateLimit;
  /** Whether the call leaves a line in the audit log. */
  audited: boolean;
}

const perMinute = (limit: number, per: RateLimit["per"] = "credential"): RateLimit => ({
  limit,
  windowSeconds: 60,
  per,
});

/** An operation on one project that has no limit of its own in the specification. */
const onProject = (permission: Permission, { audited }: { audited: boolean }): Policy => ({
  access: { kind: "project", permission, missing: "refuse" },
  rateLimit: perMinute(60),
  audited,
});

/** A setting that the specification limits to 10 calls a minute from one address. */
const setting = (permission: Permission): Policy => ({
  access: { kind: "project", permission, missing: "refuse" },
  rateLimit: perMinute(10, "ip"),
  audited: true,
});

const publicRead = (limit: number): Policy => ({
  access: { kind: "public" },
  rateLimit: perMinute(limit, "ip"),
  audited: false,
});

/**
 * One line per operation: who may call it and how often. It drives the guard, the OpenAPI document and the tests.
 * An operation without a line cannot be registered.
 */
export const policies = {
  listHttpPlans: publicRead(50),
  listJobPlans: publicRead(60),
  listStoragePlans: publicRead(50),
  listDatabasePlans: publicRead(10),
  listDatabaseCatalog: publicRead(100),
  readOpenApi: publicRead(60),
  // A page is six files.
  readDocs: publicRead(60),
  readDocsFile: publicRead(300),
  listTemplates: { access: { kind: "credential" }, rateLimit: perMinute(60), audited: false },
  createProject: {
    access: {
      kind: "create",
      byType: {
        http: "project.create",
        job: "project.create",
        postgresql: "database.create",
        mariadb: "database.create",
        clickhouse: "database.create",
        valkey: "managed_service.create",
      },
    },
    rateLimit: perMinute(10),
    audited: true,
  },
  listProjects: { access: { kind: "credential" }, rateLimit: perMinute(100), audited: false },
  readProject: {
    access: { kind: "project", permission: "project.read", missing: "refuse" },
    rateLimit: perMinute(100, "ip"),
    audited: false,
  },
  deleteProject: {
    access: { kind: "project", permission: "project.delete", missing: "handler" },
    rateLimit: perMinute(10),
    audited: true,
  },
  updateProjectName: setting("project.name.update"),
  updateProjectDescription: setting("project.description.update"),
  updateProjectDomain: setting("project.domain.update"),
  updateProjectCustomDomains: setting("project.domain.update"),
  updateProjectExposure: {
    access: { kind: "project", permission: "project.domain.update", missing: "refuse" },
    rateLimit: { limit: 5, windowSeconds: 300, per: "credential" },
    audited: true,
  },
  readProjectEnvs: onProject("project.envs.read", { audited: false }),
  updateProjectEnvs: onProject("project.envs.update", { audited: true }),
  updateProjectImage: onProject("project.image.update", { audited: true }),
  updateProjectPlan: onProject("project.plan.update", { audited: true }),
  updateProjectSchedule: onProject("project.schedule.update", { audited: true }),
  pauseProject: onProject("project.lifecycle.update", { audited: true }),
  resumeProject: onProject("project.lifecycle.update", { audited: true }),
  rollbackProject: onProject("project.deploy.trigger", { audited: true }),
  listProjectDeployments: onProject("project.read", { audited: false }),
  readProjectLogs: onProject("project.logs.read", { audited: false }),
} as const satisfies Record<string, Policy>;

export type OperationId = keyof typeof policies;

/** The policy of an operation, or undefined for a name that is not in the table. */
export function policyOf(operationId: string): Policy | undefined {
  return Object.hasOwn(policies, operationId) ? policies[operationId as OperationId] : undefined;
}
