import { catalogExamples } from "./catalogs.ts";
import { creationExamples } from "./creation.ts";
import type { OperationExamples } from "./example.ts";
import { projectExamples } from "./projects.ts";

/** Examples by operation id. An operation without any fails a test. */
export const examples: Readonly<Record<string, OperationExamples>> = {
  ...catalogExamples,
  ...creationExamples,
  ...projectExamples,
};
