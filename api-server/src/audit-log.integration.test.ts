import { setTimeout as sleep } from "node:timers/promises";
import { type AuditEntry, connectLedger, type Ledger, migrateToLatest } from "@slipway/ledger";
import { startPostgres, type TestPostgres } from "@slipway/ledger/testing";
import { pino } from "pino";
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
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
beforeEach(() => ledger.deleteFrom("audit_log").execute());

const silent = pino({ level: "silent" });
const intent = (projectId: string) => ({
  organizationId: "acme",
  actor: "api-key:k1",
  operation: "createProject",
  projectId,
  sourceIp: "127.0.0.1",
});
const entry = (projectId: string): AuditEntry => ({ ...intent(projectId), status: 403, code: "PERMISSION" });
const written = async () =>
  (await ledger.selectFrom("audit_log").select(["project_id", "status"]).orderBy("id").execute()).map(
    (row) => `${row.project_id} ${row.status}`,
  );
const done = { status: 201, code: null, projectId: null };

it("keeps lines and outcomes while the ledger is away, and writes them in order when it is back", async () => {
  let lost = 0;
  const audit = new LedgerAuditLog(ledger, silent, () => {
    lost += 1;
  });
  const begun = await audit.begin(intent("p1"));
  expect(await written()).toEqual(["p1 null"]);
  await postgres.crash();
  await expect(audit.begin(intent("never"))).rejects.toThrow();
  audit.finish(begun, done);
  const over = Date.now();
  for (const id of ["p2", "p3"]) audit.record(entry(id));
  await sleep(500);
  await postgres.restart();
  await expect.poll(written, { timeout: 10_000 }).toEqual(["p1 201", "p2 403", "p3 403"]);
  await audit.close();
  expect(lost).toBe(0);
  // They tell when it happened, not when it could be written.
  for (const row of await ledger.selectFrom("audit_log").select(["at", "finished_at"]).execute()) {
    expect(row.at.getTime()).toBeLessThan(over + 250);
    expect(row.finished_at?.getTime()).toBeLessThan(over + 250);
  }
});

it("leaves a row without outcome when the process ends in the middle", async () => {
  await new LedgerAuditLog(ledger, silent, () => {}).begin(intent("p4"));
  expect(await written()).toEqual(["p4 null"]);
});

it("counts as lost what cannot be written before the end", async () => {
  let lost = 0;
  const gone = connectLedger({ url: "postgresql://nobody@127.0.0.1:1/none", applicationName: "test" });
  const audit = new LedgerAuditLog(gone, silent, () => {
    lost += 1;
  });
  audit.finish("1", done);
  audit.record(entry("p5"));
  await audit.close();
  expect(lost).toBe(2);
  await gone.destroy();
});
