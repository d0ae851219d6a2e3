import { patchDescriptionBody, patchImageBody, patchNameBody } from "@slipway/crds";
import { refuseForeignImage } from "../../builds/platform.ts";
import { waitForFirstDomain } from "../../domains/wait.ts";
import { defineProjectRoute } from "../../http/route.ts";
import { changeProject } from "../change.ts";
import { requireCredentialsFor, requireImage, withImage } from "../image-change.ts";
import { messageOnly } from "./schemas.ts";

export const updateName = defineProjectRoute({
  operationId: "updateProjectName",
  method: "PATCH",
  path: "/v1/project/:id/name",
  summary: "Change a project's name",
  description: "The default domain, which was made from the first name, stays as it is.",
  tags: ["Settings"],
  body: patchNameBody,
  responses: { 200: { description: "Changed.", schema: messageOnly } },
  refusals: [409, 503],
  handler: async ({ project, body: { name } }, services) => {
    await waitForFirstDomain(project, services);
    await changeProject(project, services, (spec) => ({ ...spec, name }));
    return { status: 200, body: { status: "success", message: "name updated" } };
  },
});

export const updateDescription = defineProjectRoute({
  operationId: "updateProjectDescription",
  method: "PATCH",
  path: "/v1/project/:id/description",
  summary: "Change a project's description",

  tags: ["Settings"],
  body: patchDescriptionBody,
  responses: { 200: { description: "Changed.", schema: messageOnly } },
  refusals: [409, 503],
  handler: async ({ project, body: { description } }, services) => {
    await changeProject(project, services, (spec) => ({ ...spec, description }));
    return { status: 200, body: { status: "success", message: "description updated" } };
  },
});

export const updateImage = defineProjectRoute({
  operationId: "updateProjectImage",
  method: "PATCH",
  path: "/v1/project/:id/image",
  summary: "Deploy another image",
  description:
    "The same image again is deployed anew. A tag that never changes, or a digest, is advised over latest. A private " +
    "image must come from a registry that the project's credentials are for.",
  tags: ["Settings"],
  body: patchImageBody,
  responses: { 200: { description: "A new deployment starts in the background.", schema: messageOnly } },
  refusals: [409],
  handler: async ({ project, body }, services) => {
    requireImage(project);
    refuseForeignImage(body.image, "image", project.organizationId, services);
    const now = services.now().toISOString();
    await changeProject(project, services, (spec) => withImage(spec, body.image, now), {
      fields: { "image.url": "image" },
      prepare: (wanted, live, kube) => requireCredentialsFor(kube, wanted, live),
    });
    return { status: 200, body: { status: "success", message: "image updated, a new deployment starts" } };
  },
});
