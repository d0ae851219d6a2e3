import { withRules } from "../rule.ts";
import { projectRules, projectTransitions } from "./rules.ts";
import { type ProjectSpecFields, projectSpecFields } from "./spec-fields.ts";

/** A Project's spec with every rule: what the CRD and zod accept. */
export const projectSpec = withRules(projectSpecFields, projectRules, projectTransitions);
export type ProjectSpec = ProjectSpecFields;
