import { type AuditEntry, connectLedger, type Ledger, migrateToLatest } from "@slipway/ledger";
import { startPostgres, type TestPostgres } from "@slipway/ledger/testing";
import { pino } from "pino";
import { afterAll, beforeAll, expect, it } from "vitest";
import { LedgerAuditLog } from "./audit-log.ts";

let postgres: TestPostgres;
let ledger: Ledger;
beforeAll(async () => {
  postgres = await startPostgres();
  ledger = connectLedger({ url: postgres.url, applicationName: "test" });
  await migrateToLatest(ledger);
});
afterAll(async () => {
  await ledger?.destroy();
  await postgres?.stop();
});

const silent = pino({ level: "silent" });
const entry = (projectId: string): AuditEntry => ({
  organizationId: "acme",
  actor: "api-key:k1",
  operation: "createProject",
  projectId,
  sourceIp: "127.0.0.1",
  status: 201,
  code: null,
});
const written = async () =>
  (await ledger.selectFrom("audit_log").select("project_id").orderBy("id").execute()).map(
    (row) => row.project_id,
  );

it("keeps lines while the ledger is away, and writes them in order when it is back", async () => {
  let lost = 0;
  const audit = new LedgerAuditLog(ledger, silent, () => {
    lost += 1;
  });
  audit.record(entry("p1"));
  await expect.poll(written).toEqual(["p1"]);
  await postgres.crash();
  for (const id of ["p2", "p3"]) audit.record(entry(id));
  await postgres.restart();
  await expect.poll(written, { timeout: 10_000 }).toEqual(["p1", "p2", "p3"]);
  await audit.close();
  expect(lost).toBe(0);
});

it("counts as lost what cannot be written before the end", async () => {
  let lost = 0;
  const gone = connectLedger({ url: "postgresql://nobody@127.0.0.1:1/none", applicationName: "test" });
  const audit = new LedgerAuditLog(gone, silent, () => {
    lost += 1;
  });
  for (const id of ["p4", "p5"]) audit.record(entry(id));
  await audit.close();
  expect(lost).toBe(2);
  await gone.destroy();
});
