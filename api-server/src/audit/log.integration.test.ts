import { setTimeout as sleep } from "node:timers/promises";
import {
  type AuditEntry,
  connectLedger,
  insertAuditEntries,
  type Ledger,
  migrateToLatest,
  retireAuditLog,
} from "@slipway/ledger";
import { pino } from "pino";
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import { startPostgres, type TestPostgres } from "../../../test/kit/servers/postgresql.ts";
import { LedgerAuditLog } from "./log.ts";

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
const entry = (projectId: string, organizationId = "acme", status = 403): AuditEntry => ({
  ...intent(projectId),
  organizationId,
  status,
  code: "PERMISSION",
});
/** Counts what is not in the audit log. */
function observed() {
  const counts = { lost: 0, rate_limit: 0, budget: 0 };
  const observer = {
    lost: () => {
      counts.lost += 1;
    },
    unrecorded: (reason: "rate_limit" | "budget") => {
      counts[reason] += 1;
    },
  };
  return { counts, observer };
}
const written = async () =>
  (await ledger.selectFrom("audit_log").select(["project_id", "status"]).orderBy("id").execute()).map(
    (row) => `${row.project_id} ${row.status}`,
  );
const done = { status: 201, code: null, projectId: null };

it("keeps rows and outcomes while the ledger is unavailable, and writes them in order when it is available again", async () => {
  const { counts, observer } = observed();
  const audit = new LedgerAuditLog(ledger, silent, observer);
  const begun = await audit.begin(intent("p1"));
  expect(await written()).toEqual(["p1 null"]);
  await postgres.crash();
  await expect(audit.begin(intent("never"))).rejects.toThrow();
  audit.finish(begun, done);
  const over = Date.now();
  for (const id of ["p2", "p3"]) {
    audit.record(entry(id));
  }
  await sleep(500);
  await postgres.restart();
  await expect.poll(written).toEqual(["p1 201", "p2 403", "p3 403"]);
  await audit.close();
  expect(counts.lost).toBe(0);
  // They record when it happened, not when it could be written.
  for (const row of await ledger.selectFrom("audit_log").select(["at", "finished_at"]).execute()) {
    expect(row.at.getTime()).toBeLessThan(over + 250);
    expect(row.finished_at?.getTime()).toBeLessThan(over + 250);
  }
});

it("leaves a row without outcome when the process ends in the middle", async () => {
  await new LedgerAuditLog(ledger, silent, observed().observer).begin(intent("p4"));
  expect(await written()).toEqual(["p4 null"]);
});

it("counts as lost what cannot be written before the end", async () => {
  const { counts, observer } = observed();
  const unreachable = connectLedger({ url: "postgresql://nobody@127.0.0.1:1/none", applicationName: "test" });
  const audit = new LedgerAuditLog(unreachable, silent, observer);
  audit.finish({ id: "1", at: new Date() }, done);
  audit.record(entry("p5"));
  await audit.close();
  expect(counts.lost).toBe(2);
  await unreachable.destroy();
});

it("writes no row for a refusal of the rate limit, and of others as many as the organization's budget has", async () => {
  const { counts, observer } = observed();
  const audit = new LedgerAuditLog(ledger, silent, observer);
  for (let call = 0; call < 5_000; call += 1) {
    audit.record(entry("p6", "loud", 429));
  }
  for (let call = 0; call < 5_000; call += 1) {
    audit.record(entry("p6", "loud"));
  }
  for (let call = 0; call < 20; call += 1) {
    audit.record(entry("p7", "quiet"));
  }
  await audit.close();
  const rows = await written();
  expect(rows.filter((row) => row === "p7 403")).toHaveLength(20);
  expect(rows.filter((row) => row === "p6 403")).toHaveLength(60);
  expect(counts).toEqual({ lost: 0, rate_limit: 5_000, budget: 4_940 });
});

it("begins many calls in few statements, and loses none for another's row that the ledger refuses", async () => {
  const audit = new LedgerAuditLog(ledger, silent, observed().observer);
  const bad = { ...intent("p8"), actor: "user:\u0000" };
  const calls = Array.from({ length: 50 }, (_, index) => audit.begin(index === 7 ? bad : intent("p8")));
  const settled = await Promise.allSettled(calls);
  expect(settled.filter(({ status }) => status === "fulfilled")).toHaveLength(49);
  audit.record({ ...entry("p9"), actor: "user:\u0000" });
  audit.record(entry("p9", "other"));
  await audit.close();
  expect((await written()).filter((row) => row === "p9 403")).toHaveLength(1);
});

it("is dropped by months once it is old", async () => {
  const at = (time: string) => ({ entry: entry("old"), at: new Date(time) });
  await insertAuditEntries(ledger, [at("2025-01-31T23:59:59Z"), at("2025-02-01T00:00:00Z")]);
  expect(await retireAuditLog(ledger, new Date("2025-02-15T00:00:00Z"))).toEqual(["audit_log_2025_01"]);
  expect(await written()).toEqual(["old 403"]);
});
