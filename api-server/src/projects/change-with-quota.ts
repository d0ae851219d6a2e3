import type { Project, ProjectSpec } from "@slipway/crds";
import { Failure } from "../errors/failure.ts";
import type { Services } from "../services.ts";
import type { ApiProject } from "./api-project.ts";
import { type Change, type ChangeOptions, type ChangeServices, changeProject } from "./change.ts";
import { projectResource } from "./kinds.ts";
import { type KnownSlot, restoreProjectSlot, takeProjectSlot } from "./quotas.ts";

/**
 * A change of the spec that may need another slot: it is taken before the spec is written. When the spec was not written
 * after all, the slot becomes the one that the spec needs which is live by then: another replica may have written it
 * between two tries. After a write whose outcome is unknown (5xx) the new slot stays: the operator goes by what the
 * cluster has.
 * @throws Failure as `changeProject` and `takeProjectSlot` do
 */
export async function changeWithSlot(
  project: ApiProject,
  services: ChangeServices & Pick<Services, "catalog" | "ledger">,
  change: (spec: ProjectSpec, live: Project) => ProjectSpec,
  options: ChangeOptions = {},
): Promise<Change> {
  const identity = { organizationId: project.organizationId, projectId: project.id };
  let taken: KnownSlot;
  try {
    return await changeProject(project, services, change, {
      ...options,
      prepare: async (wanted, live, kube) => {
        await options.prepare?.(wanted, live, kube);
        taken = await takeProjectSlot(services, { ...identity, spec: wanted.spec });
      },
    });
  } catch (error) {
    // What cannot be restored now, the operator sets right.
    if (error instanceof Failure && error.status < 500) {
      await restore(project, identity, taken, services).catch(() => undefined);
    }
    throw error;
  }
}

async function restore(
  { resource }: ApiProject,
  identity: { organizationId: string; projectId: string },
  taken: KnownSlot,
  services: Pick<Services, "catalog" | "kube" | "ledger">,
): Promise<void> {
  if (taken === undefined) {
    return;
  }
  const { namespace, name } = resource.metadata;
  const live = await services.kube.getOrUndefined<Project>(projectResource, { namespace, name });
  await restoreProjectSlot(services, { ...identity, spec: live?.spec }, taken);
}
