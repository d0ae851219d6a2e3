/** The pod of a build: a container for each part of it, with its own secrets and no others. Pure. */

import { type Container, containers, podPaths, TASK_VARIABLE, type Task } from "@slipway/builder/contract";
import type { DesiredObject } from "../../desired.ts";
import { placementFields } from "../../placement.ts";
import { BUILD_NAME, buildLabels, cacheName, podName, secretName, TRY } from "../names.ts";
import type { BuildSettings } from "../settings.ts";
import { type SecretFiles, secretItems } from "./secrets.ts";
import { type TaskInput, tasks } from "./tasks.ts";

/** User and group of the builder's image. */
const USER = 1_000;
/** Most MiB of the runner's own heap: what a step runs beside it has the rest of the container's memory. */
const RUNNER_HEAP = 256;
const RUNNER = ["node", `--max-old-space-size=${RUNNER_HEAP}`, "/app/builder/src/main.ts"];
/** BuildKit ends its steps before it goes itself. */
const GRACE_SECONDS = 15;
/** What a container that may write to nothing but shared folders still takes of its node's disk: its log. */
const LOG_BYTES = "32Mi";

export interface PodInput extends TaskInput {
  /** Which try it is, from 1. */
  attempt: number;
  /** What each container is given; only names of files are read. */
  files: Record<Container, SecretFiles>;
}

export function buildPod(input: PodInput): DesiredObject {
  const { build, project, settings, attempt } = input;
  const cache = cacheName({ id: project.metadata.name, uid: project.metadata.uid ?? "" });
  const name = podName(build, attempt);
  const asked = tasks(input);
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: {
      name,
      namespace: settings.namespace,
      labels: buildLabels(build, cache),
      annotations: { [BUILD_NAME]: build.metadata.name, [TRY]: String(attempt) },
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
      // They start at once and wait for each other: each start, one after the other, would cost the better part of a second.
      containers: containers.map((one) => container(one, asked[one], input)),
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

function container(name: Container, asked: readonly Task[], input: PodInput) {
  const { settings } = input;
  const isBuild = name === "build";
  return {
    name,
    image: settings.image,
    imagePullPolicy: "IfNotPresent",
    command: [...RUNNER, name],
    // In a container's variables `$$` stands for `$`, and `$(NAME)` for another one: commands of the client's have both.
    env: [{ name: TASK_VARIABLE, value: JSON.stringify(asked).replaceAll("$", "$$$$") }],
    resources: resourcesOf(name, settings),
    securityContext: isBuild ? builds(settings) : confined,
    terminationMessagePolicy: "File",
    volumeMounts: [
      { name: "work", mountPath: podPaths.work },
      // What one of them leaves in a folder for everybody is no other one's to trip over.
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
 * A pod asks for the sum of its containers: a node is not to be full of builds that idle. Shares of the processor count between
 * them only while they begin: what all others wait for comes first.
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

/** Switches the profile off: the node's default, if it has one, is left. Pod Security `baseline` refuses to name this type. */
const UNCONFINED = "Unconfined";

/** What both engines need without root: `newuidmap` with its file capabilities, and user namespaces with mounts in them. */
function builds({ seccompProfile }: BuildSettings) {
  return {
    capabilities: { drop: ["ALL"], add: ["SETUID", "SETGID"] },
    ...(seccompProfile === UNCONFINED
      ? {}
      : { seccompProfile: { type: "Localhost", localhostProfile: seccompProfile } }),
  };
}
