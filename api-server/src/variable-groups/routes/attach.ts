import { attachVariableGroupsBody, type ProjectSpec } from "@slipway/crds";
import type { Principal } from "../../auth/principal.ts";
import { defineProjectRoute } from "../../http/route.ts";
import { requireTypeWith } from "../../projects/api-project.ts";
import { changeProject } from "../../projects/change.ts";
import { messageOnly } from "../../projects/routes/schemas.ts";
import { checkGroups, requireReadOfAdded } from "../attach.ts";

/** The spec with exactly these groups. Pure. */
function withGroups({ variableGroups: _, ...spec }: ProjectSpec, ids: readonly string[]): ProjectSpec {
  return ids.length === 0 ? spec : { ...spec, variableGroups: [...ids] };
}

export const attachVariableGroups = defineProjectRoute({
  operationId: "updateProjectVariableGroups",
  method: "PATCH",
  path: "/v1/project/:id/variable-groups",
  summary: "Attach variable groups to a project",
  description:
    "Of http, worker and job projects. The list is complete and ordered: a later group wins over one before it, the project's own variables over all. " +
    "Attaching one needs `organization.variable-groups.read on organization:*`, too.",
  tags: ["Settings"],
  body: attachVariableGroupsBody,
  responses: {
    200: { description: "Attached; a deployment starts in the background.", schema: messageOnly },
  },
  refusals: [409],
  handler: async ({ principal, project, body }, services) => {
    requireTypeWith(project, "variableGroups");
    const { variable_group_ids: ids } = body;
    const present = project.resource.spec.variableGroups ?? [];
    const caller = principal as Principal;
    await checkGroups(ids, present, caller, services.kube);
    const change = (spec: ProjectSpec) => {
      // It may have been detached since the project was read.
      requireReadOfAdded(ids, spec.variableGroups ?? [], caller);
      return withGroups(spec, ids);
    };
    await changeProject(project, services, change, { fields: { variableGroups: "variable_group_ids" } });
    return { status: 200, body: { status: "success", message: "variable groups attached" } };
  },
});
