import type { Project, ProjectSpec } from "@slipway/crds";
import { Failure } from "../errors/failure.ts";
import { projectResource } from "../resources.ts";
import type { Services } from "../services.ts";
import type { ApiProject } from "./api-project.ts";
import { type Change, type ChangeOptions, type ChangeServices, changeProject } from "./change.ts";
import { type QuotaVersion, reserveProjectQuota, restoreProjectQuota } from "./quotas.ts";

/**
 * A change of the spec that may need another quota, which is reserved before the spec is written. When the write is refused,
 * the reservation is changed to what the live spec needs: another replica may have written it between two attempts. After a
 * write whose outcome is unknown (5xx) the new reservation stays: the operator corrects it by what the cluster has.
 * @throws Failure as `changeProject` and `reserveProjectQuota` do
 */
export async function changeWithQuota(
  project: ApiProject,
  services: ChangeServices & Pick<Services, "catalog" | "ledger">,
  change: (spec: ProjectSpec, live: Project) => ProjectSpec,
  options: ChangeOptions = {},
): Promise<Change> {
  const identity = { organizationId: project.organizationId, projectId: project.id };
  let reserved: QuotaVersion;
  try {
    return await changeProject(project, services, change, {
      ...options,
      prepare: async (wanted, live, kube) => {
        await options.prepare?.(wanted, live, kube);
        reserved = await reserveProjectQuota(services, { ...identity, spec: wanted.spec });
      },
    });
  } catch (error) {
    // The operator corrects what cannot be restored now.
    if (error instanceof Failure && error.status < 500) {
      await restore(project, identity, reserved, services).catch(() => undefined);
    }
    throw error;
  }
}

async function restore(
  { resource }: ApiProject,
  identity: { organizationId: string; projectId: string },
  reserved: QuotaVersion,
  services: Pick<Services, "catalog" | "kube" | "ledger">,
): Promise<void> {
  if (reserved === undefined) {
    return;
  }
  const { namespace, name } = resource.metadata;
  const live = await services.kube.getOrUndefined<Project>(projectResource, { namespace, name });
  await restoreProjectQuota(services, { ...identity, spec: live?.spec }, reserved);
}
