import { annotations } from "@slipway/crds";
import type { DesiredObject } from "../../desired.ts";
import { hashJson } from "../../runtime/index.ts";
import { childLabels, childMetadata, type HttpApp, instanceSelector } from "./app.ts";

/** Seconds between the end of routing to an instance and its SIGTERM: ingress controllers notice late. */
const DRAIN_SECONDS = 5;

/** Seconds an instance has, after draining, to finish its requests before it is killed. */
const STOP_SECONDS = 30;

/** Seconds that an instance which takes another's place must have served before that one is stopped. */
const STEADY_SECONDS = 5;

/** Seconds in which an instance must have started; longer where rollouts may take longer. */
const STARTUP_SECONDS = 600;

/** Group that owns the files of a volume, so that images which do not run as root can write to it. */
const VOLUME_GROUP = 10_001;

/** The instances of an HTTP project. */
export function deployment(app: HttpApp): DesiredObject {
  const { metadata, spec } = podTemplate(app);
  const made = { ...metadata.annotations, [annotations.settingsHash]: settingsHash(app) };
  return {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: childMetadata(app),
    spec: {
      replicas: app.replicas,
      revisionHistoryLimit: 3,
      progressDeadlineSeconds: app.rolloutDeadlineSeconds,
      // A first version replaces nothing, so it need not prove itself.
      minReadySeconds: app.replaces ? STEADY_SECONDS : 0,
      selector: instanceSelector(app),
      // Two versions must never write one volume at the same time, so a persistent project stops before it starts anew.
      strategy: app.volume
        ? { type: "Recreate" }
        : { type: "RollingUpdate", rollingUpdate: { maxUnavailable: 0, maxSurge: 1 } },
      template: { metadata: { ...metadata, annotations: made }, spec },
    },
  };
}

/** All that an instance is made from. Nothing that only scaling or pausing changes may be in it. */
function podTemplate(app: HttpApp) {
  const restarted = app.restartedAt === undefined ? {} : { [annotations.restartedAt]: app.restartedAt };
  return { metadata: { labels: childLabels(app), annotations: restarted }, spec: podSpec(app) };
}

/** Hash of all that an instance is made from: another one is another deployment. */
export function settingsHash(app: HttpApp): string {
  return hashJson(podTemplate(app));
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
    // A tag may lead elsewhere by now, and an image that a node keeps for one organization is not another's to run: asking
    // the registry each time answers both. A digest is its own proof.
    imagePullPolicy: app.image.includes("@sha256:") ? "IfNotPresent" : "Always",
    ports: [{ name: "http", containerPort: app.port, protocol: "TCP" }],
    // Values from Secrets stay literal: Kubernetes expands $(NAME) in `env` only. PORT here wins over one in a Secret.
    env: [{ name: "PORT", value: String(app.port) }],
    ...(app.envSecrets.length > 0
      ? { envFrom: app.envSecrets.map((name) => ({ secretRef: { name } })) }
      : {}),
    resources: app.resources,
    // Every second until the instance is up, rarely afterwards. It outlasts the rollout's deadline, so it kills nothing
    // that the rollout has not given up already.
    startupProbe: {
      ...probe,
      periodSeconds: 1,
      timeoutSeconds: 2,
      failureThreshold: Math.max(STARTUP_SECONDS, 2 * app.rolloutDeadlineSeconds),
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
