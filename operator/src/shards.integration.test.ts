import { isConditionTrue, resources, shardOf } from "@slipway/controller-runtime";
import { annotations, type DomainClaim, type Project } from "@slipway/crds";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  eventually,
  exists,
  startCluster,
  startOperator,
  type TestCluster,
  type TestProcess,
} from "../../test/kit/operator/harness.ts";
import { exampleProject } from "../../test/kit/operator/projects.ts";
import { domainClaimResource, projectResource } from "./resources.ts";

/** Two whole operators, each the leader of a shard, and a real kube-apiserver. */

const SHARDS = 2;
const organizations = Array.from({ length: 6 }, (_, index) => `shard${index}`);
const refOf = (organization: string) => ({ namespace: `slipway-org-${organization}`, name: "app" });

let cluster: TestCluster;
let operators: TestProcess[];

const start = (index: number) =>
  startOperator(cluster, {
    identity: `shard-${index}`,
    listOrganizations: async () => organizations,
    leaderElection: {
      namespace: "slipway-system",
      name: "sharded-operator",
      shard: { index, count: SHARDS, annotation: annotations.shards },
    },
  });

beforeAll(async () => {
  cluster = await startCluster();
  await cluster.client.create(resources.namespaces, { metadata: { name: "slipway-system" } });
  operators = await Promise.all(Array.from({ length: SHARDS }, (_, index) => start(index)));
});
afterAll(async () => {
  await Promise.all(operators?.map((operator) => operator.stop()) ?? []);
  await cluster?.stop();
});

/** How many keys a shard's controller has taken from its queue. */
async function reconciles(shard: number, controller: string): Promise<number> {
  const text = (await operators[shard]?.metrics()) ?? "";
  const sample = `controller_runtime_reconcile_total\\{controller="${controller}",result="[a-z_]+"\\} (\\d+)`;
  return [...text.matchAll(new RegExp(sample, "g"))].reduce((sum, [, count]) => sum + Number(count), 0);
}

// Shows: docs/operations/README.md#shards: whose leaders reconcile their parts side by side
test("two shards reconcile the organizations between them, with the hostnames of their projects", async () => {
  const { client } = cluster;
  const owners = organizations.map((organization) => shardOf(refOf(organization).namespace, SHARDS));
  expect(new Set(owners).size).toBe(SHARDS);
  for (const organization of organizations) {
    const ref = refOf(organization);
    await eventually(() => exists(client, resources.namespaces, { name: ref.namespace }));
    await client.create<Project>(projectResource, exampleProject(ref, { paused: true }));
  }
  for (const organization of organizations) {
    const ref = refOf(organization);
    await eventually(() => exists(client, resources.deployments, ref));
    const domain = await eventually(
      async () => (await client.get<Project>(projectResource, ref)).status?.domain,
    );
    await eventually(async () => {
      const claim = await client.get<DomainClaim>(domainClaimResource, { name: domain });
      return isConditionTrue(claim.status?.conditions, "Verified");
    });
  }
  for (const shard of [0, 1]) {
    expect(await reconciles(shard, "project")).toBeGreaterThan(0);
    expect(await reconciles(shard, "domainclaim")).toBeGreaterThan(0);
  }
  expect(await reconciles(0, "organization")).toBeGreaterThan(0);
  expect(await reconciles(1, "organization")).toBe(0);
});

// Shows: docs/operations/README.md#shards: A shard that nobody leads keeps no other one waiting
test("a shard whose leader has stopped keeps nobody else's projects waiting", async () => {
  const { client } = cluster;
  await operators[1]?.stop();
  const [own, foreign] = [0, 1].map((shard) =>
    organizations.find((organization) => shardOf(refOf(organization).namespace, SHARDS) === shard),
  );
  const image = { url: "registry.example.com/team/app:2", isPublic: true };
  const imageOf = async (organization = "") => {
    type Deployment = { spec?: { template?: { spec?: { containers?: { image?: string }[] } } } };
    const live = (await client.get(resources.deployments, refOf(organization))) as Deployment;
    return live.spec?.template?.spec?.containers?.[0]?.image;
  };
  for (const organization of [foreign, own]) {
    await client.patch(projectResource, refOf(organization ?? ""), { spec: { image } });
  }
  await eventually(async () => (await imageOf(own)) === image.url);
  expect(await imageOf(foreign)).not.toBe(image.url);
  operators[1] = await start(1);
  await eventually(async () => (await imageOf(foreign)) === image.url);
  for (const organization of organizations) {
    await client.delete(projectResource, refOf(organization));
    await eventually(async () => !(await exists(client, projectResource, refOf(organization))));
  }
});
