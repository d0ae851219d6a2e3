import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { grantedPermissions, unusedPermissions } from "./granted-permissions.ts";
import { permissionsInLog, permissionsOf } from "./platform-calls.ts";

const operator = { username: "system:serviceaccount:slipway-system:slipway-operator" };
const deployments = { apiGroup: "apps", resource: "deployments" };

test("a request needs its verb on its resource, by the process whose account made it", () => {
  const delivered = { verb: "delete", user: operator, responseStatus: { code: 200 } };
  expect(permissionsOf({ ...delivered, objectRef: deployments })).toEqual([
    "operator apps/deployments delete",
  ]);
  const status = { resource: "pods", subresource: "status" };
  expect(permissionsOf({ ...delivered, objectRef: status })).toEqual(["operator core/pods/status delete"]);
  const admin = { username: "slipway-admin" };
  expect(permissionsOf({ ...delivered, user: admin, objectRef: deployments })).toEqual([]);
});

test("server-side apply of an object that did not exist needs create as well", () => {
  const apply = { verb: "patch", user: operator, objectRef: deployments };
  expect(permissionsOf({ ...apply, responseStatus: { code: 201 } })).toEqual([
    "operator apps/deployments patch",
    "operator apps/deployments create",
  ]);
  expect(permissionsOf({ ...apply, responseStatus: { code: 200 } })).toEqual([
    "operator apps/deployments patch",
  ]);
});

test("a command in a container needs get and create, and a denied request shows nothing", () => {
  const exec = { verb: "get", user: operator, objectRef: { resource: "pods", subresource: "exec" } };
  expect(permissionsOf({ ...exec, responseStatus: { code: 101 } })).toEqual([
    "operator core/pods/exec get",
    "operator core/pods/exec create",
  ]);
  expect(permissionsOf({ ...exec, responseStatus: { code: 403 } })).toEqual([]);
});

test("test clusters are read by user agent and by the impersonated account; a line that was cut off is left out", async () => {
  const folder = await mkdtemp(join(tmpdir(), "slipway-audit-"));
  const file = join(folder, "audit.log");
  const event = { verb: "create", objectRef: { apiGroup: "slipway.dev", resource: "builds" } };
  const lines = [
    { ...event, user: { username: "admin" }, userAgent: "slipway.dev/operator" },
    { ...event, user: { username: "admin" }, impersonatedUser: { username: "test:api-server" } },
    { ...event, user: { username: "admin" }, userAgent: "kubectl" },
  ];
  await writeFile(file, `${lines.map((line) => JSON.stringify(line)).join("\n")}\n{"verb":"del`);
  try {
    expect([...(await permissionsInLog(file))]).toEqual([
      "operator slipway.dev/builds create",
      "api-server slipway.dev/builds create",
    ]);
  } finally {
    await rm(folder, { recursive: true });
  }
});

test("an unused permission is a problem, and a reason for one that is not granted", () => {
  const granted = ["operator core/pods create", "operator core/pods delete", "operator core/pods patch"];
  const unseen = { "operator core/pods delete": "why", "operator core/pods bind": "why" };
  expect(unusedPermissions(new Set(["operator core/pods create"]), granted, unseen)).toEqual([
    "operator core/pods patch: granted, and no request needed it",
    "operator core/pods bind: has a reason why no request needs it, but is not granted",
  ]);
});

test("the chart's own rules are read", () => {
  expect(grantedPermissions()).toContain("operator apps/deployments patch");
  expect(grantedPermissions()).toContain("api-server slipway.dev/projects create");
  expect(grantedPermissions()).toContain("api-server slipway.dev/projects watch");
});
