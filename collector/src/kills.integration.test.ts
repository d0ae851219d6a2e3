import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, expect, test } from "vitest";
import { FakeContainerLog } from "../../test/kit/analytics/fake-kubelet.ts";
import { FakeStore } from "../../test/kit/analytics/fake-store.ts";
import { TestCollector, traefikLine } from "../../test/kit/analytics/test-collector.ts";
import { isLong } from "../../test/kit/long.ts";
import { eventually } from "../../test/kit/processes/eventually.ts";

const kills = isLong ? 40 : 5;

let collector: TestCollector;
let store: FakeStore;
let isWriting = false;
let writing: Promise<void> | undefined;

beforeEach(async () => {
  collector = await TestCollector.open();
  store = await FakeStore.start();
});

afterEach(async () => {
  isWriting = false;
  await writing;
  await collector.close();
  await store.stop();
});

const start = () => collector.start({ SLIPWAY_ANALYTICS_URL: store.url });

/** Numbers of the requests that the store has, and how often it has each. */
function counted(): Map<number, number> {
  const found = new Map<number, number>();
  for (const row of store.rows) {
    const number = Number((JSON.parse(row) as unknown[])[10]);
    found.set(number, (found.get(number) ?? 0) + 1);
  }
  return found;
}

// Shows: docs/analytics.md#other-ingresses: every request counts once, whenever the collector is
test("killed at random under traffic, with a store that fails, it counts every request once", async () => {
  const log = new FakeContainerLog(collector.podLogs, "slipway-ingress_traefik-1_uid", "traefik", 1_000);
  await log.start();
  let written = 0;
  isWriting = true;
  const next = () => {
    written += 1;
    return traefikLine(written);
  };
  writing = (async () => {
    for (let round = 0; isWriting; round += 1) {
      const lines = Array.from({ length: 5 }, next);
      await log.write([...lines, '{"level":"info","message":"Configuration loaded"}']);
      if (round % 20 === 7) {
        await log.writePieces(next(), 100);
      }
      if (round % 40 === 39) {
        await log.rotate();
      }
      await sleep(10);
    }
  })();
  // A third of what is sent fails: not taken in, or taken in and never answered.
  store.mood = () => (Math.random() < 0.33 ? (Math.random() < 0.5 ? "away" : "silent") : "well");
  for (let round = 0; round < kills; round += 1) {
    const before = store.inserts;
    start();
    // Not before it has begun to work; then at whatever moment.
    await eventually("a batch is sent", () => store.inserts > before, 90_000).catch((error: Error) => {
      throw new Error(`${error.message}, round ${round}: ${collector.log}`);
    });
    await sleep(Math.random() * 500);
    await collector.kill("SIGKILL");
  }
  isWriting = false;
  await writing;
  store.mood = () => "well";
  start();
  const missing = () => {
    const found = counted();
    return Array.from({ length: written }, (_, index) => index + 1).filter((number) => !found.has(number));
  };
  const allIn = () => store.rows.length >= written && missing().length === 0;
  await eventually("all requests are in the store", allIn, 60_000).catch(() => {});
  // What it would send twice, it would send now.
  await collector.kill("SIGTERM");
  expect(store.changed).toEqual([]);
  expect(missing(), collector.log).toEqual([]);
  expect([...counted()].filter(([, times]) => times > 1)).toEqual([]);
  expect(store.rows.join()).not.toContain("secret");
}, 240_000);
