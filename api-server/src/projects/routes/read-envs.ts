import { z } from "zod";
import { defineProjectRoute } from "../../http/route.ts";
import { readEnvironment } from "../envs/read.ts";
import { requireTypeWith } from "../require-type.ts";
import { success } from "./schemas.ts";

export const readEnvs = defineProjectRoute({
  operationId: "readProjectEnvs",
  method: "GET",
  path: "/v1/project/:id/envs",
  summary: "Read a project's environment variables, in clear text",
  description:
    "As they are in the cluster now, those included that were given as Secrets with kubectl. In the order in which they " +
    "were sent; others follow by name.",
  tags: ["Settings"],
  responses: {
    200: {
      description: "The environment variables.",
      schema: success({ data: z.array(z.object({ name: z.string(), value: z.string() })) }),
    },
  },
  refusals: [400, 409],
  // Each reads megabytes of Secrets.
  maxConcurrent: 8,
  handler: async ({ project }, { kube, environments }) => {
    requireTypeWith(project, "envsFrom");
    const { resource } = project;
    const { namespace, name } = resource.metadata;
    const data = await environments.read(`${namespace}/${name}`, () => readEnvironment(kube, resource));
    return { status: 200, headers: { "cache-control": "no-store" }, body: { status: "success", data } };
  },
});
