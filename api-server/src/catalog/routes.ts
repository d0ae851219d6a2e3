import type { Catalog } from "@slipway/crds";
import { z } from "zod";
import { failures } from "../errors/catalog.ts";
import { defineRoute } from "../http/route.ts";
import type { OperationId } from "../policy/table.ts";
import { success } from "../projects/routes/schemas.ts";
import {
  databaseCatalogView,
  databasePlanSchema,
  databasePlansView,
  engineSchema,
  httpPlanSchema,
  httpPlansView,
  jobPlanSchema,
  jobPlansView,
  storagePlanSchema,
  storagePlansView,
} from "./view.ts";

/** The operations that list plans, databases and templates. */

interface CatalogRoute {
  operationId: OperationId;
  path: `/v1/${string}`;
  summary: string;
  item: z.ZodType;
  refusals?: readonly number[];
  view: (catalog: Catalog) => readonly object[];
}

/** The five catalogs differ only in what they show. */
const catalogRoute = ({ operationId, path, summary, item, refusals = [], view }: CatalogRoute) =>
  defineRoute({
    operationId,
    method: "GET",
    path,
    summary,
    tags: ["Catalogs"],
    responses: { 200: { description: "The catalog.", schema: success({ data: z.array(item) }) } },
    refusals,
    handler: (_call, { catalog }) => ({
      status: 200,
      body: { status: "success", data: view(catalog.current) },
    }),
  });

/** @throws Failure 503 while the platform's operator has switched databases off */
function requireDatabases(catalog: Catalog): Catalog {
  if (!catalog.databasesEnabled) {
    throw failures.catalogUnavailable();
  }
  return catalog;
}

export const httpPlans = catalogRoute({
  operationId: "listHttpPlans",
  path: "/v1/project/plans",
  summary: "List the plans of HTTP projects and workers",
  item: httpPlanSchema,
  view: httpPlansView,
});

export const jobPlans = catalogRoute({
  operationId: "listJobPlans",
  path: "/v1/project/job/plans",
  summary: "List the plans of scheduled jobs",
  item: jobPlanSchema,
  refusals: [503],
  view: (catalog) => {
    if (!catalog.jobsEnabled) {
      throw failures.scheduledJobsUnavailable();
    }
    return jobPlansView(catalog);
  },
});

export const storagePlans = catalogRoute({
  operationId: "listStoragePlans",
  path: "/v1/project/storage/plans",
  summary: "List the prices of storage",
  item: storagePlanSchema,
  view: storagePlansView,
});

export const databasePlans = catalogRoute({
  operationId: "listDatabasePlans",
  path: "/v1/project/database/plans",
  summary: "List the plans of databases",
  item: databasePlanSchema,
  refusals: [503],
  view: (catalog) => databasePlansView(requireDatabases(catalog)),
});

export const databaseCatalog = catalogRoute({
  operationId: "listDatabaseCatalog",
  path: "/v1/project/database/catalog",
  summary: "List the database engines",
  item: engineSchema,
  refusals: [503],
  view: (catalog) => databaseCatalogView(requireDatabases(catalog)),
});

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
