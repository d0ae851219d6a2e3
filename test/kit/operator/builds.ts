/** Builds for tests. */

import type { Build } from "@slipway/crds";

/** A build of the project `pshop`, requested `second` seconds after the beginning of 2026. */
export function exampleBuild(name: string, second: number, more: Partial<Build> = {}): Build {
  return {
    apiVersion: "slipway.dev/v1alpha1",
    kind: "Build",
    metadata: {
      name,
      namespace: "slipway-org-alpha",
      uid: `uid-${name}`,
      creationTimestamp: new Date(Date.UTC(2026, 0, 1, 0, 0, second)).toISOString(),
    },
    spec: {
      projectRef: { name: "pshop" },
      triggeredBy: "push",
      branch: "main",
      source: { connectionId: "g1", repositoryId: "r1", branch: "main", autoDeploy: true },
    },
    ...more,
  };
}
