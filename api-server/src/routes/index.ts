import type { AnyRoute } from "../http/route.ts";
import { docs, docsFile } from "./docs/read.ts";
import { databaseCatalog, databasePlans, httpPlans, jobPlans, storagePlans } from "./v1/catalog/plans.ts";
import { readOpenApi } from "./v1/openapi/read.ts";
import { create } from "./v1/project/create.ts";
import { updateCustomDomains } from "./v1/project/custom-domains.ts";
import { deployments } from "./v1/project/deployments.ts";
import { updateDescription } from "./v1/project/description.ts";
import { updateDomain } from "./v1/project/domain.ts";
import { updateExposure } from "./v1/project/exposure.ts";
import { updateImage } from "./v1/project/image.ts";
import { list } from "./v1/project/list.ts";
import { logs } from "./v1/project/logs.ts";
import { updateName } from "./v1/project/name.ts";
import { pause } from "./v1/project/pause.ts";
import { updatePlan } from "./v1/project/plan.ts";
import { read } from "./v1/project/read.ts";
import { readEnvs } from "./v1/project/read-envs.ts";
import { remove } from "./v1/project/remove.ts";
import { resume } from "./v1/project/resume.ts";
import { rollback } from "./v1/project/rollback.ts";
import { updateSchedule } from "./v1/project/schedule.ts";
import { updateEnvs } from "./v1/project/update-envs.ts";
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
  deployments,
  readEnvs,
  updateEnvs,
  updateImage,
  updatePlan,
  updateSchedule,
  pause,
  resume,
  rollback,
  remove,
  updateName,
  updateDescription,
  updateDomain,
  updateCustomDomains,
  updateExposure,
  readOpenApi,
  docs,
  docsFile,
];
