import { defineProjectRoute } from "../../http/route.ts";
import { projectSchema, success } from "./schemas.ts";

export const read = defineProjectRoute({
  operationId: "readProject",
  method: "GET",
  path: "/v1/project/:id",
  summary: "Read a project",
  tags: ["Projects"],
  responses: { 200: { description: "The project.", schema: success({ data: projectSchema }) } },
  handler: ({ project }) => ({ status: 200, json: project.json }),
});
