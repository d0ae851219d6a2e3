import { Store } from "@slipway/controller-runtime";
import type { Project } from "@slipway/crds";
import { connectLedger, type Ledger, listSettlements, migrateToLatest } from "@slipway/ledger";
import { silentLogger } from "@slipway/process";
import { afterAll, beforeAll, expect, test } from "vitest";
import { exampleJob } from "../../../test/kit/operator/projects.ts";
import { FakeClock } from "../../../test/kit/processes/fake-clock.ts";
import { startPostgres, type TestPostgres } from "../../../test/kit/servers/postgresql.ts";
import { ledgerBilling, runSettlement } from "./billing.ts";
import { StorageMeter } from "./storage-meter.ts";

const HOUR = 3_600_000;
/** An hour of a GB, in BRL cents: no whole number of them makes a cent soon. */
const PRICE = "0.0125";

let postgres: TestPostgres;
let ledger: Ledger;

beforeAll(async () => {
  postgres = await startPostgres();
  ledger = connectLedger({ url: postgres.url, applicationName: "test", maxConnections: 4 });
  await migrateToLatest(ledger);
});
afterAll(async () => {
  await ledger?.destroy();
  await postgres?.stop();
});

function job(name: string, createdAt: string, capacity: number, deletedAt?: string): Project {
  const ref = { namespace: "slipway-org-alpha", name };
  const at = new Date(createdAt).toISOString();
  return {
    ...exampleJob(ref, { storage: { persistent: true, capacity } }),
    metadata: {
      ...ref,
      uid: `uid-${name}`,
      resourceVersion: "1",
      creationTimestamp: at,
      ...(deletedAt === undefined ? {} : { deletionTimestamp: deletedAt }),
    },
    status: {
      observedGeneration: 1,
      conditions: [
        {
          type: "Accepted",
          status: "True",
          reason: "Accepted",
          message: "",
          lastTransitionTime: at,
          observedGeneration: 1,
        },
      ],
    },
  };
}

/** An operator's meter, as after a start. */
function meterOf(projects: readonly Project[], clock: FakeClock, outcomes: string[] = []): StorageMeter {
  const store = new Store<Project>({ clock });
  store.replace(projects, "1");
  return new StorageMeter({
    ledger: ledgerBilling(ledger),
    projects: store,
    catalog: () => ({
      storagePlans: [
        { storage: "ssd", persistent: true, prices: { hourly: PRICE, monthly: "9", yearly: "108" } },
      ],
    }),
    clock,
    log: silentLogger,
    onRecorded: (outcome, hours) => outcomes.push(`${outcome} ${hours}`),
  });
}

// Shows: docs/jobs.md#billing: persistent storage costs GB-hours while the project exists, paused or
test("storage over two months, metered by two operators concurrently and one after an outage, is charged once and settled exactly", async () => {
  const signal = new AbortController().signal;
  const projects = [job("p1", "2025-12-31T22:10:00Z", 7), job("p2", "2026-01-20T00:00:00Z", 3)];
  const clock = new FakeClock("2026-01-20T12:00:00Z");
  const outcomes: string[] = [];
  // Both lead, for all they know.
  await Promise.all([
    meterOf(projects, clock, outcomes).chargeDue(signal),
    meterOf(projects, clock, outcomes).chargeDue(signal),
  ]);
  const recorded = outcomes.reduce((sum, text) => sum + Number(text.replace("recorded ", "")), 0);
  // From 22:10 on the last day of December to 12:00 on the twentieth, and thirteen hours of the other.
  expect(recorded).toBe(2 + 19 * 24 + 12 + 13);

  // Nobody led until February; one project was deleted meanwhile.
  await clock.advance(16 * 24 * HOUR);
  const gone = job("p2", "2026-01-20T00:00:00Z", 3, "2026-01-25T00:30:00Z");
  const late = meterOf([projects[0] as Project, gone], clock);
  expect(await late.close(gone, signal)).toBe(true);
  await late.chargeDue(signal);

  const stop = new AbortController();
  const running = runSettlement(
    { settle: ledgerBilling(ledger).settle, clock, log: silentLogger },
    stop.signal,
  );
  const settled = async () => (await listSettlements(ledger, { organizationId: "alpha" })).toReversed();
  await expect.poll(async () => (await settled()).length).toBe(2);
  stop.abort();
  await running;
  const months = (await settled()).map(({ cycle_start, carry_in, total, charged_cents, carry_out }) => [
    cycle_start.toISOString().slice(0, 7),
    carry_in,
    total,
    charged_cents,
    carry_out,
  ]);
  // December: 2 hours (22:10, 23:10) x 7 GB. January: its 31 days x 7 GB, and 5 days and an hour x 3 GB.
  const december = 2 * 7 * 0.0125;
  const january = (31 * 24 * 7 + (5 * 24 + 1) * 3) * 0.0125;
  expect(months).toEqual([
    ["2025-12", "0", "0.175", 0n, "0.175"],
    ["2026-01", "0.175", "69.8125", 69n, "0.8125"],
  ]);
  expect(december + january).toBeCloseTo(69.8125, 9);
}, 240_000);
