import { randomUUID } from "node:crypto";
import { expect, test } from "vitest";
import { isLong } from "../kit/long.ts";
import { apiClient, type CreatedProject, deleteProjects, httpProject } from "./support/api.ts";
import { cluster } from "./support/cluster.ts";
import { eventually } from "./support/eventually.ts";
import { killOperator, leader } from "./support/operator.ts";
import { createOrganization } from "./support/organization.ts";
import { namespaceOf } from "./support/stack.ts";

const projects = isLong ? 50 : 12;

test(`kill -9 of the leading operator during ${projects} creations: all end Ready, no orphan`, async () => {
  const organization = await createOrganization("Failover");
  const namespace = namespaceOf(organization.organization_id);
  const call = apiClient(organization.api_key);

  const ids: string[] = [];
  for (let index = 0; index < projects; index += 1) {
    if (index === Math.floor(projects / 2)) {
      await eventually(async () => killOperator(await leader()), { every: 200 });
    }
    const body = httpProject(`failover-${String(index).padStart(2, "0")}`);
    // A creation may be committed and its answer lost, while another file's test freezes the apiserver: the retry is the same one.
    const key = { "idempotency-key": randomUUID() };
    const id = await eventually(async () => {
      const created = await call<CreatedProject>("POST", "/v1/project", body, key);
      // The rate limit of creations is the only refusal that may happen here.
      expect(created.status).toBe(201);
      return (created.body.data as CreatedProject).project_id;
    });
    ids.push(id);
  }

  await eventually(
    async () => {
      const list = await cluster.custom.listNamespacedCustomObject({
        group: "slipway.dev",
        version: "v1alpha1",
        plural: "projects",
        namespace,
      });
      const ready = (list.items as { status?: { conditions?: { type: string; status: string }[] } }[]).filter(
        ({ status }) => status?.conditions?.some(({ type, status }) => type === "Ready" && status === "True"),
      );
      expect(ready).toHaveLength(projects);
    },
    { within: 600_000, every: 2_000 },
  );

  const deployments = await cluster.apps.listNamespacedDeployment({ namespace });
  expect(deployments.items.map(({ metadata }) => metadata?.name).sort()).toEqual([...ids].sort());

  await deleteProjects(call, ids);
  for (const list of [
    await cluster.apps.listNamespacedDeployment({ namespace }),
    await cluster.core.listNamespacedService({ namespace }),
    await cluster.networking.listNamespacedIngress({ namespace }),
  ]) {
    expect(list.items).toEqual([]);
  }
}, 1_200_000);
