import type { ConditionSet } from "@slipway/controller-runtime";
import type { Deployment, Project, ProjectConditionCatalog, ProjectStatus } from "@slipway/crds";
import { phaseOf } from "./phase.ts";

/** The plan in force, and what one container gets of it, as quantities. */
export function setLimits(
  { spec }: Project,
  { cpu, memory }: { cpu: string; memory: string },
  status: ProjectStatus,
): void {
  status.maxCpu = cpu;
  status.maxMemory = memory;
  status.plan = spec.plan;
}

/** The image in force. @param digest of the manifest that runs, where it is known */
export function setImage({ spec: { image } }: Project, status: ProjectStatus, digest?: string): void {
  if (image) {
    status.image = { reference: image.url, ...(digest ? { digest } : {}) };
  }
}

/** Sets the deployments, newest first, and the newest one in short. */
export function setDeployments(status: ProjectStatus, deployments: readonly Deployment[]): void {
  const [newest] = deployments;
  if (!newest) {
    status.deployments = undefined;
    status.lastDeployment = undefined;
    return;
  }
  const { id, status: how, startedAt, finishedAt, image, settingsHash, generation, message } = newest;
  status.deployments = [...deployments];
  status.lastDeployment = {
    id,
    status: how,
    startedAt,
    finishedAt,
    image,
    settingsHash,
    generation,
    message,
  };
}

/** Derives the phase from conditions that are final. `status` still has the previous phase and image. */
export function setPhase(
  project: Project,
  conditions: ConditionSet<ProjectConditionCatalog>,
  status: ProjectStatus,
): void {
  status.phase = phaseOf({
    paused: project.spec.paused === true || project.spec.job?.closedAt !== undefined,
    served: status.image !== undefined || status.database?.bootstrappedAt !== undefined,
    previous: status.phase,
    conditions: conditions.list(),
  });
}
