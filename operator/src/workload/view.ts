/** Resolves a Project to the input of its pods, for any type. Pure. */

import { parseQuantity } from "@slipway/controller-runtime";
import { type Catalog, imageReference, type Project, type ProjectPlan } from "@slipway/crds";
import { registrySecretName } from "../registry/login.ts";
import { groupSource, secretSource } from "../variable-groups/shared.ts";
import type { Workload } from "./app.ts";

/** What a workload is derived from beside its project. */
export interface WorkloadOrigin {
  organizationId: string;
  plan: Pick<ProjectPlan, "resources">;
  /**
   * By name of a Secret whose variables refer to other projects, the Secret with their values; by source of variables that projects share,
   * the Secret with a copy of them.
   */
  resolved?: ReadonlyMap<string, string>;
}

/** What every type of project has of its container. */
export function toWorkload(
  project: Project,
  { organizationId, plan, resolved }: WorkloadOrigin,
  { storagePlans }: Pick<Catalog, "storagePlans">,
): Workload {
  const { metadata, spec } = project;
  const { storage } = spec;
  const volume = storage?.persistent
    ? {
        capacityGb: storage.capacity,
        mountPath: storage.dirPathToPersist ?? "/data",
        storageClass: storagePlans.find(({ persistent }) => persistent)?.storageClass,
      }
    : undefined;
  const { requests, limits } = plan.resources;
  const disk = `${volume ? 1 : (storage?.capacity ?? 1)}Gi`;
  const reserved = lesser(storagePlans.find(({ persistent }) => !persistent)?.ephemeralRequest, disk);
  return {
    type: spec.type,
    id: metadata.name,
    namespace: metadata.namespace ?? "",
    organizationId,
    image: spec.image ? imageReference(spec.image) : "",
    pullSecret: spec.image?.awsCredentialsRef ? registrySecretName(project) : spec.image?.pullSecretRef?.name,
    envSecrets: envSecretsOf(spec, resolved ?? new Map()),
    restartedAt: spec.restartedAt,
    resources: {
      requests: { ...requests, "ephemeral-storage": reserved },
      limits: { ...limits, "ephemeral-storage": disk },
    },
    volume,
  };
}

/** The Secrets with a container's variables: a later one wins over one before it. */
function envSecretsOf(
  { variableGroups = [], envsFrom = [] }: Project["spec"],
  resolved: ReadonlyMap<string, string>,
): string[] {
  const ofGroups = new Set(variableGroups.flatMap((name) => resolved.get(groupSource(name)) ?? []));
  const ofSecrets = envsFrom.flatMap(({ name }, index) => {
    const [values, copy] = [resolved.get(name), resolved.get(secretSource(name))];
    if (values !== undefined) {
      // The values win over the references.
      return [name, values];
    }
    const before = envsFrom[index - 1]?.name;
    // One copy has the variables of several.
    return copy !== undefined && before !== undefined && resolved.get(secretSource(before)) === copy
      ? []
      : [copy ?? name];
  });
  return [...ofGroups, ...ofSecrets];
}

/** Kubernetes refuses a container that reserves more than it may use. */
function lesser(request: string | undefined, limit: string): string {
  const wanted = parseQuantity(request ?? limit) ?? 0n;
  return request !== undefined && wanted < (parseQuantity(limit) ?? 0n) ? request : limit;
}
