import { sql } from "kysely";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { startPostgres, type TestPostgres } from "../../../test/kit/servers/postgresql.ts";
import {
  connectLedger,
  type Ledger,
  listUsage,
  migrateToLatest,
  recordUsage,
  releaseUsage,
  reserveUsage,
  type Usage,
} from "./index.ts";

let postgres: TestPostgres;
/** Two pools, as two replicas have them. */
let pools: [Ledger, Ledger];

beforeAll(async () => {
  postgres = await startPostgres();
  const open = () => connectLedger({ url: postgres.url, applicationName: "test" });
  pools = [open(), open()];
  await migrateToLatest(pools[0]);
});
afterAll(async () => {
  await Promise.all((pools ?? []).map((pool) => pool.destroy()));
  await postgres?.stop();
});
beforeEach(async () => {
  await sql`truncate organization_usage`.execute(pools[0]);
});

const limits = { projects: 10, customDomains: 3, variableBytes: 1_000 };
const project = (name: string): Usage => ({ kind: "projects", name, amount: 1 });
const domains = (name: string, amount: number): Usage => ({ kind: "customDomains", name, amount });
const reserve = (wanted: Usage[], ledger = pools[0], organization = "acme") =>
  reserveUsage(ledger, organization, wanted, limits);
const names = async () => (await listUsage(pools[0])).map(({ name }) => name).sort();

describe("an organization's ceilings", () => {
  it("admit exactly as many as the limit, of forty concurrent requests over two replicas", async () => {
    const calls = Array.from({ length: 40 }, (_, index) =>
      reserve([project(`p${index}`)], pools[index % 2] as Ledger),
    );
    const answers = await Promise.all(calls);
    expect(answers.filter(({ reserved }) => reserved)).toHaveLength(10);
    expect(answers.find(({ reserved }) => !reserved)).toEqual({
      reserved: false,
      kind: "projects",
      used: 10,
      limit: 10,
    });
    expect(await names()).toHaveLength(10);
  });

  it("are one organization's own", async () => {
    for (let index = 0; index < 10; index += 1) {
      await reserve([project(`p${index}`)]);
    }
    expect(await reserve([project("p1")], pools[0], "other")).toEqual({ reserved: true });
  });

  it("reserve the whole request, or nothing", async () => {
    const answer = await reserve([project("p1"), domains("p1", 4)]);
    expect(answer).toMatchObject({ reserved: false, kind: "customDomains", limit: 3 });
    expect(await names()).toEqual([]);
  });

  it("replace what a name has reserved, and never reject what it has", async () => {
    expect(await reserve([domains("p1", 2)])).toEqual({ reserved: true });
    expect(await reserve([domains("p2", 2)])).toMatchObject({ reserved: false, used: 2 });
    expect(await reserve([domains("p1", 3)])).toEqual({ reserved: true });
    await recordUsage(pools[0], [{ organizationId: "acme", ...domains("p2", 20) }]);
    expect(await reserve([domains("p2", 20)])).toEqual({ reserved: true });
    expect(await reserve([domains("p1", 3)])).toEqual({ reserved: true });
    expect(await reserve([domains("p2", 21)])).toMatchObject({ reserved: false });
  });

  it("sum the bytes of all Secrets of one call", async () => {
    const secret = (name: string, amount: number): Usage => ({ kind: "variableBytes", name, amount });
    expect(await reserve([secret("a", 600), secret("b", 600)])).toMatchObject({ reserved: false, used: 0 });
    expect(await reserve([secret("a", 600), secret("b", 400)])).toEqual({ reserved: true });
    await releaseUsage(pools[0], [{ organizationId: "acme", kind: "variableBytes", name: "a" }], 60);
    expect(await names()).toEqual(["a", "b"]);
    await releaseUsage(pools[0], [{ organizationId: "acme", kind: "variableBytes", name: "a" }]);
    expect(await names()).toEqual(["b"]);
  });
});

it("an account that is corrected while the same things are reserved ends in no deadlock", async () => {
  const usage = Array.from({ length: 3_000 }, (_, index) => project(`p${index}`));
  const generous = { ...limits, projects: 10_000 };
  for (let round = 0; round < 10; round += 1) {
    await Promise.all([
      recordUsage(
        pools[0],
        usage.map((one) => ({ organizationId: "busy", ...one })),
      ),
      reserveUsage(pools[1], "busy", usage.toReversed(), generous),
    ]);
  }
});
