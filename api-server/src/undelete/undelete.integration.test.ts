import { type KubernetesObject, resources } from "@slipway/controller-runtime";
import {
  annotations,
  type DeletedProject,
  fieldManagers,
  organizationNamespace,
  type Project,
  type ProjectSpec,
} from "@slipway/crds";
import { listQuotaReservations, setOrganizationBlocked } from "@slipway/ledger";
import { afterAll, beforeAll, expect, test } from "vitest";
import { exampleSpec } from "../../../test/kit/api-server/harness.ts";
import { type RealHarness, startRealHarness } from "../../../test/kit/api-server/real-harness.ts";
import { eventually } from "../../../test/kit/processes/eventually.ts";
import { deletedProjectResource, projectResource } from "../resources.ts";
import { undeleteProject } from "./undelete.ts";

/** The API server with nothing but its own rights, over a real apiserver and a real ledger; the test plays the operator. */

let harness: RealHarness;
beforeAll(async () => {
  harness = await startRealHarness();
});
afterAll(() => harness?.close());

/** A deleted project and what is kept of it. */
async function deleted(
  organization: string,
  id: string,
  change: Partial<ProjectSpec> = {},
): Promise<DeletedProject> {
  const namespace = organizationNamespace(organization);
  const spec = { ...exampleSpec, ...change };
  const name = `${id}-0c6b4d3e`;
  const state = JSON.stringify({ project: { metadata: { name: id, namespace }, spec } });
  await harness.admin.create(resources.secrets, {
    metadata: { name, namespace },
    data: { "state.json": Buffer.from(state).toString("base64") },
  } as KubernetesObject);
  return harness.admin.create<DeletedProject>(deletedProjectResource, {
    apiVersion: "slipway.dev/v1alpha1",
    kind: "DeletedProject",
    metadata: { name, namespace },
    spec: {
      projectRef: { name: id, uid: "0c6b4d3e-1111" },
      displayName: spec.name,
      type: spec.type,
      plan: spec.plan,
      deletedAt: new Date().toISOString(),
      expiresAt: new Date(Date.now() + 3_600_000).toISOString(),
      volumes: [],
    },
  });
}
const recordRef = ({ metadata: { name, namespace } }: DeletedProject) => ({ name, namespace });
const requested = (record: DeletedProject) =>
  eventually("the request", async () => {
    const live = await harness.admin.get<DeletedProject>(deletedProjectResource, recordRef(record));
    return live.spec.undeleteRequestedAt;
  });
const undelete = async (id: string, headers: Record<string, string>) => {
  const url = `/v1/project/${id}/undelete`;
  const response = await harness.app.inject({ method: "POST", url, headers });
  return { status: response.statusCode, ...response.json() };
};
const reserved = async (organization: string) =>
  (await listQuotaReservations(harness.ledger)).filter((row) => row.organization_id === organization).length;

test("requests it, with the quota of its plan, and answers once the operator has created the project", async () => {
  const { id: organization, headers } = await harness.organization();
  const record = await deleted(organization, "pback", { plan: "free" });
  const answer = undelete("pback", headers);
  await requested(record);
  expect(await reserved(organization)).toBe(1);
  const written: Project = {
    apiVersion: "slipway.dev/v1alpha1",
    kind: "Project",
    metadata: {
      name: "pback",
      namespace: organizationNamespace(organization),
      annotations: { [annotations.undeletedFrom]: record.metadata.name },
    },
    spec: { ...exampleSpec, plan: "free" },
  };
  const project = await harness.admin.create<Project>(projectResource, written, {
    fieldManager: fieldManagers.deletedProject,
  });
  await harness.admin.delete(deletedProjectResource, recordRef(record));
  const { name, namespace } = project.metadata;
  const whole = { metadata: { annotations: { [annotations.undeletedFrom]: null } } };
  await harness.admin.patch(projectResource, { name, namespace }, whole);
  expect(await answer).toMatchObject({ status: "success", data: { project_id: "pback" } });
  expect(await reserved(organization)).toBe(1);
  // A client that has lost the answer repeats its request.
  expect(await undelete("pback", headers)).toMatchObject({
    status: "success",
    data: { project_id: "pback" },
  });
  expect(await reserved(organization)).toBe(1);
  await harness.project(organization, "pnever");
  expect(await undelete("pnever", headers)).toMatchObject({ code: "DELETED_PROJECT_NOT_FOUND" });
});

// Shows: docs/undelete.md#errors: 402, 409 | those of a creation
// Shows: docs/undelete.md#errors: 409 | `DELETED_VOLUME_MISSING` | somebody has deleted a volume of it
test("refuses a blocked organization, and one that has no room for it", async () => {
  const { id: organization, headers } = await harness.organization();
  const record = await deleted(organization, "pfree", { plan: "free", instances: 2 });
  await harness.project(organization, "pother", { plan: "free", instances: 1 });
  await setOrganizationBlocked(harness.ledger, organization, true);
  expect(await undelete("pfree", headers)).toMatchObject({ code: "ORGANIZATION_BLOCKED" });
  await setOrganizationBlocked(harness.ledger, organization, false);
  const full = { plan: "free", instances: 2 };
  await deleted(organization, "ptwo", full);
  const first = undelete("ptwo", headers);
  await eventually("a reservation", async () => (await reserved(organization)) === 1);
  expect(await undelete("pfree", headers)).toMatchObject({
    code: "FREE_PLAN_INSTANCE_LIMIT_REACHED",
    limit: 2,
  });
  const live = await harness.admin.get<DeletedProject>(deletedProjectResource, recordRef(record));
  expect(live.spec.undeleteRequestedAt).toBeUndefined();
  // The operator finds no volume.
  const namespace = organizationNamespace(organization);
  await requested({ ...record, metadata: { name: "ptwo-0c6b4d3e", namespace } });
  await harness.admin.patch(
    deletedProjectResource,
    { namespace, name: "ptwo-0c6b4d3e" },
    { spec: { undeleteRequestedAt: null } },
  );
  expect(await first).toMatchObject({ code: "DELETED_VOLUME_MISSING" });
  expect(await reserved(organization)).toBe(0);
});

// Shows: docs/undelete.md#errors: 503 | `UNDELETE_PENDING` | it takes longer than 20 s: it goes on
test("an undelete that takes longer goes on, and keeps its quota", async () => {
  const { id: organization } = await harness.organization();
  const record = await deleted(organization, "pslow", { plan: "free" });
  await expect(undeleteProject(record, organization, harness.services, 300)).rejects.toMatchObject({
    code: "UNDELETE_PENDING",
    status: 503,
  });
  expect(await requested(record)).toBeTruthy();
  expect(await reserved(organization)).toBe(1);
});

// Shows: docs/budgets.md#the-hard-cap: a project that is undeleted
test("what a budget had paused has its quota again, and what a user had paused has none", async () => {
  const { id: organization } = await harness.organization();
  const pending = async (id: string, change: Partial<ProjectSpec>) => {
    const record = await deleted(organization, id, { plan: "free", ...change });
    await expect(undeleteProject(record, organization, harness.services, 300)).rejects.toMatchObject({
      code: "UNDELETE_PENDING",
    });
  };
  await pending("pmine", { paused: true });
  expect(await reserved(organization)).toBe(0);
  await pending("pcapped", { paused: true, pausedBy: "budget" });
  expect(await reserved(organization)).toBe(1);
});
