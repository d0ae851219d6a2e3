import { type EnvironmentVariable, VARIABLE_GROUP_ID, type VariableGroup } from "@slipway/crds";
import { z } from "zod";

/** A variable group as `/v1` shows it. */
export const groupSchema = z.object({
  id: z.string().regex(VARIABLE_GROUP_ID),
  name: z.string(),
  description: z.string().optional(),
  created_at: z.string(),
});

/** One with its variables, for those who may read groups. */
export const wholeGroupSchema = groupSchema.extend({
  variables: z.array(z.object({ name: z.string(), value: z.string() })),
});

export function groupView({ metadata, spec }: VariableGroup): z.output<typeof groupSchema> {
  return {
    id: metadata.name,
    name: spec.displayName,
    ...(spec.description === undefined ? {} : { description: spec.description }),
    created_at: metadata.creationTimestamp ?? "",
  };
}

export const wholeGroupView = (group: VariableGroup, variables: readonly EnvironmentVariable[]) => ({
  ...groupView(group),
  variables: [...variables],
});
