import { KubeError } from "@slipway/controller-runtime";
import { expect, test } from "vitest";
import { resourceQuotaFailure } from "./limits.ts";

const refusal = (message: string) => new KubeError({ status: 403, reason: "Forbidden", message });

// Shows: docs/variable-groups.md#errors: 409 | `VARIABLE_GROUP_LIMIT_REACHED`, `ORGANIZATION
// Shows: docs/variable-groups.md#limits: groups of an organization | 50
// Shows: docs/log-drains.md#over-v1: 409 `LOG_DRAIN_LIMIT_REACHED`
// Shows: docs/backups.md#over-v1: 409 `ORGANIZATION_BACKUP_LIMIT_REACHED`, with `limit`: the
test.each([
  ["projects", "ORGANIZATION_PROJECT_LIMIT_REACHED", 500],
  ["gitconnections", "GIT_CONNECTION_LIMIT_REACHED", 50],
  ["variablegroups", "VARIABLE_GROUP_LIMIT_REACHED", 50],
  ["logdrains", "LOG_DRAIN_LIMIT_REACHED", 5],
  ["backups", "ORGANIZATION_BACKUP_LIMIT_REACHED", 1000],
])("a quota of %s is refused with its code and limit", (resource, code, limit) => {
  const counted = `count/${resource}.slipway.dev`;
  const message =
    `POST /apis: 403 ${resource}.slipway.dev "x" is forbidden: exceeded quota: slipway-quota, ` +
    `requested: ${counted}=1, used: ${counted}=${limit}, limited: ${counted}=${limit}`;
  const failure = resourceQuotaFailure(refusal(message));
  expect([failure?.status, failure?.code, failure?.toBody().limit]).toEqual([409, code, limit]);
});

test("what a new namespace's quota has not counted yet can be tried again soon", () => {
  const message =
    'POST /apis: 403 projects.slipway.dev "x" is forbidden: status unknown for quota: slipway-quota, ' +
    "resources: count/projects.slipway.dev";
  const failure = resourceQuotaFailure(refusal(message));
  expect([failure?.status, failure?.code]).toEqual([503, "ORGANIZATION_RUNTIME_UNAVAILABLE"]);
  expect(failure?.headers).toMatchObject({ "retry-after": "5" });
});

test("other refusals are none", () => {
  expect(resourceQuotaFailure(refusal("may not"))).toBeUndefined();
  expect(
    resourceQuotaFailure(
      refusal("exceeded quota: slipway-quota, requested: secrets=1, used: secrets=9, limited: secrets=9"),
    ),
  ).toBeUndefined();
  expect(
    resourceQuotaFailure(new Error("exceeded quota: x, limited: count/projects.slipway.dev=1")),
  ).toBeUndefined();
});
