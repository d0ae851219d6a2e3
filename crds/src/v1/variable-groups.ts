/** The bodies of variable groups' routes. */

import { z } from "zod";
import { setOf } from "../rule.ts";
import {
  ATTACHED_GROUPS_MAX,
  GROUP_BYTES_MAX,
  variableGroupDescription,
  variableGroupName,
  variableGroupTitle,
} from "../variablegroup.ts";
import { environment } from "./settings.ts";

const encoder = new TextEncoder();

const variables = environment
  .refine(
    (all) =>
      all.reduce((sum, { name, value }) => sum + encoder.encode(name + value).length, 0) <= GROUP_BYTES_MAX,
    { message: `must not be longer than ${GROUP_BYTES_MAX / 1_024} KiB together` },
  )
  .describe("The variables, each value literal.");

export const createVariableGroupBody = z.strictObject({
  name: variableGroupTitle,
  description: variableGroupDescription.optional(),
  variables,
});

export const patchVariableGroupBody = z
  .strictObject({
    name: variableGroupTitle.optional(),
    description: variableGroupDescription
      .nullable()
      .describe("What the variables are for; null removes it.")
      .optional(),
    variables: variables
      .describe("The complete list: a variable that is absent from it is removed. Absent, all stay.")
      .optional(),
  })
  .refine((body) => Object.keys(body).length > 0, { message: "must have at least one member" })
  .meta({ minProperties: 1 });

/** Groups that a project attaches. */
export const variableGroupIds = setOf(
  z.array(variableGroupName.describe("Id of a variable group.")).max(ATTACHED_GROUPS_MAX),
).describe(
  "The complete list in its order: a later group wins over one before it, the project's own variables over all.",
);

export const attachVariableGroupsBody = z.strictObject({ variable_group_ids: variableGroupIds });
