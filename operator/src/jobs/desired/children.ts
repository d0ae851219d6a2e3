/** Every child of a scheduled job, as a pure function of it. */

import type { DesiredObject } from "../../desired.ts";
import { persistentVolumeClaim } from "../../workload/pvc.ts";
import type { JobApp } from "./app.ts";
import { cronJob } from "./cron-job.ts";

/** The children in the order in which they are applied: dependencies first. */
export function desired(app: JobApp): DesiredObject[] {
  return [persistentVolumeClaim(app), cronJob(app)].filter((object) => object !== undefined);
}
