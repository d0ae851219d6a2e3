import type { Grant } from "@slipway/ledger";

/** Every permission that a scope may name. */
export const PERMISSIONS = [
  "project.create",
  "database.create",
  "managed_service.create",
  "project.read",
  "project.delete",
  "project.name.update",
  "project.description.update",
  "project.domain.update",
  "project.health.update",
  "project.pre-deploy.update",
  "project.sleep.update",
  "project.envs.read",
  "project.envs.update",
  "project.image.update",
  "project.autoscaling.update",
  "project.plan.update",
  "project.lifecycle.update",
  "project.schedule.update",
  "project.source.update",
  "project.billing.read",
  "project.metrics.read",
  "project.alerts.read",
  "project.alerts.update",
  "project.logs.read",
  "project.exec",
  "project.run.start",
  "project.job-run.cancel",
  "project.deploy.trigger",
  "project.backup.create",
  "project.backup.read",
  "project.backup.update",
  "project.backup.delete",
  "project.backup.restore",
  "database.credentials.renew",
  "organization.variable-groups.read",
  "organization.variable-groups.update",
  "organization.webhooks.read",
  "organization.webhooks.update",
  "organization.log-drains.read",
  "organization.log-drains.update",
  "organization.invoices.read",
  "organization.budget.read",
  "organization.budget.update",
] as const;

export type Permission = (typeof PERMISSIONS)[number];

/** Every permission but {@link NAMED_ALONE}, those of later versions included. */
export const ANY_PERMISSION = "*";

/**
 * Granted by their own names alone: keys that were given everything before these existed do not get them. An owner has them.
 */
const NAMED_ALONE: ReadonlySet<string> = new Set<Permission>(["project.exec"]);

/** What the first key of an organization gets: everything but {@link NAMED_ALONE}. */
export const EVERY_GRANT: readonly Grant[] = [
  { permission: ANY_PERMISSION, resource: "organization:*" },
  { permission: ANY_PERMISSION, resource: "project:*" },
];

const RESOURCE = /^(?:organization:\*|project:\*|project:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)$/;

/**
 * Reads `<permission> on <resource>`.
 * @throws Error that says what is wrong, for the one who typed it
 */
export function parseGrant(text: string): Grant {
  const match = /^\s*(\S+)\s+on\s+(\S+)\s*$/.exec(text);
  if (!match) {
    throw new Error(`a grant reads "PERMISSION on RESOURCE", not "${text}"`);
  }
  const [, permission = "", resource = ""] = match;
  const known: readonly string[] = PERMISSIONS;
  if (permission !== ANY_PERMISSION && !known.includes(permission)) {
    throw new Error(`unknown permission ${permission}; known: ${PERMISSIONS.join(", ")}`);
  }
  if (!RESOURCE.test(resource)) {
    throw new Error(`unknown resource ${resource}; known: organization:*, project:*, project:<project-id>`);
  }
  return { permission, resource };
}

/** What a credential may do, arranged so that a check of every project costs one lookup and creates no text. */
export class GrantSet {
  readonly #all: boolean;
  readonly #ofOrganization: ReadonlySet<string>;
  readonly #ofEveryProject: ReadonlySet<string>;
  readonly #ofProject: ReadonlyMap<string, ReadonlySet<string>>;

  private constructor(all: boolean, grants: readonly Grant[]) {
    this.#all = all;
    const byResource = new Map<string, Set<string>>();
    for (const { permission, resource } of grants) {
      byResource.set(resource, (byResource.get(resource) ?? new Set()).add(permission));
    }
    const permissionsOn = (resource: string) => byResource.get(resource) ?? NOTHING;
    this.#ofOrganization = permissionsOn("organization:*");
    this.#ofEveryProject = permissionsOn("project:*");
    this.#ofProject = new Map([...byResource].map(([resource, held]) => [projectOf(resource), held]));
  }

  /** Full access: an organization's owner. */
  static full(): GrantSet {
    return new GrantSet(true, []);
  }

  static of(grants: readonly Grant[]): GrantSet {
    return new GrantSet(false, grants);
  }

  onOrganization(permission: Permission): boolean {
    return this.#all || includes(this.#ofOrganization, permission);
  }

  onProject(permission: Permission, projectId: string): boolean {
    return this.onEveryProject(permission) || includes(this.#ofProject.get(projectId) ?? NOTHING, permission);
  }

  onEveryProject(permission: Permission): boolean {
    return this.#all || includes(this.#ofEveryProject, permission);
  }
}

const NOTHING: ReadonlySet<string> = new Set();

const includes = (held: ReadonlySet<string>, permission: Permission): boolean =>
  held.has(permission) || (held.has(ANY_PERMISSION) && !NAMED_ALONE.has(permission));

/** The id in `project:<id>`; of another resource, a text that is no project's id. */
const projectOf = (resource: string): string =>
  resource.startsWith("project:") ? resource.slice("project:".length) : "";
