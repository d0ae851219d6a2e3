import { afterAll, describe, expect, test } from "vitest";
import {
  apiClient,
  createProject,
  deleteProjects,
  httpProject,
  readProject,
  uniqueName,
  untilStatus,
} from "./support/api.ts";
import { eventually } from "./support/eventually.ts";
import { throughIngress } from "./support/ingress.ts";
import { createOrganization } from "./support/organization.ts";

const call = apiClient();
const made: string[] = [];
afterAll(() => deleteProjects(call, made));

/** The longest value that `/v1` takes, different for each variable. */
const longValue = (seed: number): string => `${seed}:`.padEnd(32_760, String.fromCharCode(97 + (seed % 26)));

describe("the specification's limits, at their edges", () => {
  // Shows: docs/applications.md#endpoints: `GET /v1/project/:id/envs` | the variables in clear text, as
  // Shows: docs/applications.md#create: `config.storage`: 1 to 250 GB at `dir_path_to_persist`
  // Shows: docs/applications.md#create: `config.envs`: literal, any characters; what cannot be an
  // Shows: docs/applications.md#limits: description | 1 to 256 characters
  // Shows: docs/applications.md#limits: subdomain | 3 to 54 characters
  // Shows: docs/applications.md#limits: custom domains | at most 20
  // Shows: docs/applications.md#limits: environment variables | at most 50; name 1 to 120, value 1 to
  // Shows: docs/applications.md#limits: storage.capacity | 1 to 250 GB
  // Shows: docs/applications.md#limits: dir_path_to_persist | absolute, up to 80 characters
  // Shows: docs/applications.md#limits: ingress_white_list | 1 to 10 items
  // Shows: docs/applications.md#limits: ingress_black_list | up to 10 items
  test("the largest legal body: 50 variables of 32,760 characters, 20 custom domains, 250 GB", async () => {
    const envs = Array.from({ length: 50 }, (_, i) => ({ name: `LONG_${i}`, value: longValue(i) }));
    const zone = `${uniqueName("edge")}.example.com`;
    const custom_domains = Array.from({ length: 20 }, (_, i) => `d${i}.${zone}`);
    const body = {
      ...httpProject(uniqueName("largest-legal-name-xx").slice(0, 32), {
        envs,
        custom_domains,
        subdomain: uniqueName("edge").padEnd(54, "x"),
        storage: { persistent: true, capacity: 250, dir_path_to_persist: `/${"p".repeat(79)}` },
        network_access: {
          ingress_white_list: [
            { cidr: "0.0.0.0/0", description: "d".repeat(256) },
            ...Array.from({ length: 9 }, (_, i) => ({ cidr: `203.0.113.${i}/32`, description: "" })),
          ],
          ingress_black_list: Array.from({ length: 10 }, (_, i) => ({
            cidr: `198.51.100.${i}/32`,
            description: "",
          })),
        },
      }),
      plan: "premium",
      description: "x".repeat(256),
    };
    const { project_id: id, domain } = await createProject(call, body);
    made.push(id);
    const project = await untilStatus(call, id, "running");
    expect(project.storage).toMatchObject({ persistent: true, capacity: 250 });
    expect(project.custom_domains).toEqual(custom_domains);
    expect(project.custom_domain_setup).toHaveLength(20);
    for (const { name, value } of [envs[0], envs[49]].filter((one) => one !== undefined)) {
      expect(await throughIngress(domain, `/env/${name}`)).toEqual({ status: 200, text: value });
    }
    const read = await call<{ name: string; value: string }[]>("GET", `/v1/project/${id}/envs`);
    const byName = (a: { name: string }, b: { name: string }) => (a.name < b.name ? -1 : 1);
    expect(read.body.data?.toSorted(byName)).toEqual(envs.toSorted(byName));
    expect((await call("DELETE", `/v1/project/${id}`)).status).toBe(200);
  });

  // Shows: docs/applications.md#conventions: every broken rule is reported in one answer, each naming
  // Shows: docs/applications.md#limits: project name | 6 to 32 characters
  // Shows: docs/applications.md#limits: description | 1 to 256 characters
  // Shows: docs/applications.md#limits: subdomain | 3 to 54 characters
  // Shows: docs/applications.md#limits: custom domains | at most 20
  // Shows: docs/applications.md#limits: image.url | 8 to 256 characters
  // Shows: docs/applications.md#limits: environment variables | at most 50; name 1 to 120, value 1 to
  // Shows: docs/applications.md#limits: storage.capacity | 1 to 250 GB
  // Shows: docs/applications.md#limits: dir_path_to_persist | absolute, up to 80 characters
  // Shows: docs/applications.md#limits: ingress_white_list | 1 to 10 items
  // Shows: docs/applications.md#limits: ingress_black_list | up to 10 items
  // Shows: docs/applications.md#errors-project-creation: 400 | invalid body
  test("one past each limit is rejected, every broken rule in one answer", async () => {
    const item = { cidr: "203.0.113.0/24", description: "" };
    const refused = await call("POST", "/v1/project", {
      ...httpProject("n".repeat(33), {
        envs: Array.from({ length: 51 }, (_, i) => ({ name: `E${i}`, value: "v" })),
        custom_domains: Array.from({ length: 21 }, (_, i) => `d${i}.example.com`),
        subdomain: "s".repeat(55),
        image: { url: "i".repeat(257), is_public: true },
        storage: { persistent: true, capacity: 251, dir_path_to_persist: `/${"p".repeat(80)}` },
        network_access: {
          ingress_white_list: Array(11).fill(item),
          ingress_black_list: Array(11).fill(item),
        },
      }),
      description: "x".repeat(257),
    });
    expect(refused.status).toBe(400);
    expect(refused.body.errors?.map(({ field }) => field).toSorted()).toEqual([
      "config.custom_domains",
      "config.envs",
      "config.image.url",
      "config.network_access.ingress_black_list",
      "config.network_access.ingress_white_list",
      "config.storage.capacity",
      "config.storage.dir_path_to_persist",
      "config.subdomain",
      "description",
      "name",
    ]);
  });

  // Shows: docs/applications.md#project-settings: pause and resume: the quota is released and reserved
  // Shows: docs/applications.md#limits: free plan | 2 instances, counted exactly under 50 concurrent
  // Shows: docs/applications.md#errors-project-creation: 409 | `FREE_PLAN_INSTANCE_LIMIT_REACHED`
  // Shows: docs/applications.md#errors-project-creation: 409 | `FREE_PLAN_INSTANCE_LIMIT_EXCEEDED`
  test("the free plan has two instances, and says how many are left", async () => {
    const organization = await createOrganization(uniqueName("free"));
    const own = apiClient(organization.api_key);
    const free = (instances: number) => ({
      ...httpProject(uniqueName("free"), { instances, exposure: "private" }),
      plan: "free",
    });
    const create = (body: unknown) =>
      eventually(async () => {
        const answer = await own<{ project_id: string }>("POST", "/v1/project", body);
        expect(answer.body.code).not.toBe("ORGANIZATION_RUNTIME_UNAVAILABLE");
        return answer;
      });
    const first = await create(free(1));
    expect(first.status).toBe(201);
    const id = first.body.data?.project_id ?? "";
    const tooMany = { code: "FREE_PLAN_INSTANCE_LIMIT_EXCEEDED", limit: 2, remaining: 1 };
    expect(await create(free(2))).toMatchObject({ status: 409, body: tooMany });
    // Of fifty concurrent requests one gets the rest of the quota.
    const all = await Promise.all(
      Array.from({ length: 50 }, () => own<{ project_id: string }>("POST", "/v1/project", free(1))),
    );
    expect(all.filter(({ status }) => status === 201)).toHaveLength(1);
    expect(all.filter(({ status }) => status !== 201)).toEqual(
      Array(49).fill(
        expect.objectContaining({
          status: 409,
          body: expect.objectContaining({ code: "FREE_PLAN_INSTANCE_LIMIT_REACHED", limit: 2 }),
        }),
      ),
    );
    // A paused project releases its quota, and none may be left when it resumes.
    expect((await own("POST", `/v1/project/${id}/pause`)).status).toBe(200);
    const third = await own<{ project_id: string }>("POST", "/v1/project", free(1));
    expect(third.status).toBe(201);
    expect(await own("POST", `/v1/project/${id}/resume`)).toMatchObject({
      status: 409,
      body: { code: "FREE_PLAN_INSTANCE_LIMIT_REACHED", limit: 2 },
    });
    const ids = [
      id,
      third.body.data?.project_id,
      all.find(({ status }) => status === 201)?.body.data?.project_id,
    ];
    await deleteProjects(
      own,
      ids.filter((one) => one !== undefined),
    );
  });

  // Shows: docs/applications.md#create: `Idempotency-Key`: the same request again answers the same
  // Shows: docs/applications.md#errors-project-creation: 409 | `IDEMPOTENCY_KEY_CONFLICT`
  test("fifty requests with one Idempotency-Key make one project", async () => {
    const key = uniqueName("idempotent-key");
    const body = httpProject(uniqueName("idem"), { exposure: "private" });
    const answers = await Promise.all(
      Array.from({ length: 50 }, () =>
        call<{ project_id: string }>("POST", "/v1/project", body, { "idempotency-key": key }),
      ),
    );
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([201]));
    const ids = new Set(answers.map(({ body: { data } }) => data?.project_id));
    expect(ids.size).toBe(1);
    const [id = ""] = ids;
    made.push(id);
    expect((await readProject(call, id)).name).toBe(body.name);
    const other = { ...body, name: uniqueName("other") };
    expect(await call("POST", "/v1/project", other, { "idempotency-key": key })).toMatchObject({
      status: 409,
      body: { code: "IDEMPOTENCY_KEY_CONFLICT" },
    });
  });
});
