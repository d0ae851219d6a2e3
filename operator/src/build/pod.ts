/** The pod of a build: a container for each step, each with its own secrets and no others. Pure. */

import { podPaths, type Step, steps, TASK_VARIABLE, type Task } from "@slipway/builder/contract";
import type { DesiredObject } from "../desired.ts";
import { BUILD_NAME, buildLabels, cacheName, podName, secretName, TRY } from "./names.ts";
import { type SecretFiles, secretItems } from "./secrets.ts";
import type { BuildSettings } from "./settings.ts";
import { type TaskInput, tasks } from "./tasks.ts";

/** User and group of the builder's image. */
const USER = 1_000;
const RUNNER = ["node", "/app/builder/src/main.ts"];
/** BuildKit ends its steps before it goes itself. */
const GRACE_SECONDS = 15;

export interface PodInput extends TaskInput {
  /** Which try it is, from 1. */
  attempt: number;
  /** What each step is given; only names of files are read. */
  files: Record<Step, SecretFiles>;
}

export function buildPod(input: PodInput): DesiredObject {
  const { build, project, settings, attempt } = input;
  const cache = cacheName({ id: project.metadata.name, uid: project.metadata.uid ?? "" });
  const name = podName(build, attempt);
  const asked = tasks(input);
  const containers = steps.map((step) => container(step, asked[step], input));
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
      initContainers: containers.slice(0, -1),
      containers: containers.slice(-1),
      volumes: [
        { name: "work", emptyDir: { sizeLimit: settings.limits.ephemeralStorage } },
        { name: "tmp", emptyDir: { sizeLimit: settings.limits.ephemeralStorage } },
        { name: "cache", persistentVolumeClaim: { claimName: cache } },
        ...steps
          .filter((step) => hasFiles(input, step))
          .map((step) => ({
            name: `secrets-${step}`,
            secret: {
              secretName: secretName(name, step),
              defaultMode: 0o440,
              items: secretItems(input.files[step]),
            },
          })),
      ],
    },
  };
}

const hasFiles = ({ files }: PodInput, step: Step): boolean => Object.keys(files[step]).length > 0;

function container(step: Step, task: Task, input: PodInput) {
  const { settings } = input;
  const { cpu, memory, ephemeralStorage } = settings.limits;
  return {
    name: step,
    image: settings.image,
    imagePullPolicy: "IfNotPresent",
    command: [...RUNNER, step],
    env: [{ name: TASK_VARIABLE, value: JSON.stringify(task) }],
    resources: {
      // Pods wait for the largest of them: a node is not to be full of builds that idle.
      requests: { cpu: "100m", memory: "256Mi", "ephemeral-storage": "256Mi" },
      limits: { cpu, memory, "ephemeral-storage": ephemeralStorage },
    },
    securityContext: step === "build" ? builds(settings) : confined,
    terminationMessagePolicy: "File",
    volumeMounts: [
      { name: "work", mountPath: podPaths.work },
      { name: "tmp", mountPath: "/tmp" },
      ...(step === "build" ? [{ name: "cache", mountPath: podPaths.cache }] : []),
      ...(hasFiles(input, step)
        ? [{ name: `secrets-${step}`, mountPath: podPaths.secrets, readOnly: true }]
        : []),
    ],
  };
}

const confined = {
  allowPrivilegeEscalation: false,
  capabilities: { drop: ["ALL"] },
  readOnlyRootFilesystem: true,
  seccompProfile: { type: "RuntimeDefault" },
};

/** What BuildKit without root needs: `newuidmap` with its file capabilities, and user namespaces with mounts in them. */
function builds({ seccompProfile }: BuildSettings) {
  return {
    capabilities: { drop: ["ALL"], add: ["SETUID", "SETGID"] },
    ...(seccompProfile === ""
      ? {}
      : { seccompProfile: { type: "Localhost", localhostProfile: seccompProfile } }),
  };
}
