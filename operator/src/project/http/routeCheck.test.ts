import { systemClock } from "@slipway/kube";
import { expect, test, vi } from "vitest";
import type { ProbeResult } from "./ingressProbe.ts";
import { RouteCheck } from "./routeCheck.ts";

/** A check whose ingress gives these answers in turn, on a clock that the test moves. */
function setUp(...answers: ProbeResult[]) {
  let now = 0;
  const probe = vi.fn(async () => answers.shift() ?? "serving");
  const check = new RouteCheck(probe, { ...systemClock, monotonic: () => now });
  return {
    check: () => check.check("uid", "shop.example"),
    isGone: () => check.isGone("uid", "shop.example"),
    wait: (ms: number) => (now += ms),
    probe,
    forget: check,
  };
}

test("a route that serves misses nothing", async () => {
  await expect(setUp("serving").check()).resolves.toBeUndefined();
});

test("without an ingress to ask, a written route counts", async () => {
  await expect(new RouteCheck(undefined, systemClock).check("uid", "shop.example")).resolves.toBeUndefined();
});

test.each<ProbeResult>(["unknown-host", "no-instance", "unreachable", "refused", "silent"])(
  "%s is asked again",
  async (answer) => {
    const missing = await setUp(answer).check();
    expect(missing).toMatchObject({ reason: "DomainPending" });
    expect(missing?.retryAfterMs).toBeGreaterThan(0);
  },
);

test("a 404 in the ingress's own words is doubted for a while, then taken for the application's", async () => {
  const { check, wait } = setUp("unknown-host", "unknown-host", "unknown-host");
  expect(await check()).toBeDefined();
  wait(19_000);
  expect(await check()).toBeDefined();
  wait(1_000);
  expect(await check()).toBeUndefined();
});

test("a refusal is doubted for a second: the route is there, and its instances may not be yet", async () => {
  const { check, wait } = setUp("unknown-host", "refused", "refused", "refused");
  await check();
  wait(900);
  expect(await check()).toBeDefined();
  wait(900);
  expect(await check()).toBeDefined();
  wait(100);
  expect(await check()).toBeUndefined();
});

test("silence is doubted for ten seconds: then it is an application that takes its time", async () => {
  const { check, wait } = setUp("silent", "silent", "silent");
  expect(await check()).toBeDefined();
  wait(9_000);
  expect(await check()).toBeDefined();
  wait(1_000);
  expect(await check()).toBeUndefined();
});

test("the doubt starts anew after any other answer", async () => {
  const { check, wait } = setUp("unknown-host", "no-instance", "unknown-host");
  await check();
  wait(30_000);
  await check();
  expect(await check()).toBeDefined();
});

test("a route is gone once the ingress does not know the host", async () => {
  const { isGone } = setUp("serving", "no-instance", "unreachable", "unknown-host");
  expect([await isGone(), await isGone(), await isGone(), await isGone()]).toEqual([
    false,
    false,
    false,
    true,
  ]);
  await expect(new RouteCheck(undefined, systemClock).isGone("uid", "shop.example")).resolves.toBe(true);
});

test("an ingress that answers for every host is believed for five seconds only, each time anew", async () => {
  const { isGone, wait } = setUp();
  for (let round = 0; round < 2; round += 1) {
    expect(await isGone()).toBe(false);
    wait(4_999);
    expect(await isGone()).toBe(false);
    wait(1);
    expect(await isGone()).toBe(true);
  }
});
