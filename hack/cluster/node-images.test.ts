import { expect, test } from "vitest";
import {
  checkRunningNodes,
  checkRunningVersion,
  defaultKubernetes,
  type KubernetesVersion,
  kubernetesVersions,
  nodeImage,
} from "./node-images.ts";
import { kubernetesVersion } from "./programs.ts";

test("the image of each version is of that version, and pinned by its digest", () => {
  for (const version of kubernetesVersions) {
    expect(nodeImage(version)).toMatch(
      new RegExp(`^kindest/node:v${version.replace(".", "\\.")}\\.\\d+@sha256:[0-9a-f]{64}$`),
    );
  }
  expect(new Set(kubernetesVersions.map(nodeImage)).size).toBe(kubernetesVersions.length);
});

test("without a choice the node has the version of the embedded cluster", () => {
  expect(kubernetesVersion.startsWith(`v${defaultKubernetes}.`)).toBe(true);
});

test("a cluster that runs with another version is not taken for the one that is asked for", () => {
  const check = (minor: string, wanted: KubernetesVersion | undefined) => () =>
    checkRunningVersion(JSON.stringify({ major: "1", minor }), wanted);
  expect(check("34", "1.34")).not.toThrow();
  expect(check("34+", "1.34")).not.toThrow();
  expect(check("31", undefined)).not.toThrow();
  expect(check("34", "1.33")).toThrow("runs Kubernetes 1.34, not 1.33: remove it with hack/down.sh --purge");
});

test("nor is one with another number of nodes", () => {
  expect(() => checkRunningNodes(1, undefined)).not.toThrow();
  expect(() => checkRunningNodes(3, 3)).not.toThrow();
  expect(() => checkRunningNodes(1, 3)).toThrow("has 1 node, not 3: remove it with hack/down.sh --purge");
});
