/** The pod of a build: a container for each part, with only its own secrets. Pure. */

import { type Container, containers, podPaths, TASK_VARIABLE, type Task } from "@slipway/builder/contract";
import type { DesiredObject } from "../../desired.ts";
import { placementFields } from "../../workload/app.ts";
import {
  ATTEMPT_ANNOTATION,
  BUILD_NAME_ANNOTATION,
  buildLabels,
  cacheName,
  podName,
  secretName,
} from "../names.ts";
import type { BuildSettings } from "../settings.ts";
import { type SecretFiles, secretItems } from "./secrets.ts";
import { type TaskInput, tasks } from "./tasks.ts";

/** User and group of the builder's image. */
const USER = 1_000;
/** MiB of the runner's heap: programs of its step have the rest of the container's memory. */
const RUNNER_HEAP = 256;
const RUNNER = ["node", `--max-old-space-size=${RUNNER_HEAP}`, "/app/builder/src/main.ts"];
/** BuildKit stops its steps before it exits. */
const GRACE_SECONDS = 15;
/** Disk of a container that writes only to shared folders: its log. */
const LOG_BYTES = "32Mi";

export interface PodInput extends TaskInput {
  /** Number of the attempt, from 1. */
  attempt: number;
  /** Secret files of each container; only their names are used. */
  files: Record<Container, SecretFiles>;
}

export function buildPod(input: PodInput): DesiredObject {
  const { build, project, settings, attempt } = input;
  const cache = cacheName({ id: project.metadata.name, uid: project.metadata.uid ?? "" });
  const name = podName(build, attempt);
  const taskLists = tasks(input);
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: {
      name,
      namespace: settings.namespace,
      labels: buildLabels(build, cache),
      annotations: { [BUILD_NAME_ANNOTATION]: build.metadata.name, [ATTEMPT_ANNOTATION]: String(attempt) },
    },
    spec: {
      automountServiceAccountToken: false,
      enableServiceLinks: false,
      ...placementFields(settings.pods),
      restartPolicy: "Never",
      activeDeadlineSeconds: settings.limits.deadlineSeconds,
      terminationGracePeriodSeconds: GRACE_SECONDS,
      securityContext: {
        runAsNonRoot: true,
        runAsUser: USER,
        runAsGroup: USER,
        fsGroup: USER,
        fsGroupChangePolicy: "OnRootMismatch",
      },
      // They start together and wait for each other: sequential starts would cost most of a second each.
      containers: containers.map((one) => container(one, taskLists[one], input)),
      volumes: [
        { name: "work", emptyDir: { sizeLimit: settings.limits.ephemeralStorage } },
        { name: "tmp", emptyDir: { sizeLimit: settings.limits.ephemeralStorage } },
        { name: "cache", persistentVolumeClaim: { claimName: cache } },
        ...containers
          .filter((one) => hasFiles(input, one))
          .map((one) => ({
            name: `secrets-${one}`,
            secret: {
              secretName: secretName(name, one),
              defaultMode: 0o440,
              items: secretItems(input.files[one]),
            },
          })),
      ],
    },
  };
}

const hasFiles = ({ files }: PodInput, one: Container): boolean => Object.keys(files[one]).length > 0;

function container(name: Container, taskList: readonly Task[], input: PodInput) {
  const { settings } = input;
  const isBuild = name === "build";
  return {
    name,
    image: settings.image,
    imagePullPolicy: "IfNotPresent",
    command: [...RUNNER, name],
    // Kubernetes expands `$$` and `$(NAME)` in a container's variables; the client's commands may contain both.
    env: [{ name: TASK_VARIABLE, value: JSON.stringify(taskList).replaceAll("$", "$$$$") }],
    resources: resourcesOf(name, settings),
    securityContext: isBuild ? builds(settings) : confined,
    terminationMessagePolicy: "File",
    volumeMounts: [
      { name: "work", mountPath: podPaths.work },
      // /tmp is not shared, so that containers cannot interfere through it.
      ...(isBuild
        ? [
            { name: "tmp", mountPath: "/tmp" },
            { name: "cache", mountPath: podPaths.cache },
          ]
        : []),
      ...(hasFiles(input, name)
        ? [{ name: `secrets-${name}`, mountPath: podPaths.secrets, readOnly: true }]
        : []),
    ],
  };
}

/**
 * A pod requests the sum of its containers: builds that wait should not fill a node. CPU shares between the containers only
 * matter at the start: the one that the others wait for comes first.
 */
const requests: Record<Container, object> = {
  fetch: { cpu: "60m", memory: "32Mi" },
  build: { cpu: "30m", memory: "192Mi" },
  push: { cpu: "10m", memory: "32Mi" },
};

function resourcesOf(name: Container, { limits }: BuildSettings) {
  const { cpu, memory, ephemeralStorage, ephemeralRequest = ephemeralStorage } = limits;
  const isBuild = name === "build";
  return {
    requests: { ...requests[name], "ephemeral-storage": isBuild ? ephemeralRequest : LOG_BYTES },
    limits: { cpu, memory, "ephemeral-storage": isBuild ? ephemeralStorage : LOG_BYTES },
  };
}

const confined = {
  allowPrivilegeEscalation: false,
  capabilities: { drop: ["ALL"] },
  readOnlyRootFilesystem: true,
  seccompProfile: { type: "RuntimeDefault" },
};

/** Sets no profile: the node's default applies, if there is one. Pod Security `baseline` rejects this type. */
const UNCONFINED = "Unconfined";

/** Both builder backends need, without root, `newuidmap` with its file capabilities, and user namespaces with mounts. */
function builds({ seccompProfile }: BuildSettings) {
  return {
    capabilities: { drop: ["ALL"], add: ["SETUID", "SETGID"] },
    ...(seccompProfile === UNCONFINED
      ? {}
      : { seccompProfile: { type: "Localhost", localhostProfile: seccompProfile } }),
  };
}
