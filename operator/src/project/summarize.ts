/** The only place where a project's status is made: conditions, phase and numbers from what a reconcile has found. Pure. */

import type { Project, ProjectStatus } from "@slipway/crds";
import { ConditionSet } from "../runtime/condition-set.ts";
import type { Rollout, RolloutProblem } from "./http/rollout.ts";
import { phaseOf } from "./phase.ts";

/** Reason and message of a condition that is not as it should be. */
export interface Finding {
  reason: string;
  message: string;
}

/** What one reconcile has found out about a project. What is absent was not looked at. */
export interface Findings {
  /** Why the spec cannot be carried out; absent when it can. */
  refusal?: Finding;
  /** Why the children could not be brought to their desired state; absent when they could. */
  failure?: Finding;
  rollout?: Rollout;
  /** The public route: absent for a private project. */
  route?: { host: string; blocked?: Finding };
  /** The volume: absent without persistent storage. */
  volume?: { bound: boolean };
  /** What one instance gets, as quantities. */
  limits?: { cpu: string; memory: string };
}

/** The status of a project after a reconcile. */
export function summarize(project: Project, found: Findings, now: Date): ProjectStatus {
  const previous = project.status ?? {};
  const generation = project.metadata.generation ?? 0;
  const paused = project.spec.paused === true;
  const set = new ConditionSet(previous.conditions ?? [], { now, generation });

  setAccepted(set, found);
  setWorkload(set, found, paused);
  setProgress(set, found, paused, previous);
  setRoute(set, found);
  setVolume(set, found);
  setReady(set, found, paused);

  const conditions = set.list();
  const served = previous.image !== undefined || set.isTrue("Ready");
  const { rollout } = found;
  return {
    ...previous,
    observedGeneration: generation,
    conditions,
    phase: phaseOf({ paused, served, previous: previous.phase, conditions }),
    ...(found.refusal ? {} : routeFields(project, found)),
    ...(rollout
      ? {
          desiredInstances: rollout.wanted,
          currentInstances: rollout.existing,
          readyInstances: rollout.serving,
        }
      : {}),
    ...(set.isTrue("Ready") && project.spec.image
      ? { image: servingImage(project.spec.image.url, rollout?.imageDigest) }
      : {}),
    ...(found.limits
      ? { maxCpu: found.limits.cpu, maxMemory: found.limits.memory, plan: project.spec.plan }
      : {}),
  };
}

function setAccepted(set: ConditionSet, { refusal }: Findings): void {
  set.set(
    refusal
      ? { type: "Accepted", status: "False", ...refusal }
      : { type: "Accepted", status: "True", reason: "Accepted" },
  );
}

function setWorkload(set: ConditionSet, { rollout }: Findings, paused: boolean): void {
  const type = "WorkloadAvailable";
  if (!rollout) {
    if (!set.get(type)) {
      set.set({ type, status: "False", reason: "Unavailable", message: "No instance has been made yet." });
    }
  } else if (paused) {
    set.set({ type, status: "False", reason: "Paused", message: "The project is paused." });
  } else if (rollout.serving >= rollout.wanted && rollout.wanted > 0) {
    set.set({ type, status: "True", reason: "Available" });
  } else if (rollout.serving > 0) {
    set.set({ type, status: "False", reason: "PartlyAvailable", message: "Some instances do not serve." });
  } else {
    const problem: RolloutProblem = rollout.problem ?? {
      reason: "Unavailable",
      message: "No instance serves yet.",
    };
    set.set({ type, status: "False", ...problem });
  }
}

function setProgress(set: ConditionSet, found: Findings, paused: boolean, previous: ProjectStatus): void {
  const { rollout } = found;
  const type = "Progressing";
  if (rollout?.deadlineExceeded) {
    const message = rollout.problem?.message ?? "The new version did not start to serve in time.";
    set.set({ type: "RolloutFailed", status: "True", reason: "DeadlineExceeded", message });
  } else if (rollout) {
    set.remove("RolloutFailed");
  }
  if (!rollout) {
    set.set({ type, status: "False", ...(found.refusal ?? found.failure ?? { reason: "Settled" }) });
  } else if (paused) {
    set.set(
      rollout.existing > 0 || !rollout.observed
        ? { type, status: "True", reason: "Pausing", message: "Instances are being stopped." }
        : { type, status: "False", reason: "Paused", message: "The project is paused." },
    );
  } else if (rollout.complete) {
    set.set({ type, status: "False", reason: "Settled" });
  } else {
    set.set({ type, status: "True", ...underWay(rollout, previous) });
  }
}

function underWay(rollout: Rollout, previous: ProjectStatus): Finding {
  if (rollout.problem) {
    return rollout.problem;
  }
  if (rollout.pulling) {
    return { reason: "PullingImage", message: "The image is being pulled." };
  }
  if (previous.phase === "stopped" || previous.phase === "resuming") {
    return { reason: "Resuming", message: "Instances are being started again." };
  }
  if (previous.image === undefined) {
    return { reason: "Creating", message: "The first instances are being started." };
  }
  return rollout.scaling
    ? { reason: "Scaling", message: "The number of instances is being changed." }
    : { reason: "RollingOut", message: "A new version is being rolled out." };
}

function setRoute(set: ConditionSet, { route, refusal }: Findings): void {
  if (route) {
    set.set(
      route.blocked
        ? { type: "DomainReady", status: "False", ...route.blocked }
        : { type: "DomainReady", status: "True", reason: "DomainAssigned" },
    );
  } else if (!refusal) {
    set.remove("DomainReady");
  }
}

function setVolume(set: ConditionSet, { volume, refusal }: Findings): void {
  if (volume) {
    set.set(
      volume.bound
        ? { type: "StorageReady", status: "True", reason: "VolumeBound" }
        : {
            type: "StorageReady",
            status: "False",
            reason: "VolumePending",
            message: "The volume is not bound yet.",
          },
    );
  } else if (!refusal) {
    set.remove("StorageReady");
  }
}

/** Ready repeats the first thing that stands in its way. */
function setReady(set: ConditionSet, found: Findings, paused: boolean): void {
  const type = "Ready";
  const { refusal, failure, rollout } = found;
  const obstacle =
    refusal ??
    failure ??
    (paused ? { reason: "Paused", message: "The project is paused." } : undefined) ??
    failed(set.get("RolloutFailed"), "True") ??
    failed(set.get("DomainReady"), "False") ??
    failed(set.get("StorageReady"), "False") ??
    (rollout && !rollout.complete ? failed(set.get("Progressing"), "True") : undefined) ??
    failed(set.get("WorkloadAvailable"), "False");
  set.set(
    obstacle
      ? { type, status: "False", reason: obstacle.reason, message: obstacle.message }
      : { type, status: "True", reason: "Ready" },
  );
}

function failed(condition: (Finding & { status: string }) | undefined, bad: string): Finding | undefined {
  return condition?.status === bad ? condition : undefined;
}

function routeFields(project: Project, { route }: Findings): Partial<ProjectStatus> {
  const current = project.spec.exposure;
  return {
    domain: route?.host,
    url: route ? `http://${route.host}` : undefined,
    exposure: current ? { current } : undefined,
  };
}

function servingImage(reference: string, digest: string | undefined): NonNullable<ProjectStatus["image"]> {
  return digest ? { reference, digest } : { reference };
}
