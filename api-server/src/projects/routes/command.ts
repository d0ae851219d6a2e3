import { type ProjectSpec, patchCommandBody } from "@slipway/crds";
import { defineProjectRoute } from "../../http/route.ts";
import { requireTypeWith } from "../api-project.ts";
import { changeProject } from "../change.ts";
import { requireImage } from "../image-change.ts";
import { messageOnly } from "./schemas.ts";

/** The spec with another command of its instances; null for the image's own. Pure. */
export function withCommand(spec: ProjectSpec, command: readonly string[] | null): ProjectSpec {
  const { command: _before, ...rest } = spec;
  return command === null ? rest : { ...rest, command: [...command] };
}

export const updateCommand = defineProjectRoute({
  operationId: "updateProjectCommand",
  method: "PATCH",
  path: "/v1/project/:id/command",
  summary: "Change the command of the instances",
  description:
    "Of HTTP projects and workers that are not built from Git, which have the start command of their build. It takes the place of " +
    "the image's entrypoint and command, so that several projects can run one image.",
  tags: ["Settings"],
  body: patchCommandBody,
  responses: { 200: { description: "A new deployment starts in the background.", schema: messageOnly } },
  refusals: [409, 503],
  handler: async ({ project, body }, services) => {
    requireTypeWith(project, "command");
    requireImage(project);
    await changeProject(project, services, (spec) => withCommand(spec, body.command));
    return { status: 200, body: { status: "success", message: "command updated" } };
  },
});
