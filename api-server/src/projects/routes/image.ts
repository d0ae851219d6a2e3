import { patchImageBody } from "@slipway/crds";
import { refuseForeignImage } from "../../builds/foreign-image.ts";
import { defineProjectRoute } from "../../http/route.ts";
import { changeProject } from "../change.ts";
import { requireCredentialsFor, requireImage, withImage } from "../image-change.ts";
import { messageOnly } from "./schemas.ts";

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
