import { resources } from "@slipway/controller-runtime";
import { annotations, type DeletedProject, type Project } from "@slipway/crds";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type FakeHarness, startFakeHarness } from "../../../test/kit/api-server/harness.ts";
import { eventually } from "../../../test/kit/processes/eventually.ts";
import { deletedProjectResource, projectResource } from "../resources.ts";

/** The routes over a fake apiserver; the tests play the operator. */

const organization = "acme";
const namespace = "slipway-org-acme";
const HOUR_MS = 3_600_000;
let harness: FakeHarness;
let every: Record<string, string>;

beforeAll(async () => {
  harness = await startFakeHarness();
  await harness.namespace(organization);
  every = harness.key(organization, "* on organization:*", "* on project:*");
});
afterAll(() => harness.close());

function record(id: string, { age = 1, left = 23, type = "http" } = {}): Promise<DeletedProject> {
  const at = (hours: number) => new Date(Date.now() + hours * HOUR_MS).toISOString();
  return harness.kube.create<DeletedProject>(deletedProjectResource, {
    apiVersion: "slipway.dev/v1alpha1",
    kind: "DeletedProject",
    metadata: { name: `${id}-0c6b4d3e`, namespace },
    spec: {
      projectRef: { name: id, uid: "0c6b4d3e-1111" },
      displayName: "shop-front",
      type: type as "http",
      plan: "premium",
      deletedAt: at(-age),
      expiresAt: at(left),
      volumes: [{ claimName: id, claimUid: "u", volumeName: "pvc-1", capacity: "2Gi" }],
    },
  });
}
const send = async (id: string, headers = every) => {
  const response = await harness.app.inject({ method: "POST", url: `/v1/project/${id}/undelete`, headers });
  return { status: response.statusCode, ...response.json() };
};
const list = async (headers = every) =>
  (await harness.app.inject({ url: "/v1/organization/deleted-projects", headers })).json().data.projects;

describe("GET /v1/organization/deleted-projects", () => {
  // Shows: docs/undelete.md#over-v1: `GET /v1/organization/deleted-projects` | none; those for which the
  it("shows those that the credential can read and that have not expired, the last deleted first", async () => {
    await record("pold", { age: 5 });
    await record("pnew", { age: 1, type: "postgresql" });
    await record("pgone", { left: -1 });
    expect((await list()).map(({ project_id }: { project_id: string }) => project_id)).toEqual([
      "pnew",
      "pold",
    ]);
    expect((await list())[1]).toMatchObject({
      name: "shop-front",
      type_project: "http",
      plan: "premium",
      storage: { volumes: 1, capacity: 2 },
    });
    const one = harness.key(organization, "project.read on project:pold");
    expect(await list(one)).toHaveLength(1);
    expect(await list(harness.key("other"))).toEqual([]);
  });
});

describe("POST /v1/project/:id/undelete", () => {
  // Shows: docs/undelete.md#errors: 404 | `DELETED_PROJECT_NOT_FOUND` | there is none, or it has expired, and none was undeleted
  it("answers 404 for what was never deleted, and for what has expired", async () => {
    expect(await send("pnobody")).toMatchObject({ status: "failed", code: "DELETED_PROJECT_NOT_FOUND" });
    expect(await send("pgone")).toMatchObject({ code: "DELETED_PROJECT_NOT_FOUND" });
  });

  // Shows: docs/undelete.md#over-v1: `POST /v1/project/:id/undelete` | `project.delete`
  it("needs the permission to create such a project, too", async () => {
    const onlyDelete = harness.key(
      organization,
      "project.delete on project:*",
      "project.create on organization:*",
    );
    expect(await send("pnew", onlyDelete)).toMatchObject({
      code: "PERMISSION_DENIED",
      required: ["database.create on organization:*"],
    });
  });

  // Shows: docs/undelete.md#errors: 409 | `PROJECT_EXISTS` | another project has the id by now
  it("answers 409 where another project has the id", async () => {
    await record("ptaken");
    await harness.project(organization, "ptaken");
    expect(await send("ptaken")).toMatchObject({ code: "PROJECT_EXISTS" });
    const live = await harness.kube.get<DeletedProject>(deletedProjectResource, {
      namespace,
      name: "ptaken-0c6b4d3e",
    });
    expect(live.spec.undeleteRequestedAt).toBeUndefined();
  });

  it("checks the ledger before it requests anything", async () => {
    await record("pkept");
    const state = JSON.stringify({
      project: { metadata: { name: "pkept" }, spec: { type: "http", plan: "premium" } },
    });
    await harness.kube.create(resources.secrets, {
      metadata: { namespace, name: "pkept-0c6b4d3e" },
      data: { "state.json": Buffer.from(state).toString("base64") },
    } as object);
    // The test's ledger is away.
    expect(await send("pkept")).toMatchObject({ code: "LEDGER_UNAVAILABLE" });
    const live = await harness.kube.get<DeletedProject>(deletedProjectResource, {
      namespace,
      name: "pkept-0c6b4d3e",
    });
    expect(live.spec.undeleteRequestedAt).toBeUndefined();
  });

  it("waits for one that is under way, and answers once the project is as it was", async () => {
    const deleted = await record("pback");
    const project = await harness.put(organization, "pback");
    const ref = { namespace, name: "pback" };
    const annotate = (from: string | null) =>
      harness.kube.patch<Project>(projectResource, ref, {
        metadata: { annotations: { [annotations.undeletedFrom]: from } },
      });
    await annotate(deleted.metadata.name);
    const answer = send("pback");
    await new Promise((resolve) => setTimeout(resolve, 300));
    await harness.kube.delete(deletedProjectResource, { namespace, name: deleted.metadata.name });
    await annotate(null);
    expect(await answer).toMatchObject({
      status: "success",
      data: { project_id: "pback", status: "creating" },
    });
    const { uid } = project.metadata;
    await eventually("the project to be listed", async () => {
      const found = await harness.services.projects.find(organization, "pback");
      return found?.resource.metadata.uid === uid;
    });
  });
});
