import type { ProjectReason } from "@slipway/crds";
import { type ContainerTermination, type ProbeKill, probeThatEnded } from "./probe-kill.ts";

interface ContainerStatusView {
  name: string;
  ready?: boolean;
  started?: boolean;
  restartCount?: number;
  imageID?: string;
  state?: {
    waiting?: { reason?: string; message?: string };
    terminated?: ContainerTermination;
    running?: { startedAt?: string };
  };
  lastState?: { terminated?: ContainerTermination };
}

/** The parts of a pod that are read here. */
export interface PodView {
  metadata: {
    name?: string;
    uid?: string;
    creationTimestamp?: string;
    deletionTimestamp?: string;
    annotations?: Record<string, string>;
  };
  spec?: { nodeName?: string; containers?: readonly { name: string; image?: string }[] };
  /** The kubelet has reported that it pulls an image for it. */
  pullBegun?: boolean;
  /** The kubelet has reported that it ended its container because of a probe. */
  probeKills?: readonly ProbeKill[];
  status?: {
    phase?: string;
    podIP?: string;
    reason?: string;
    message?: string;
    conditions?: readonly {
      type: string;
      status: string;
      reason?: string;
      message?: string;
      lastTransitionTime?: string;
    }[];
    containerStatuses?: readonly ContainerStatusView[];
  };
}

/** Why instances do not come up, in words for the owner of the project. */
export interface RolloutProblem {
  /** CamelCase, for a condition's reason. */
  reason: ProjectReason;
  message: string;
}

export function appStatus(pod: PodView, container = "app"): ContainerStatusView | undefined {
  return pod.status?.containerStatuses?.find(({ name }) => name === container);
}

// Names of pods, nodes or addresses stay out of these texts: a condition that changes with every retry would be written with every retry.
const WAITING: Readonly<Record<string, RolloutProblem>> = {
  CrashLoopBackOff: {
    reason: "ContainerCrashing",
    message: "The application exits again and again; its logs say why.",
  },
  ErrImagePull: { reason: "ImagePullFailed", message: "The image cannot be pulled." },
  ImagePullBackOff: { reason: "ImagePullFailed", message: "The image cannot be pulled." },
  InvalidImageName: {
    reason: "ImagePullFailed",
    message: "The image's name is not valid.",
  },
  ErrImageNeverPull: { reason: "ImagePullFailed", message: "The image cannot be pulled." },
  CreateContainerConfigError: {
    reason: "ContainerInvalid",
    message:
      "The container cannot be configured: a Secret it names is missing or the image runs as a forbidden user.",
  },
  CreateContainerError: {
    reason: "ContainerInvalid",
    message: "The container cannot be created.",
  },
  RunContainerError: {
    reason: "ContainerInvalid",
    message: "The container cannot be started: its command may not exist in the image.",
  },
};

/** Whether a container cannot be started at all from its image and settings; one that ends again and again was started. */
export function hasStartFault(pod: PodView, container: string): boolean {
  const reason = appStatus(pod, container)?.state?.waiting?.reason;
  return reason !== undefined && reason !== "CrashLoopBackOff" && Object.hasOwn(WAITING, reason);
}

const OUT_OF_MEMORY: RolloutProblem = {
  reason: "OutOfMemory",
  message: "The application uses more memory than its plan has.",
};

const NOT_STARTED: RolloutProblem = {
  reason: "StartupTimeout",
  message: "An instance did not start to serve within the time that the health check gives it.",
};

const NOT_ANSWERING: RolloutProblem = {
  reason: "ProbeFailing",
  message: "An instance that was up no longer answers.",
};

/** An instance that starts is not ready since before its container began; one that was up lost it later. */
function lostReadiness(pod: PodView, container: ContainerStatusView | undefined): boolean {
  const ready = pod.status?.conditions?.find(({ type }) => type === "Ready");
  const started = container?.state?.running?.startedAt;
  return (
    ready?.status === "False" &&
    started !== undefined &&
    Date.parse(ready.lastTransitionTime ?? "") > Date.parse(started)
  );
}

/** A kubelet that does not know a new Secret yet calls that an error, and tries again a second later. */
const SECRETS_NOT_KNOWN_YET = /^failed to sync (secret|configmap) cache/;

function waitingProblem(container: ContainerStatusView | undefined): RolloutProblem | undefined {
  const { reason = "", message = "" } = container?.state?.waiting ?? {};
  return SECRETS_NOT_KNOWN_YET.test(message) ? undefined : WAITING[reason];
}

/** What keeps a pod from serving. @param name of the container that serves */
export function podProblem(pod: PodView, name?: string): RolloutProblem | undefined {
  const scheduled = pod.status?.conditions?.find(({ type }) => type === "PodScheduled");
  if (scheduled?.status === "False" && scheduled.reason === "Unschedulable") {
    return { reason: "Unschedulable", message: "No node has room for another instance." };
  }
  const container = appStatus(pod, name);
  const waiting = waitingProblem(container);
  if (waiting) {
    const before = container?.lastState?.terminated;
    const isCrash = waiting === WAITING.CrashLoopBackOff || before?.reason === "OOMKilled";
    return (isCrash && before && causeOf(before, pod)) || waiting;
  }
  // Between two crashes the container runs for a moment: the crash before counts, or the result would flap with each.
  const crash =
    container?.state?.terminated ?? (container?.ready ? undefined : container?.lastState?.terminated);
  if (!crash) {
    return lostReadiness(pod, container) ? NOT_ANSWERING : undefined;
  }
  return causeOf(crash, pod) ?? WAITING.CrashLoopBackOff;
}

/** What ended a container from outside; undefined for one that ended by itself. */
function causeOf(ended: ContainerTermination, { probeKills }: PodView): RolloutProblem | undefined {
  if (ended.reason === "OOMKilled") {
    return OUT_OF_MEMORY;
  }
  const probe = probeThatEnded(ended, probeKills);
  return probe && (probe === "startup" ? NOT_STARTED : NOT_ANSWERING);
}
