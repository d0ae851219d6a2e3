import { annotations } from "@slipway/crds";
import type { DesiredObject } from "../../desired.ts";
import { childMetadata } from "../../workload/app.ts";
import {
  commandFields,
  confinementFields,
  environmentFields,
  hashOfTemplate,
  imageFields,
  type PodTemplate,
  podFields,
  stamped,
  templateMetadata,
  volumeFields,
} from "../../workload/pod.ts";
import { type HttpApp, instanceSelector } from "../app.ts";
import { isUnprobed, workerContainer } from "./worker.ts";

/** Seconds between the end of routing to an instance and its SIGTERM: ingress controllers notice late. */
const DRAIN_SECONDS = 5;

/** Seconds an instance has, after draining, to finish its requests before it is killed. */
const STOP_SECONDS = 30;

/** Seconds that a new instance must have served before the one that it replaces is stopped. */
const STEADY_SECONDS = 5;

/** Seconds in which an instance must have started; longer where the deadline of rollouts is longer. */
const STARTUP_SECONDS = 600;

/** Period of the probe at start where that has a limit. */
const STARTUP_PROBE_SECONDS = 2;

/** Seconds, draining included, that an instance has to stop which a probe has found not to answer. */
const HUNG_STOP_SECONDS = 5;

/** The instances of an HTTP project or a worker. */
export function deployment(app: HttpApp): DesiredObject {
  return {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: childMetadata(app),
    spec: {
      replicas: app.replicas,
      revisionHistoryLimit: 3,
      progressDeadlineSeconds: app.rolloutDeadlineSeconds,
      // A first version replaces nothing, so it needs no such time, unless running is all that it shows of itself.
      minReadySeconds: app.replaces || isUnprobed(app) ? STEADY_SECONDS : 0,
      selector: instanceSelector(app),
      // Two versions must never write one volume at the same time, so a persistent project stops before it starts again.
      strategy: app.volume
        ? { type: "Recreate" }
        : { type: "RollingUpdate", rollingUpdate: { maxUnavailable: 0, maxSurge: 1 } },
      template: app.keptTemplate ?? stamped(podTemplate(app)),
    },
  };
}

/** The pod template of an instance. Nothing that only scaling or pausing changes may be in it. */
function podTemplate(app: HttpApp): PodTemplate {
  return { metadata: templateMetadata(app), spec: podSpec(app) };
}

/** Hash of the pod template: another one is another deployment. */
export function settingsHash(app: HttpApp): string {
  const kept = app.keptTemplate?.metadata.annotations[annotations.settingsHash];
  return kept ?? hashOfTemplate(podTemplate(app));
}

function podSpec(app: HttpApp) {
  return {
    ...podFields(app, (app.port === undefined ? 0 : DRAIN_SECONDS) + (app.stopSeconds ?? STOP_SECONDS)),
    containers: [app.port === undefined ? workerContainer(app) : container(app, app.port)],
    ...placement(app),
    ...volumeFields(app),
  };
}

function container(app: HttpApp, port: number) {
  const probe = app.healthcheckPath
    ? { httpGet: { path: app.healthcheckPath, port: "http" } }
    : { tcpSocket: { port: "http" } };
  return {
    ...imageFields(app),
    ...commandFields(app.command),
    ports: [{ name: "http", containerPort: port, protocol: "TCP" }],
    // PORT here wins over one in a Secret.
    env: [{ name: "PORT", value: String(port) }],
    ...environmentFields(app),
    resources: app.resources,
    // Every second until the instance is up, rarely afterwards. It outlasts the rollout's deadline, so it kills nothing
    // that the rollout has not abandoned already.
    startupProbe: {
      ...probe,
      periodSeconds: 1,
      timeoutSeconds: 2,
      failureThreshold: Math.max(STARTUP_SECONDS, 2 * app.rolloutDeadlineSeconds),
      ...startupLimit(app),
    },
    readinessProbe: { ...probe, periodSeconds: 5, timeoutSeconds: 3, failureThreshold: 2 },
    ...livenessFields(app),
    // The kubelet sleeps: an image needs no /bin/sleep for it.
    lifecycle: { preStop: { sleep: { seconds: DRAIN_SECONDS } } },
    ...confinementFields(app),
  };
}

/** Overrides of the probe at start. It never takes longer than its period, so that the limit is exact. */
function startupLimit({ startupTimeoutSeconds }: HttpApp) {
  return startupTimeoutSeconds === undefined
    ? {}
    : {
        periodSeconds: STARTUP_PROBE_SECONDS,
        timeoutSeconds: STARTUP_PROBE_SECONDS,
        failureThreshold: Math.ceil(startupTimeoutSeconds / STARTUP_PROBE_SECONDS),
        terminationGracePeriodSeconds: HUNG_STOP_SECONDS,
      };
}

/**
 * The third failure is noticed 35 s after the last answer, and the container is killed 7 s later: draining uses up its time to stop, and the
 * kubelet adds 2 s. So a hung instance starts again within 60 s, however long the project's own time to stop is.
 */
function livenessFields({ livenessPath }: HttpApp) {
  return livenessPath === undefined
    ? {}
    : {
        livenessProbe: {
          httpGet: { path: livenessPath, port: "http" },
          periodSeconds: 10,
          timeoutSeconds: 5,
          failureThreshold: 3,
          terminationGracePeriodSeconds: HUNG_STOP_SECONDS,
        },
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
