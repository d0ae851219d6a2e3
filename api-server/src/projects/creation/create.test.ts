import type { ProjectSpec } from "@slipway/crds";
import { expect, test } from "vitest";
import { exampleSpec } from "../../../../test/kit/api-server/harness.ts";
import type { Services } from "../../services.ts";
import { requirePlatform } from "./create.ts";

// Shows: docs/applications.md#scaling-by-requests: 503 `PROJECT_FEATURE_UNAVAILABLE` where the platform counts no
// Shows: docs/applications.md#errors-project-creation: 503 | `PROJECT_FEATURE_UNAVAILABLE`: from a Git
test("a target of requests is 503 where the platform counts none, and other targets are not", () => {
  const check = (requestsPerSecondTarget: number | undefined, scalesByRequests: boolean) => {
    const autoscaling = { enabled: true, maxInstances: 2, requestsPerSecondTarget };
    const spec: ProjectSpec = { ...exampleSpec, autoscaling };
    const services = { supports: () => true, backups: () => undefined, scalesByRequests };
    return () => requirePlatform(spec, services as unknown as Services);
  };
  expect(check(10, false)).toThrow(
    expect.objectContaining({ status: 503, code: "PROJECT_FEATURE_UNAVAILABLE" }),
  );
  expect(check(10, true)).not.toThrow();
  expect(check(undefined, false)).not.toThrow();
});
