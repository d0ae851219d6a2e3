import { backupExamples } from "./backups.ts";
import { buildExamples } from "./builds.ts";
import { catalogExamples } from "./catalogs.ts";
import { creationExamples } from "./creation.ts";
import { databaseExamples } from "./databases.ts";
import type { OperationExamples } from "./example.ts";
import { gitExamples } from "./git.ts";
import { jobRunExamples } from "./job-runs.ts";
import { metricsExamples } from "./metrics.ts";
import { networkExamples } from "./network.ts";
import { projectExamples } from "./projects.ts";

/** Examples by operation id. An operation without any fails a test. */
export const examples: Readonly<Record<string, OperationExamples>> = {
  ...catalogExamples,
  ...creationExamples,
  ...projectExamples,
  ...backupExamples,
  ...databaseExamples,
  ...metricsExamples,
  ...networkExamples,
  ...gitExamples,
  ...buildExamples,
  ...jobRunExamples,
};
