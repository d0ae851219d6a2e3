import { fork } from "node:child_process";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import type { GitEvent } from "@slipway/git";
import { connectLedger, type Ledger, migrateToLatest } from "@slipway/ledger";
import { createLogger } from "@slipway/process";
import { sql } from "kysely";
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import { eventually } from "../../../test/kit/processes/eventually.ts";
import { startPostgres, type TestPostgres } from "../../../test/kit/servers/postgresql.ts";
import { DeliveryWorker, type DeliveryWorkerOptions, ledgerDeliveries } from "./delivery-queue.ts";

let postgres: TestPostgres;
/** Two pools, as two replicas have them. */
let ledgers: [Ledger, Ledger];
beforeAll(async () => {
  postgres = await startPostgres();
  const open = () => connectLedger({ url: postgres.url, applicationName: "test" });
  ledgers = [open(), open()];
  await migrateToLatest(ledgers[0]);
});
afterAll(async () => {
  await Promise.all((ledgers ?? []).map((ledger) => ledger.destroy()));
  await postgres?.stop();
});
beforeEach(async () => {
  await sql`truncate git_delivery_queue, git_deliveries`.execute(ledgers[0]);
});

const EVENT = { kind: "push", repository: "17", branch: "main", commitSha: "a" } as unknown as GitEvent;
const logger = createLogger("api-server", "error", { write: () => undefined });
const queue = (organizationId: string, deliveryId: string, connectionId = `g-${organizationId}`) =>
  ledgerDeliveries(ledgers[0]).queue({ organizationId, connectionId, deliveryId }, EVENT);
const rows = async (table: "git_delivery_queue" | "git_deliveries"): Promise<number> =>
  (await ledgers[0].selectFrom(table).select("delivery_id").execute()).length;

/** Workers of two replicas. @returns what they began and ended, in order, and how to stop them */
function work(
  of: (organizationId: string, deliveryId: string) => Promise<void>,
  options: Partial<DeliveryWorkerOptions> = {},
) {
  const seen: string[] = [];
  const workers = ledgers.map(
    (ledger) =>
      new DeliveryWorker(
        ledgerDeliveries(ledger),
        async ({ organizationId, deliveryId }) => {
          seen.push(`${organizationId} ${deliveryId}`);
          await of(organizationId, deliveryId);
        },
        logger,
        { pollMs: 20, retryMs: 20, ...options },
      ),
  );
  for (const worker of workers) {
    worker.start();
  }
  return { seen, stop: () => Promise.all(workers.map((worker) => worker.stop())) };
}

// Shows: docs/git.md#hooks: a delivery is answered once it is in a queue of the ledger, which every
it("sixteen of one organization delay no other organization's, and few of them are processed concurrently", async () => {
  const { promise: stalled, resolve } = Promise.withResolvers<void>();
  const { seen, stop } = work((organization) => (organization === "acme" ? stalled : Promise.resolve()));
  for (let time = 0; time < 16; time += 1) {
    expect(await queue("acme", `d${time}`, `g${time}`)).toBe("queued");
  }
  await eventually("the share of it", () => seen.length === 4);
  const startedAt = performance.now();
  expect(await queue("umbrella", "one")).toBe("queued");
  await eventually("the other's", () => seen.includes("umbrella one"));
  expect(performance.now() - startedAt).toBeLessThan(2_000);
  expect(seen.filter((one) => one.startsWith("acme"))).toHaveLength(4);
  resolve();
  await eventually("the rest", async () => (await rows("git_delivery_queue")) === 0);
  await stop();
  // Each once, by two replicas.
  expect(seen.length).toBe(17);
  expect(new Set(seen).size).toBe(17);
});

// Shows: docs/git.md#hooks: those of one connection are processed one after the other, in the order of
it("those of one connection are worked off one after the other, by two replicas, in the order of their arrival", async () => {
  const { promise: stalled, resolve } = Promise.withResolvers<void>();
  const { seen, stop } = work((_organization, delivery) =>
    delivery === "first" ? stalled : Promise.resolve(),
  );
  for (const delivery of ["first", "second", "third"]) {
    await queue("acme", delivery);
  }
  await queue("acme", "other", "g-other");
  await eventually("the other connection's", () => seen.includes("acme other"));
  // Longer than the replicas' poll interval.
  await sleep(300);
  expect(seen.toSorted()).toEqual(["acme first", "acme other"]);
  resolve();
  await eventually("the rest", async () => (await rows("git_delivery_queue")) === 0);
  await stop();
  expect(seen.filter((one) => one !== "acme other")).toEqual(["acme first", "acme second", "acme third"]);
});

it("one is taken once, also when it was worked off, and is tried a bounded number of times", async () => {
  expect([await queue("acme", "one"), await queue("acme", "one")]).toEqual(["queued", "duplicate"]);
  let failing = true;
  const { seen, stop } = work(
    async () => {
      if (failing) {
        throw new Error("the Git server is away");
      }
    },
    { tries: 3 },
  );
  await eventually("it to be abandoned", async () => (await rows("git_delivery_queue")) === 0);
  expect(seen).toHaveLength(3);
  failing = false;
  expect(await queue("acme", "one")).toBe("queued");
  await eventually("it to be worked off", async () => (await rows("git_deliveries")) === 1);
  expect(await queue("acme", "one")).toBe("duplicate");
  await stop();
});

it("one whose every attempt crashed its process is abandoned, and not tried again", async () => {
  await queue("acme", "one");
  await sql`update git_delivery_queue set attempts = 3`.execute(ledgers[0]);
  const { seen, stop } = work(async () => undefined, { tries: 3 });
  await eventually("it to be abandoned", async () => (await rows("git_delivery_queue")) === 0);
  await stop();
  expect([seen, await rows("git_deliveries")]).toEqual([[], 0]);
});

// Shows: docs/git.md#hooks: a delivery is answered once it is in a queue of the ledger, which every
it("are bounded by connection and organization, and no other organization's are refused", async () => {
  const full = expect.objectContaining({ status: 503, code: "SERVER_BUSY" });
  await sql`
    insert into git_delivery_queue (organization_id, connection_id, delivery_id, event)
    select 'acme', 'g-acme', 'd' || n, '{}' from generate_series(1, 250) n`.execute(ledgers[0]);
  await expect(queue("acme", "more")).rejects.toEqual(full);
  expect(await queue("acme", "more", "g-second")).toBe("queued");
  await sql`
    insert into git_delivery_queue (organization_id, connection_id, delivery_id, event)
    select 'acme', 'g' || n, 'd' || n, '{}' from generate_series(1, 749) n`.execute(ledgers[0]);
  await expect(queue("acme", "more", "g-third")).rejects.toEqual(full);
  expect(await queue("umbrella", "one")).toBe("queued");
});

// Shows: docs/git.md#hooks: one that was answered is not lost with its process, and is retried ten times
it("of a process that is killed after the answer are worked off by another", async () => {
  await queue("acme", "one");
  const child = fork(new URL("testdata/lease-and-hang.ts", import.meta.url), [postgres.url], {
    execArgv: [],
  });
  const [leased] = (await once(child, "message")) as [number];
  expect(leased).toBe(1);
  child.kill("SIGKILL");
  await once(child, "exit");
  expect(await rows("git_delivery_queue")).toBe(1);
  const { seen, stop } = work(async () => undefined);
  await eventually("it to be worked off", async () => (await rows("git_deliveries")) === 1);
  await stop();
  expect([seen, await rows("git_delivery_queue")]).toEqual([["acme one"], 0]);
});
