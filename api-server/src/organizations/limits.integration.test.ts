import { KubeClient } from "@slipway/controller-runtime";
import {
  connectLedger,
  insertOrganization,
  type Ledger,
  listUsage,
  migrateToLatest,
  recordUsage,
  type UsageKind,
} from "@slipway/ledger";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { exampleBody, type Harness, startHarness } from "../../../test/kit/api-server/harness.ts";
import { startReleaser } from "../../../test/kit/api-server/releaser.ts";
import { FakeApiserver } from "../../../test/kit/apiserver/fake-apiserver.ts";
import { startPostgres, type TestPostgres } from "../../../test/kit/servers/postgresql.ts";

/** Two replicas of the API server over one ledger and one cluster. */

let postgres: TestPostgres;
let apiserver: FakeApiserver;
let pools: [Ledger, Ledger];
let replicas: [Harness, Harness];

beforeAll(async () => {
  [postgres, apiserver] = await Promise.all([startPostgres(), FakeApiserver.start()]);
  const open = () => connectLedger({ url: postgres.url, applicationName: "test" });
  pools = [open(), open()];
  await migrateToLatest(pools[0]);
  const start = (ledger: Ledger) => startHarness(KubeClient.forUrl(apiserver.url), { ledger });
  replicas = [await start(pools[0]), await start(pools[1])];
});
afterAll(async () => {
  await Promise.all((replicas ?? []).map((replica) => replica.close()));
  await Promise.all((pools ?? []).map((pool) => pool.destroy()));
  await apiserver?.stop();
  await postgres?.stop();
});

let organizations = 0;
/** An organization that has `amount` of a kind already. */
async function organization(kind: UsageKind, amount: number) {
  const organizationId = `limited-${++organizations}`;
  await insertOrganization(pools[0], { id: organizationId, name: organizationId });
  await replicas[0].namespace(organizationId);
  const count = kind === "projects" ? amount : 1;
  const each = kind === "projects" ? 1 : amount;
  const rows = Array.from({ length: count }, (_, index) => ({
    organizationId,
    kind,
    name: `earlier-${index}`,
    amount: each,
  }));
  await recordUsage(pools[0], rows);
  const keys = replicas.map((replica) =>
    replica.key(organizationId, "* on organization:*", "* on project:*"),
  );
  const send = async (index: number, method: "POST" | "PATCH" | "DELETE", path: string, payload: object) => {
    const headers = { ...keys[index % 2], "content-type": "application/json" };
    const url = `/v1/project${path}`;
    const answer = await (replicas[index % 2] as Harness).app.inject({ method, url, headers, payload });
    return { status: answer.statusCode, body: answer.json() };
  };
  const used = async () =>
    (await listUsage(pools[0])).filter((row) => row.organizationId === organizationId && row.kind === kind);
  return { send, used };
}
const basic = () => {
  const body = exampleBody();
  return { ...body, plan: "basic", config: { ...body.config, instances: 1 } };
};

describe("an organization at its ceiling", () => {
  // Shows: docs/applications.md#errors-project-creation: 409 | `ORGANIZATION_PROJECT_LIMIT_REACHED`
  it("gets the last project exactly once of ten at the same time, and room again with a deletion", async () => {
    const { send, used } = await organization("projects", 499);
    const answers = await Promise.all(
      Array.from({ length: 10 }, (_, index) => send(index, "POST", "", basic())),
    );
    const [created, ...others] = answers.filter(({ status }) => status === 201);
    expect(others).toEqual([]);
    const refused = answers.filter(({ status }) => status !== 201);
    expect(refused).toHaveLength(9);
    for (const { status, body } of refused) {
      expect([status, body.code, body.limit]).toEqual([409, "ORGANIZATION_PROJECT_LIMIT_REACHED", 500]);
    }
    expect(await used()).toHaveLength(500);
    const id = created?.body.data.project_id as string;
    // A paused project is none less.
    expect((await send(0, "POST", `/${id}/pause`, {})).status).toBe(200);
    expect((await send(1, "POST", "", basic())).status).toBe(409);
    expect((await send(0, "DELETE", `/${id}`, {})).status).toBe(200);
    expect(await used()).toHaveLength(499);
    expect((await send(1, "POST", "", basic())).status).toBe(201);
  });

  it("has no more bytes of variables, those of earlier deployments included", async () => {
    const { send, used } = await organization("variableBytes", 33_554_432 - 250);
    const { body } = await send(0, "POST", "", basic());
    const path = `/${body.data.project_id}/envs`;
    const variable = (value: string) => ({ envs: [{ name: "V", value }] });
    expect((await send(0, "PATCH", path, variable("a".repeat(99)))).status).toBe(200);
    expect((await send(1, "PATCH", path, variable("b".repeat(99)))).status).toBe(200);
    const refused = await send(0, "PATCH", path, variable("c".repeat(99)));
    expect([refused.status, refused.body.code, refused.body.limit]).toEqual([
      409,
      "ORGANIZATION_VARIABLES_LIMIT_REACHED",
      33_554_432,
    ]);
    expect(await used()).toHaveLength(3);
    const { config, ...rest } = basic();
    const creation = { ...rest, config: { ...config, envs: [{ name: "V", value: "x".repeat(99) }] } };
    expect((await send(0, "POST", "", creation)).body.code).toBe("ORGANIZATION_VARIABLES_LIMIT_REACHED");
  });

  it("has no more custom domains", async () => {
    const { send } = await organization("customDomains", 499);
    const { body } = await send(0, "POST", "", basic());
    const path = `/${body.data.project_id}/custom-domains`;
    const first = { custom_domains: ["one.example.org"] };
    expect((await send(0, "PATCH", path, first)).status).toBe(200);
    const second = { custom_domains: ["one.example.org", "two.example.org"] };
    const refused = await send(1, "PATCH", path, second);
    expect([refused.status, refused.body.code, refused.body.limit]).toEqual([
      409,
      "ORGANIZATION_CUSTOM_DOMAIN_LIMIT_REACHED",
      500,
    ]);
  });

  it("keeps what a project has reserved when a change to fewer custom domains fails, and gets room by one that succeeds", async () => {
    const { send, used } = await organization("customDomains", 498);
    const [one, other] = [await send(0, "POST", "", basic()), await send(0, "POST", "", basic())];
    const domains = ({ body }: typeof one, ...custom_domains: string[]) =>
      send(1, "PATCH", `/${body.data.project_id}/custom-domains`, { custom_domains });
    const amount = async () => (await used()).find(({ name }) => name === one.body.data.project_id)?.amount;
    const holder = await organization("customDomains", 0);
    const elsewhere = await holder.send(0, "POST", "", basic());
    const path = `/${elsewhere.body.data.project_id}/custom-domains`;
    expect((await holder.send(0, "PATCH", path, { custom_domains: ["theirs.example.org"] })).status).toBe(
      200,
    );

    await domains(one, "a.example.org");
    expect((await domains(one, "a.example.org", "b.example.org")).status).toBe(200);
    expect((await domains(one, "theirs.example.org")).body.code).toBe("DOMAIN_UNAVAILABLE");
    expect(await amount()).toBe(2);
    expect((await domains(other, "c.example.org")).status).toBe(409);

    const releaser = startReleaser(KubeClient.forUrl(apiserver.url));
    try {
      expect((await domains(one, "b.example.org")).status).toBe(200);
      expect(await amount()).toBe(1);
      expect((await domains(other, "c.example.org")).status).toBe(200);
    } finally {
      await releaser.stop();
    }
  });
});
