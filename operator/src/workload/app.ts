/** The input of a project's pods, for any type, and their placement on nodes. */

import { labels, MANAGED_BY, type Project } from "@slipway/crds";
import { z } from "zod";

/** CPU, memory and ephemeral storage as Kubernetes quantities. */
export interface ResourceList {
  cpu: string;
  memory: string;
  "ephemeral-storage": string;
}

/** A container of a project, ready to be turned into objects. Every field is already validated. */
export interface Workload {
  type: Project["spec"]["type"];
  /** The project's id: the name of every child. */
  id: string;
  namespace: string;
  organizationId: string;
  image: string;
  /** Name of a `kubernetes.io/dockerconfigjson` Secret of the same namespace. */
  pullSecret?: string;
  /** Secrets whose keys become environment variables, later ones winning. */
  envSecrets: readonly string[];
  /** When the owner requested the same settings to be deployed again. */
  restartedAt?: string;
  resources: { requests: ResourceList; limits: ResourceList };
  /** Version of what its pods' template is made from; absent: the first. */
  templateVersion?: number;
  /** Where its pods run. */
  placement?: Placement;
  /** A volume that outlives its pods; absent for projects that keep nothing. */
  volume?: { capacityGb: number; mountPath: string; storageClass?: string };
}

/** The owner of a child object, and its labels. */
export type ChildOwner = Pick<Workload, "type" | "id" | "namespace" | "organizationId">;

/** Labels of every child, pods included. */
export function childLabels(app: Omit<ChildOwner, "namespace">): Record<string, string> {
  return {
    [labels.managedBy]: MANAGED_BY,
    [labels.organization]: app.organizationId,
    [labels.type]: app.type,
    [labels.project]: app.id,
  };
}

/** Metadata of a child: named after the project. The applier adds the owner reference. */
export function childMetadata(app: ChildOwner) {
  return { name: app.id, namespace: app.namespace, labels: childLabels(app) };
}

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
