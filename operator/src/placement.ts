/** Placement of pods of a kind: their nodes and their isolation from them. Settings of the platform. */

import { z } from "zod";

const name = z.string().max(253);
const toleration = z.strictObject({
  key: name.optional(),
  operator: z.enum(["Exists", "Equal"]).optional(),
  value: name.optional(),
  effect: z.enum(["NoSchedule", "PreferNoSchedule", "NoExecute"]).optional(),
  tolerationSeconds: z.int().optional(),
});

export const placement = z.strictObject({
  runtimeClassName: name
    .default("")
    .describe("RuntimeClass, such as one of gVisor; the nodes' own when empty."),
  nodeSelector: z.record(name, name).default({}),
  tolerations: z.array(toleration).default([]),
  hostUsers: z.boolean().default(true).describe("False gives each pod a user namespace of its own."),
});
export type Placement = z.output<typeof placement>;

/** Fields of a pod's spec. Unset fields are left out: existing pods need not be replaced. */
export function placementFields({
  runtimeClassName = "",
  nodeSelector = {},
  tolerations = [],
  hostUsers = true,
}: Partial<Placement> = {}) {
  return {
    ...(runtimeClassName === "" ? {} : { runtimeClassName }),
    ...(Object.keys(nodeSelector).length === 0 ? {} : { nodeSelector }),
    ...(tolerations.length === 0 ? {} : { tolerations }),
    ...(hostUsers ? {} : { hostUsers }),
  };
}
