import { fields, projectPhases, projectTypes } from "@slipway/crds";
import { z } from "zod";
import type { Principal } from "../../auth/principal.ts";
import { defineProjectRoute, defineRoute } from "../../http/route.ts";
import { wholeNumber } from "../../http/validate.ts";
import { listProjects } from "../list.ts";
import { pagination, projectItemSchema, projectSchema, success } from "./schemas.ts";

const query = z
  .strictObject({
    page: wholeNumber(1, 2 ** 31 - 1).default(1),
    limit: wholeNumber(1, 50).default(15),
    type: z.enum(projectTypes).optional(),
    profile: z.enum(["key_value", "cache", "queue"]).optional(),
    status: z.enum(projectPhases).optional(),
    search: fields.text(1, 256, "Matches name or description.").optional(),
    sort_by: z.enum(["updated_at", "created_at"]).default("updated_at"),
    sort_order: z.enum(["desc", "asc"]).default("desc"),
  })
  .refine(({ profile, type }) => profile === undefined || type === "valkey", {
    path: ["profile"],
    message: "profile is allowed only with type=valkey",
    // Also when other parameters are wrong: all broken rules are reported in one answer.
    when: () => true,
  });

export const list = defineRoute({
  operationId: "listProjects",
  method: "GET",
  path: "/v1/project",
  summary: "List the projects that the credential can read",
  tags: ["Projects"],
  query,
  responses: {
    200: {
      description: "One page of projects.",
      schema: success({ data: z.object({ projects: z.array(projectItemSchema), pagination }) }),
    },
  },
  refusals: [400],
  handler: ({ principal, query: asked }, { projects }) => {
    const { organizationId, grants } = principal as Principal;
    const readable = projects
      .list(organizationId)
      .filter((project) => grants.onProject("project.read", project.id));
    return { status: 200, body: { status: "success", data: listProjects(readable, asked) } };
  },
});

export const read = defineProjectRoute({
  operationId: "readProject",
  method: "GET",
  path: "/v1/project/:id",
  summary: "Read a project",
  tags: ["Projects"],
  responses: { 200: { description: "The project.", schema: success({ data: projectSchema }) } },
  handler: ({ project }) => ({ status: 200, json: project.json }),
});
