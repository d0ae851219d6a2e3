import { z } from "zod";
import { matching, objectName, text } from "./fields.ts";
import type { Resource } from "./metadata.ts";

/** Named sets of variables of an organization, which its projects attach in an order. */

/** The form of a group's name, which is its id. */
export const VARIABLE_GROUP_ID = /^[a-z]([a-z0-9-]{0,38}[a-z0-9])?$/;

/** Groups that one project attaches. */
export const ATTACHED_GROUPS_MAX = 10;

/** Bytes of names and values of one group: every project that attaches it has a copy. */
export const GROUP_BYTES_MAX = 65_536;

/** Name of a group in a spec. */
export const variableGroupName = matching(
  VARIABLE_GROUP_ID,
  "must be at most 40 lowercase letters, digits and hyphens, beginning with a letter",
  40,
  "Name of a VariableGroup of the project's own namespace.",
).min(1);

/** The name that people gave a group. */
export const variableGroupTitle = text(1, 64, "Name that people gave it. Not unique.");
export const variableGroupDescription = text(1, 256, "What the variables are for.");

/** The spec of a VariableGroup. */
export const variableGroupSpec = z
  .strictObject({
    displayName: variableGroupTitle,
    description: variableGroupDescription.optional(),
    secretRef: z
      .strictObject({ name: objectName("Name of the Secret.") })
      .describe("Secret of the same namespace whose keys are the variables, each value literal."),
  })
  .describe("A named set of variables of an organization.");
export type VariableGroupSpec = z.output<typeof variableGroupSpec>;

/** A named set of variables. Nothing reports about it: what becomes of its values, each project says. */
export type VariableGroup = Resource<"VariableGroup", VariableGroupSpec, never>;
