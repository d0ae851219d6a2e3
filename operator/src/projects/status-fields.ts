import type { ConditionSet } from "@slipway/controller-runtime";
import type {
  Deployment,
  Project,
  ProjectConditionCatalog,
  ProjectPhase,
  ProjectReason,
  ProjectStatus,
} from "@slipway/crds";

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

// Derives a project's phase, the `status` of the public API, and nothing else does. Pure.

/** What a phase is decided from. */
export interface PhaseInput {
  /** The owner has stopped it; a job's schedule that is closed rests as one that is paused. */
  paused: boolean;
  /** A version of it has served before. */
  served: boolean;
  /** The phase decided last: what was stopped resumes until it runs. */
  previous?: ProjectPhase;
  conditions: readonly { type: string; status: string; reason: string }[];
}

/**
 * `failed`: nothing has ever served and waiting does not help. `failing`: it is not as requested, through a fault, but it
 * serves, has served, or is still being tried.
 */
export function phaseOf({ paused, served, previous, conditions }: PhaseInput): ProjectPhase {
  const find = (type: string) => conditions.find((each) => each.type === type);
  const progress = find("Progressing")?.reason ?? "";
  const accepted = find("Accepted");
  const domain = find("DomainReady");
  if (find("Ready")?.status === "True") {
    return "running";
  }
  if (accepted?.status === "False" && !PENDING_REASONS.has(accepted.reason)) {
    return served ? "failing" : "failed";
  }
  if (FAILED_REASONS.has(find("Ready")?.reason ?? "")) {
    return served ? "failing" : "failed";
  }
  if (paused) {
    // Instances that are ending, or that were not observed since, may still answer.
    return STOPPED_REASONS.has(progress) ? "stopped" : "deploying";
  }
  if (domain?.status === "False" && !PENDING_REASONS.has(domain.reason)) {
    return served ? "failing" : "failed";
  }
  if (find("RolloutFailed")?.status === "True") {
    return served ? "failing" : "failed";
  }
  if (FAULT_REASONS.has(progress)) {
    return "failing";
  }
  const workload = find("WorkloadAvailable");
  if (progress === "Scaling" && (workload?.status === "True" || workload?.reason === "PartlyAvailable")) {
    // The version is the desired one, and it serves: changes by the autoscaler do not matter.
    return domain?.status === "False" ? "deploying" : "running";
  }
  if (previous === "stopped" || previous === "resuming") {
    return "resuming";
  }
  if (progress === "PullingImage") {
    return "downloading";
  }
  return served ? "deploying" : "creating";
}

/** Reasons of `Progressing` once nothing runs that is not desired. */
const STOPPED_REASONS: ReadonlySet<string> = new Set<ProjectReason>(["Paused", "ScheduleClosed"]);

/** Reasons that something else has to come first, not that the project is wrong. */
const PENDING_REASONS: ReadonlySet<string> = new Set<ProjectReason>([
  "SecretNotFound",
  "NamespaceNotGuarded",
  "LedgerUnavailable",
  "DomainPending",
  "BuildPending",
]);

/** Reasons of `Ready` when the project's objects could not be applied as desired. */
const FAILED_REASONS: ReadonlySet<string> = new Set([
  "ApiRefused",
  "ChildConflict",
  "InternalError",
  "VolumeNotExpandable",
  "VolumeQuotaExceeded",
  "ReferenceInvalid",
  "ReferenceCycle",
]);

/** Reasons of a state that does not move because of a fault: of the application, its image, or a database's instances. */
const FAULT_REASONS: ReadonlySet<string> = new Set<ProjectReason>([
  "ContainerCrashing",
  "ContainerInvalid",
  "ImagePullFailed",
  "InstanceRefused",
  "OutOfMemory",
  "ProbeFailing",
  "PrimaryMissing",
  "FailingOver",
  "RecoveryRefused",
  "DiskFull",
]);
