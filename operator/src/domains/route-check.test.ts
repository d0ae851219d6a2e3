import { systemClock } from "@slipway/process";
import { expect, test, vi } from "vitest";
import { FakeClock } from "../../../test/kit/processes/fake-clock.ts";
import type { ProbeResult } from "./ingress-probe.ts";
import { RouteCheck } from "./route-check.ts";

const HOST = "shop.example";
const OWNER = { metadata: { namespace: "slipway-org-alpha", name: "shop", uid: "uid" } };

/** A check whose ingress returns these answers in turn, on a clock that the test moves. */
function setUp(...answers: ProbeResult[]) {
  const clock = new FakeClock();
  const probe = vi.fn(async () => answers.shift() ?? "serving");
  const check = new RouteCheck(probe, clock);
  const woken = vi.fn();
  check.onAnswer(woken);
  /** Checks, and once more when it is answered. */
  const answered = async <T>(ask: () => T): Promise<T> => {
    ask();
    await clock.advance(0);
    return ask();
  };
  return {
    check: () => answered(() => check.check(OWNER, HOST)),
    isRemoved: async () => {
      const first = check.isRemoved(OWNER, HOST).removed;
      await clock.advance(0);
      return first || check.isRemoved(OWNER, HOST).removed;
    },
    wait: (ms: number) => clock.advance(ms),
    probe,
    woken,
    clock,
    routes: check,
  };
}

test("a route that serves misses nothing", async () => {
  await expect(setUp("serving").check()).resolves.toBeUndefined();
});

test("without an ingress to probe, a written route counts", () => {
  expect(new RouteCheck(undefined, systemClock).check(OWNER, HOST)).toBeUndefined();
});

test.each<ProbeResult>(["unknown-host", "no-instance", "unreachable", "refused", "silent"])(
  "%s is probed again",
  async (answer) => {
    const missing = await setUp(answer).check();
    expect(missing).toMatchObject({ reason: "DomainPending" });
    expect(missing?.retryAfterMs).toBeGreaterThan(0);
  },
);

test("a 404 in the ingress's own words is not trusted for a while, then it counts as the application's", async () => {
  const { check, wait } = setUp("unknown-host", "unknown-host", "unknown-host");
  expect(await check()).toBeDefined();
  await wait(19_000);
  expect(await check()).toBeDefined();
  await wait(1_000);
  expect(await check()).toBeUndefined();
});

test("a refusal is not trusted for five seconds: the route exists, and the ingress may take in its instances only later", async () => {
  const { check, wait } = setUp("unknown-host", "refused", "refused", "refused");
  await check();
  await wait(900);
  expect(await check()).toBeDefined();
  // Traefik applies changes every two seconds, by default.
  await wait(4_900);
  expect(await check()).toBeDefined();
  await wait(100);
  expect(await check()).toBeUndefined();
});

test("silence is not trusted for ten seconds: then it is a slow application", async () => {
  const { check, wait } = setUp("silent", "silent", "silent");
  expect(await check()).toBeDefined();
  await wait(9_000);
  expect(await check()).toBeDefined();
  await wait(1_000);
  expect(await check()).toBeUndefined();
});

test("the doubt starts reset after any other answer", async () => {
  const { check, wait } = setUp("unknown-host", "no-instance", "unknown-host");
  await check();
  await wait(19_900);
  await check();
  await wait(500);
  expect(await check()).toBeDefined();
});

test("a route is removed once the ingress does not know the host", async () => {
  const { isRemoved, wait } = setUp("serving", "no-instance", "unreachable", "unknown-host");
  const answers: boolean[] = [];
  for (let round = 0; round < 4; round += 1) {
    answers.push(await isRemoved());
    await wait(500);
  }
  expect(answers).toEqual([false, false, false, true]);
  expect(new RouteCheck(undefined, systemClock).isRemoved(OWNER, HOST)).toEqual({ removed: true });
});

test("an ingress that answers for every host is believed for five seconds only, each time reset", async () => {
  const { isRemoved, wait } = setUp();
  for (let round = 0; round < 2; round += 1) {
    expect(await isRemoved()).toBe(false);
    await wait(4_999);
    expect(await isRemoved()).toBe(false);
    await wait(1);
    expect(await isRemoved()).toBe(true);
  }
});

