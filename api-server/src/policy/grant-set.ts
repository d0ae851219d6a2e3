import type { Grant } from "@slipway/ledger";
import { ANY_PERMISSION, type Permission } from "./permissions.ts";

/** What a credential may do, arranged so that a check costs one or two look-ups. */
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
