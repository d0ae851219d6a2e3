import type { Project, ProjectSpec } from "@slipway/crds";
import { Failure } from "../errors/failure.ts";
import type { Services } from "../services.ts";
import type { ApiProject } from "./api-project.ts";
import { type Change, type ChangeOptions, changeProject } from "./change.ts";
import { type KnownSlot, releaseProjectSlot, takeProjectSlot } from "./slots.ts";

/**
 * A change of the spec that may need another slot: it is taken before the spec is written, and the old one again when
 * the spec was not written after all. After a write whose outcome is unknown (5xx) the new slot stays: the operator goes
 * by what the cluster has.
 * @throws Failure as `changeProject` and `takeProjectSlot` do
 */
export async function changeWithSlot(
  project: ApiProject,
  services: Services,
  change: (spec: ProjectSpec, live: Project) => ProjectSpec,
  options: ChangeOptions = {},
): Promise<Change> {
  const identity = { organizationId: project.organizationId, projectId: project.id };
  let replaced: ProjectSpec | undefined;
  let taken: KnownSlot;
  try {
    return await changeProject(project, services, change, {
      ...options,
      prepare: async (wanted, live) => {
        await options.prepare?.(wanted, live);
        taken = await takeProjectSlot(services, { ...identity, spec: wanted.spec });
        replaced = live.spec;
      },
    });
  } catch (error) {
    if (replaced && error instanceof Failure && error.status < 500) {
      const restored = replaced.paused
        ? releaseProjectSlot(services, identity, taken)
        : takeProjectSlot(services, { ...identity, spec: replaced });
      // What cannot be restored now, the operator sets right.
      await restored.catch(() => undefined);
    }
    throw error;
  }
}