test("a check does not wait for an answer: the listener is called once, and the answer is remembered", async () => {
  let answer: (result: ProbeResult) => void = () => {};
  const probe = vi.fn(() => new Promise<ProbeResult>((resolve) => (answer = resolve)));
  const clock = new FakeClock();
  const routes = new RouteCheck(probe, clock);
  const woken = vi.fn();
  routes.onAnswer(woken);
  for (let i = 0; i < 5; i += 1) {
    expect(routes.check(OWNER, HOST)).toMatchObject({ unanswered: true, retryAfterMs: 5_000 });
    await clock.advance(10_000);
  }
  expect(probe).toHaveBeenCalledTimes(1);
  expect(woken).not.toHaveBeenCalled();
  answer("serving");
  await clock.advance(0);
  expect(woken.mock.calls).toEqual([[{ namespace: "slipway-org-alpha", name: "shop" }]]);
  expect(routes.isOpen(OWNER, HOST)).toBe(false);
  await clock.advance(3_600_000);
  expect(routes.check(OWNER, HOST)).toBeUndefined();
  expect(probe).toHaveBeenCalledTimes(1);
});

test("a probe that throws is one that did not reach the ingress", async () => {
  const clock = new FakeClock();
  const routes = new RouteCheck(() => Promise.reject(new Error("broken")), clock);
  routes.check(OWNER, HOST);
  await clock.advance(0);
  expect(routes.check(OWNER, HOST)).toMatchObject({ message: "The ingress does not answer." });
});

test("a route that was just written is checked afresh, and an earlier answer does not count", async () => {
  const answers: ((result: ProbeResult) => void)[] = [];
  const clock = new FakeClock();
  const routes = new RouteCheck(() => new Promise((resolve) => answers.push(resolve)), clock);
  routes.check(OWNER, HOST);
  routes.check(OWNER, HOST, true);
  answers[0]?.("serving");
  await clock.advance(0);
  expect(routes.check(OWNER, HOST)).toMatchObject({ unanswered: true });
  answers[1]?.("serving");
  await clock.advance(0);
  expect(routes.check(OWNER, HOST)).toBeUndefined();
});

test("unanswered hosts of one organization do not delay those of others", async () => {
  const clock = new FakeClock();
  const probed: string[] = [];
  const probe = (host: string) => {
    probed.push(host);
    return new Promise<ProbeResult>(() => undefined);
  };
  const routes = new RouteCheck(probe, clock);
  const ask = (namespace: string, name: string) =>
    routes.check({ metadata: { namespace, name, uid: name } }, `${name}.example`);
  for (let index = 0; index < 40; index += 1) {
    ask("slipway-org-alpha", `alpha${index}`);
  }
  ask("slipway-org-beta", "beta");
  await clock.advance(0);
  expect([probed.length, probed.at(-1)]).toEqual([9, "beta.example"]);
});

test("an unreachable ingress is probed ever less often", async () => {
  const { routes, clock } = setUp(...Array<ProbeResult>(12).fill("unreachable"));
  const pauses: (number | undefined)[] = [];
  for (let i = 0; i < 10; i += 1) {
    routes.check(OWNER, HOST);
    await clock.advance(0);
    const pause = routes.check(OWNER, HOST)?.retryAfterMs;
    pauses.push(pause);
    await clock.advance(pause ?? 0);
  }
  expect(pauses).toEqual([250, 500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000, 30_000]);
});

test("silence is probed again in time for its window", async () => {
  const { routes, clock } = setUp(...Array<ProbeResult>(12).fill("silent"));
  let probes = 0;
  while (routes.check(OWNER, HOST) !== undefined) {
    await clock.advance(0);
    await clock.advance(routes.check(OWNER, HOST)?.retryAfterMs ?? 0);
    probes += 1;
    expect(probes).toBeLessThan(10);
  }
  expect(clock.monotonic()).toBe(10_000);
});

test("a doubt that nobody has come back to counts as none", async () => {
  const { check, wait } = setUp("unknown-host", "unknown-host", "unknown-host");
  await check();
  await wait(30_001);
  expect(await check()).toBeDefined();
  await wait(20_000);
  expect(await check()).toBeUndefined();
});

test("a host that is not checked any more is forgotten, and the others are not", async () => {
  const { check, isRemoved, wait, routes } = setUp("unknown-host", "serving", "serving", "unknown-host");
  await check();
  await isRemoved();
  routes.retain(OWNER, "serves", new Set());
  await wait(4_999);
  expect(routes.isRemoved(OWNER, HOST).removed).toBe(false);
  await wait(1);
  expect(routes.isRemoved(OWNER, HOST).removed).toBe(true);
  await wait(15_000);
  expect(await check()).toBeDefined();
});
