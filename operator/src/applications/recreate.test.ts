import type { Deployment } from "@slipway/crds";
import { describe, expect, test } from "vitest";
import { exampleProject } from "../../../test/kit/operator/projects.ts";
import type { HttpApp } from "./app.ts";
import {
  chooseVersion,
  imagePullPod,
  isPulled,
  previousVersion,
  type RecreateState,
  withSettingsOf,
} from "./recreate.ts";

const deployment = (settingsHash: string, status: Deployment["status"]): Deployment => ({
  id: `d-${settingsHash}`,
  status,
  startedAt: "2026-01-01T00:00:00Z",
  settingsHash,
  updatedImage: true,
  image: { reference: "registry.example/app:1", digest: `sha256:${"a".repeat(64)}` },
  settings: { plan: "basic", image: { url: "registry.example/app:1", isPublic: true }, port: 80 },
});
const good = deployment("good", "succeeded");
const state = (change: Partial<RecreateState>): RecreateState => ({
  wanted: "new",
  live: "good",
  paused: false,
  isPlaced: true,
  isPulled: false,
  deployments: [deployment("new", "in_progress"), good],
  ...change,
});

describe("the version that a project with a volume runs", () => {
  const failed = [deployment("new", "failed"), good];
  test.each<[string, Partial<RecreateState>, string]>([
    ["the live one while the image of the next is pulled", {}, "pull"],
    ["the wanted one once its image is on the node", { isPulled: true }, "wanted"],
    ["the wanted one once the Deployment has it", { live: "new" }, "wanted"],
    ["the wanted one as the first", { live: undefined, deployments: [failed[0] ?? good] }, "wanted"],
    ["the wanted one where no instance is on a node", { isPlaced: false }, "wanted"],
    ["the wanted one while paused, which runs nothing", { paused: true }, "wanted"],
    ["the live one after a version that was never started has failed", { deployments: failed }, "live"],
    [
      "the previous one after a version that was started has failed",
      { live: "new", deployments: failed },
      "previous",
    ],
    [
      "the previous one for as long as the spec has the failed one",
      { live: "rebuilt", deployments: failed },
      "previous",
    ],
    [
      "the next one after a failure, once its image is pulled",
      { wanted: "fixed", isPulled: true, deployments: [deployment("fixed", "in_progress"), ...failed] },
      "wanted",
    ],
    [
      "the wanted one where none has ever succeeded",
      { live: "new", deployments: [deployment("new", "failed"), deployment("old", "failed")] },
      "wanted",
    ],
  ])("is %s", (_, change, wanted) => expect(chooseVersion(state(change))).toBe(wanted));

  test("rolls back to the last that succeeded, whatever was tried since", () => {
    const tried = [deployment("c", "failed"), deployment("b", "superseded"), deployment("a", "failed")];
    expect(previousVersion([...tried, good, deployment("older", "succeeded")])).toBe(good);
    expect(previousVersion([good])).toBeUndefined();
  });

  test("rolls back to the very image and settings that ran, and to nothing that came since", () => {
    const ref = { namespace: "slipway-org-alpha", name: "p1" };
    const project = exampleProject(ref, {
      image: { url: "registry.example/app:1", isPublic: true },
      plan: "premium",
      healthcheck: { enabled: true, path: "/new" },
      envsFrom: [{ name: "new" }],
      restartedAt: "2026-01-02T00:00:00Z",
      instances: 2,
    });
    const { spec } = withSettingsOf(project, good);
    expect(spec.image).toEqual({ ...good.settings.image, digest: good.image.digest });
    expect(spec).toMatchObject({ plan: "basic", port: 80, instances: 2, paymentMode: "hourly" });
    expect([spec.healthcheck, spec.envsFrom, spec.restartedAt]).toEqual([undefined, undefined, undefined]);
  });
});

describe("the pod that pulls an image", () => {
  const app: HttpApp = {
    type: "http",
    id: "p1",
    namespace: "slipway-org-alpha",
    organizationId: "alpha",
    image: "registry.example/app:2",
    pullSecret: "p1-pull-0123abcd",
    envSecrets: ["p1-env-0123abcd"],
    resources: {
      requests: { cpu: "1", memory: "1Gi", "ephemeral-storage": "1Gi" },
      limits: { cpu: "1", memory: "1Gi", "ephemeral-storage": "1Gi" },
    },
    volume: { capacityGb: 1, mountPath: "/data" },
    port: 80,
    replicas: 1,
    rolloutDeadlineSeconds: 300,
  };
  const pod = imagePullPod(app, "0123456789abcdef");
  const text = JSON.stringify(pod);

  test("has the image and its credentials, and nothing else of the project", () => {
    expect(pod).toMatchObject({
      metadata: { name: "p1-pull-0123456789", labels: { "slipway.dev/image-pull": "p1" } },
      spec: {
        imagePullSecrets: [{ name: "p1-pull-0123abcd" }],
        restartPolicy: "Never",
        automountServiceAccountToken: false,
        containers: [{ image: "registry.example/app:2", imagePullPolicy: "Always" }],
      },
    });
    expect(pod.metadata?.labels).not.toHaveProperty(["slipway.dev/project"]);
    expect(text).not.toMatch(/volumeMounts|volumes|envFrom|fsGroup|probe/i);
  });

  test("is where the instances are", () => {
    expect(text).toContain('"topologyKey":"kubernetes.io/hostname"');
    expect(text).toContain('"matchLabels":{"slipway.dev/project":"p1"}');
  });

  const container = (status: object) => ({
    metadata: {},
    status: { containerStatuses: [{ name: "app", ...status }] },
  });
  test.each([
    [
      "a command that is not there, once its image is",
      { imageID: "registry.example/app@sha256:1", state: { terminated: { reason: "StartError" } } },
      true,
    ],
    [
      "a container that cannot be created of it",
      { imageID: "", state: { waiting: { reason: "CreateContainerError" } } },
      true,
    ],
    ["a pull under way", { imageID: "", state: { waiting: { reason: "ContainerCreating" } } }, false],
    ["a pull that failed", { imageID: "", state: { waiting: { reason: "ImagePullBackOff" } } }, false],
    [
      "a pod whose node was deleted",
      { imageID: "", state: { terminated: { reason: "ContainerStatusUnknown" } } },
      false,
    ],
  ])("of %s: pulled or not", (_, status, wanted) => expect(isPulled(container(status))).toBe(wanted));
});
