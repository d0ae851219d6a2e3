import { setTimeout as sleep } from "node:timers/promises";
import { beforeEach, expect, it } from "vitest";
import { GrantSet } from "../policy/permissions.ts";
import { type Principal, PrincipalCache } from "./principal.ts";

const principal = (organizationId: string): Principal => ({
  credentialId: "api-key:k1",
  actor: "api-key:k1",
  organizationId,
  kind: "api-key",
  grants: GrantSet.of([]),
});

let now: number;
let lookups: number;
let answer: () => Promise<Principal | undefined>;
let cache: PrincipalCache;
beforeEach(() => {
  now = 0;
  lookups = 0;
  answer = async () => principal("acme");
  cache = new PrincipalCache({
    now: () => now,
    freshMs: 3_000,
    staleMs: 60_000,
    retryMs: 1_000,
    maxWaitMs: 20,
  });
});
const get = () =>
  cache.get("key", () => {
    lookups += 1;
    return answer();
  });
const away = () => Promise.reject(new Error("connection refused"));

it("queries once while an answer is fresh, and once for concurrent calls", async () => {
  await Promise.all([get(), get(), get()]);
  now = 2_999;
  await get();
  expect(lookups).toBe(1);
  now = 3_000;
  await get();
  expect(lookups).toBe(2);
});

it("serves the last answer while the ledger is unavailable, and queries it once a second", async () => {
  await get();
  answer = away;
  for (now = 3_000; now < 13_000; now += 100) {
    expect((await get())?.organizationId).toBe("acme");
  }
  expect(lookups).toBe(1 + 10);
});

it("does not make calls wait for a ledger that is slow to answer, and takes its answer when it comes", async () => {
  await get();
  now = 3_000;
  let settle: (value: undefined) => void = () => {};
  answer = () =>
    new Promise((resolve) => {
      settle = resolve;
    });
  expect((await get())?.organizationId).toBe("acme");
  expect((await get())?.organizationId).toBe("acme");
  expect(lookups).toBe(2);
  settle(undefined);
  await sleep(0);
  expect(await get()).toBeUndefined();
});

it("serves no answer for ever, and none that it never had", async () => {
  answer = away;
  await expect(get()).rejects.toThrow("connection refused");
  answer = async () => principal("acme");
  await get();
  answer = away;
  now = 59_999;
  await get();
  now = 61_000;
  await expect(get()).rejects.toThrow("connection refused");
});

it("recovers by itself", async () => {
  await get();
  answer = away;
  now = 3_000;
  await get();
  answer = async () => principal("other");
  now = 4_000;
  expect((await get())?.organizationId).toBe("other");
});

it("keeps principals, however many credentials are refused meanwhile", async () => {
  const small = new PrincipalCache({ now: () => now, capacity: 3 });
  await small.get("good", async () => principal("acme"));
  for (let one = 0; one < 20; one += 1) {
    await small.get(`invented-${one}`, async () => undefined);
  }
  expect(small.peek("good")).toMatchObject({ principal: { organizationId: "acme" } });
  expect([small.peek("invented-0"), small.peek("invented-19")]).toMatchObject([undefined, {}]);
});
