import type { DesiredObject } from "../../desired.ts";
import { childLabels, childMetadata, type HttpApp, instanceSelector } from "./app.ts";

/** Seconds between the end of routing to an instance and its SIGTERM: ingress controllers notice late. */
const DRAIN_SECONDS = 5;

/** Seconds an instance has, after draining, to finish its requests before it is killed. */
const STOP_SECONDS = 30;

/** Seconds a rollout may take without progress before it counts as failed; the old version keeps serving. */
export const PROGRESS_DEADLINE_SECONDS = 300;

/** Group that owns the files of a volume, so that images which do not run as root can write to it. */
const VOLUME_GROUP = 10_001;

/** The instances of an HTTP project. */
export function deployment(app: HttpApp): DesiredObject {
  return {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: childMetadata(app),
    spec: {
      replicas: app.replicas,
      revisionHistoryLimit: 3,
      progressDeadlineSeconds: PROGRESS_DEADLINE_SECONDS,
      selector: instanceSelector(app),
      // Two versions must never write one volume at the same time, so a persistent project stops before it starts anew.
      strategy: app.volume
        ? { type: "Recreate" }
        : { type: "RollingUpdate", rollingUpdate: { maxUnavailable: 0, maxSurge: 1 } },
      template: {
        metadata: { labels: childLabels(app) },
        spec: podSpec(app),
      },
    },
  };
}

function podSpec(app: HttpApp) {
  return {
    automountServiceAccountToken: false,
    enableServiceLinks: false,
    terminationGracePeriodSeconds: DRAIN_SECONDS + STOP_SECONDS,
    securityContext: {
      seccompProfile: { type: "RuntimeDefault" },
      ...(app.volume ? { fsGroup: VOLUME_GROUP, fsGroupChangePolicy: "OnRootMismatch" } : {}),
    },
    ...(app.pullSecret ? { imagePullSecrets: [{ name: app.pullSecret }] } : {}),
    containers: [container(app)],
    ...placement(app),
    ...(app.volume ? { volumes: [{ name: "data", persistentVolumeClaim: { claimName: app.id } }] } : {}),
  };
}

function container(app: HttpApp) {
  const probe = app.healthcheckPath
    ? { httpGet: { path: app.healthcheckPath, port: "http" } }
    : { tcpSocket: { port: "http" } };
  return {
    name: "app",
    image: app.image,
    ports: [{ name: "http", containerPort: app.port, protocol: "TCP" }],
    // Values from Secrets stay literal: Kubernetes expands $(NAME) in `env` only. PORT here wins over one in a Secret.
    env: [{ name: "PORT", value: String(app.port) }],
    ...(app.envSecrets.length > 0
      ? { envFrom: app.envSecrets.map((name) => ({ secretRef: { name } })) }
      : {}),
    resources: app.resources,
    // Every second until the instance is up, rarely afterwards. It outlasts the progress deadline, so it kills nothing
    // that the rollout has not given up already.
    startupProbe: {
      ...probe,
      periodSeconds: 1,
      timeoutSeconds: 2,
      failureThreshold: 2 * PROGRESS_DEADLINE_SECONDS,
    },
    readinessProbe: { ...probe, periodSeconds: 5, timeoutSeconds: 3, failureThreshold: 2 },
    // The kubelet sleeps by itself: an image needs no /bin/sleep for it.
    lifecycle: { preStop: { sleep: { seconds: DRAIN_SECONDS } } },
    securityContext: {
      allowPrivilegeEscalation: false,
      capabilities: {
        drop: ["ALL"],
        // What images that start as root need to own their files, bind port 80 and become another user.
        add: ["CHOWN", "DAC_OVERRIDE", "FOWNER", "KILL", "NET_BIND_SERVICE", "SETGID", "SETUID"],
      },
    },
    ...(app.volume ? { volumeMounts: [{ name: "data", mountPath: app.volume.mountPath }] } : {}),
  };
}

/** Instances spread over nodes where there are several, except those that share one volume: it attaches to one node. */
function placement(app: HttpApp) {
  const labelSelector = instanceSelector(app);
  if (app.volume) {
    const term = { labelSelector, topologyKey: "kubernetes.io/hostname" };
    return { affinity: { podAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [term] } } };
  }
  return {
    topologySpreadConstraints: [
      {
        maxSkew: 1,
        topologyKey: "kubernetes.io/hostname",
        whenUnsatisfiable: "ScheduleAnyway",
        labelSelector,
        matchLabelKeys: ["pod-template-hash"],
      },
    ],
  };
}
