import { BUILDS_PULL_SECRET } from "@slipway/crds";
import { expect, test } from "vitest";
import type { Workload } from "./app.ts";
import { imageFields } from "./pod.ts";

const digest = `sha256:${"0".repeat(64)}`;
const policyOf = (image: string, pullSecret?: string) =>
  imageFields({ image, pullSecret, organizationId: "alpha" } as Workload).imagePullPolicy;

test.each([
  ["a tag", "registry.example/app:1", "p1-pull"],
  ["a digest with credentials", `registry.example/app@${digest}`, "p1-pull"],
  [
    "a digest without any, of what another organization may have pulled",
    `registry.example/app@${digest}`,
    undefined,
  ],
  ["a tag of the organization's own builds", "builds.example/alpha/p1:1", BUILDS_PULL_SECRET],
  ["another organization's build", `builds.example/beta/p1@${digest}`, BUILDS_PULL_SECRET],
  ["an own build's name elsewhere", `builds.example/alpha/p1@${digest}`, "p1-pull"],
])("the registry is queried before each start for %s", (_, image, pullSecret) => {
  expect(policyOf(image, pullSecret)).toBe("Always");
});

test("what the platform built for the organization starts while its registry is unavailable", () => {
  expect(policyOf(`builds.example/alpha/p1@${digest}`, BUILDS_PULL_SECRET)).toBe("IfNotPresent");
});
