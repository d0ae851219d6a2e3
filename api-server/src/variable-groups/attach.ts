import type { KubeClient } from "@slipway/controller-runtime";
import type { Principal } from "../auth/principal.ts";
import { failures } from "../errors/catalog.ts";
import { groupIfAny } from "./cluster.ts";

/** What reading groups needs, on the organization. */
export const READ_GROUPS = "organization.variable-groups.read";

/** @throws Failure 403 when the caller may not read groups, and attaches one that the project does not have */
export function requireReadOfAdded(
  ids: readonly string[],
  present: readonly string[],
  { grants }: Pick<Principal, "grants">,
): void {
  if (ids.some((id) => !present.includes(id)) && !grants.onOrganization(READ_GROUPS)) {
    throw failures.organizationPermission([READ_GROUPS]);
  }
}

/**
 * Checks the groups that a project is to attach. Those that it has already may stay, whatever the caller may read.
 * @throws Failure 403 when the caller may not read groups, 400 that names each one that the organization does not have, 503
 */
export async function checkGroups(
  ids: readonly string[],
  present: readonly string[],
  { grants, organizationId }: Pick<Principal, "grants" | "organizationId">,
  kube: KubeClient,
  field = "variable_group_ids",
): Promise<void> {
  const added = ids.flatMap((id, index) => (present.includes(id) ? [] : [{ id, index }]));
  requireReadOfAdded(ids, present, { grants });
  const found = await Promise.all(added.map(({ id }) => groupIfAny(kube, organizationId, id)));
  const unknown = added.filter((_, at) => found[at] === undefined);
  if (unknown.length > 0) {
    throw failures.validation(
      unknown.map(({ id, index }) => ({
        field: `${field}[${index}]`,
        code: "VARIABLE_GROUP_UNKNOWN",
        message: `the organization has no variable group ${id}`,
      })),
    );
  }
}
