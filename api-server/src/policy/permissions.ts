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
  "project.envs.read",
  "project.envs.update",
  "project.image.update",
  "project.plan.update",
  "project.lifecycle.update",
  "project.schedule.update",
  "project.source.update",
  "project.billing.read",
  "project.metrics.read",
  "project.logs.read",
  "project.job-run.cancel",
  "project.deploy.trigger",
  "project.backup.create",
  "project.backup.read",
  "project.backup.update",
  "project.backup.delete",
  "project.backup.restore",
  "database.credentials.renew",
] as const;

export type Permission = (typeof PERMISSIONS)[number];

/** Every permission, those of later versions included. */
export const ANY_PERMISSION = "*";

/** What the first key of an organization gets: everything. */
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

/** What a credential may do, arranged so that a check costs one or two lookups. */
export class GrantSet {
  readonly #all: boolean;
  readonly #held: ReadonlySet<string>;
  readonly #holdsAny: ReadonlySet<string>;

  private constructor(all: boolean, grants: readonly Grant[]) {
    this.#all = all;
    this.#held = new Set(grants.map((grant) => `${grant.permission} on ${grant.resource}`));
    this.#holdsAny = new Set(
      grants.filter((grant) => grant.permission === ANY_PERMISSION).map((grant) => grant.resource),
    );
  }

  /** Full access: an organization's owner. */
  static full(): GrantSet {
    return new GrantSet(true, []);
  }

  static of(grants: readonly Grant[]): GrantSet {
    return new GrantSet(false, grants);
  }

  onOrganization(permission: Permission): boolean {
    return this.#all || this.#holds(permission, "organization:*");
  }

  onProject(permission: Permission, projectId: string): boolean {
    return (
      this.#all || this.#holds(permission, "project:*") || this.#holds(permission, `project:${projectId}`)
    );
  }

  onEveryProject(permission: Permission): boolean {
    return this.#all || this.#holds(permission, "project:*");
  }

  #holds(permission: Permission, resource: string): boolean {
    return this.#held.has(`${permission} on ${resource}`) || this.#holdsAny.has(resource);
  }
}
