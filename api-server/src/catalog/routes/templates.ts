import { z } from "zod";
import { defineRoute } from "../../http/route.ts";
import { success } from "../../projects/routes/schemas.ts";

const templateSchema = z.object({
  id: z.string().describe("The creation's template_id."),
  revision: z.int().min(1).describe("The creation's template_revision."),
  name: z.string(),
  description: z.string().optional(),
  body: z
    .looseObject({})
    .describe("Body of a creation, without a name. The request's own members win over it."),
});

export const templates = defineRoute({
  operationId: "listTemplates",
  method: "GET",
  path: "/v1/project/templates",
  summary: "List the templates that projects can be created from",
  tags: ["Catalogs"],
  responses: {
    200: { description: "The templates.", schema: success({ data: z.array(templateSchema) }) },
  },
  handler: (_call, { catalog }) => ({
    status: 200,
    body: { status: "success", data: catalog.current.templates },
  }),
});
