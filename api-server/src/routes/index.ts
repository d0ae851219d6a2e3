import type { AnyRoute } from "../http/route.ts";
import { databaseCatalog, databasePlans, httpPlans, jobPlans, storagePlans } from "./v1/catalog/plans.ts";
import { readOpenApi } from "./v1/openapi/read.ts";
import { create } from "./v1/project/create.ts";
import { list } from "./v1/project/list.ts";
import { logs } from "./v1/project/logs.ts";
import { read } from "./v1/project/read.ts";
import { remove } from "./v1/project/remove.ts";
import { templates } from "./v1/template/list.ts";

/** Every operation of the API. A new one is a file and a line here, and a line in the policy table. */
export const routes: readonly AnyRoute[] = [
  httpPlans,
  jobPlans,
  storagePlans,
  databasePlans,
  databaseCatalog,
  templates,
  create,
  list,
  read,
  logs,
  remove,
  readOpenApi,
];
