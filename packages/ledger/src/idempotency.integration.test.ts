import { createHash } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startPostgres, type TestPostgres } from "../../../test/kit/servers/postgresql.ts";
import {
  completeIdempotencyKey,
  connectLedger,
  deleteIdempotencyKey,
  findIdempotencyRecord,
  insertOrganization,
  type Ledger,
  migrateToLatest,
  releaseIdempotencyKey,
  renewIdempotencyKey,
  reserveIdempotencyKey,
} from "./index.ts";

let postgres: TestPostgres;
let ledger: Ledger;

beforeAll(async () => {
  postgres = await startPostgres();
  ledger = connectLedger({ url: postgres.url, applicationName: "test" });
  await migrateToLatest(ledger);
  await insertOrganization(ledger, { id: "acme", name: "Acme" });
});
afterAll(async () => {
  await ledger?.destroy();
  await postgres?.stop();
});

let keys = 0;
/** A key of its own, and how a holder asks for it. */
function aKey() {
  keys += 1;
  const name = { organizationId: "acme", key: `a-key-of-its-own-${keys}` };
  const reserve = (holder: string, { projectId = "p1", body = "b", holdSeconds = 60 } = {}) => {
    const bodySha256 = createHash("sha256").update(body).digest();
    return reserveIdempotencyKey(ledger, { ...name, bodySha256, projectId, holder, holdSeconds });
  };
  return { name, reserve };
}

describe("an idempotency key", () => {
  it("gives every caller the same record, and one of them the turn", async () => {
    const { reserve } = aKey();
    const holders = Array.from({ length: 20 }, (_, index) => `h${index}`);
    const records = await Promise.all(holders.map((holder) => reserve(holder, { projectId: `p-${holder}` })));
    expect(new Set(records.map((record) => record.project_id)).size).toBe(1);
    expect(new Set(records.map((record) => record.holder)).size).toBe(1);
    expect(records[0]?.project_id).toBe(`p-${records[0]?.holder}`);
  });

  it("is the next call's when it is released, or when its time is over, under the same id", async () => {
    const { name, reserve } = aKey();
    await reserve("a");
    expect((await reserve("b", { projectId: "p2" })).holder).toBe("a");
    await releaseIdempotencyKey(ledger, name, "b");
    expect((await reserve("b")).holder).toBe("a");
    await releaseIdempotencyKey(ledger, name, "a");
    expect(await reserve("b", { projectId: "p2", holdSeconds: -1 })).toMatchObject({
      holder: "b",
      project_id: "p1",
    });
    expect((await reserve("c")).holder).toBe("c");
    expect(await renewIdempotencyKey(ledger, name, "b", 60)).toBe(false);
    expect(await renewIdempotencyKey(ledger, name, "c", 60)).toBe(true);
  });

  it("is nobody's turn for another body", async () => {
    const { name, reserve } = aKey();
    await reserve("a");
    await releaseIdempotencyKey(ledger, name, "a");
    expect((await reserve("b", { body: "another" })).holder).toBeNull();
  });

  it("is freed by its holder alone, and gets a new id then", async () => {
    const { name, reserve } = aKey();
    await reserve("a");
    await deleteIdempotencyKey(ledger, name, "b");
    expect((await findIdempotencyRecord(ledger, name))?.holder).toBe("a");
    await deleteIdempotencyKey(ledger, name, "a");
    expect(await findIdempotencyRecord(ledger, name)).toBeUndefined();
    expect((await reserve("b", { projectId: "p2" })).project_id).toBe("p2");
  });

  it("names its project once completed, and rejects the completion of another", async () => {
    const { name, reserve } = aKey();
    await reserve("a");
    expect(await completeIdempotencyKey(ledger, name, "p2", new Date())).toBe(false);
    expect(await completeIdempotencyKey(ledger, name, "p1", new Date(1_000))).toBe(true);
    expect(await completeIdempotencyKey(ledger, name, "p1", new Date(2_000))).toBe(true);
    await deleteIdempotencyKey(ledger, name, "a");
    const record = await reserve("b", { projectId: "p2" });
    expect(record).toMatchObject({ project_id: "p1", holder: null, completed_at: new Date(1_000) });
    expect(await renewIdempotencyKey(ledger, name, "a", 60)).toBe(false);
  });
});
