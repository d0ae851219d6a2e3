import { sleep, systemClock } from "@slipway/process";
import { expect, test } from "vitest";
import { FakeClock } from "../../../../test/kit/processes/fake-clock.ts";
import { Rounds, type RoundsOptions } from "./rounds.ts";

const never = () => new Promise<never>(() => undefined);

function roundsOf(
  targets: readonly number[],
  sample: (target: number, signal: AbortSignal) => Promise<number>,
  options: Partial<RoundsOptions<number, number>> = {},
) {
  const samples: number[] = [];
  const failures: [number, string][] = [];
  const rounds = new Rounds<number, number>({
    targets: () => targets,
    keyOf: String,
    organizationOf: (target) => String(target % 20),
    sample,
    onSample: (target) => samples.push(target),
    onFailure: (target, error) => failures.push([target, (error as Error).name]),
    clock: systemClock,
    periodMs: 60_000,
    limitMs: 5_000,
    ...options,
  });
  return { rounds, samples, failures };
}

const range = (count: number) => Array.from({ length: count }, (_, index) => index);

// Shows: docs/databases-metrics.md#how-it-is-sampled: One that does not answer is abandoned and delays no other
test("500 instances that take 100 ms each, 20 of which hang, are sampled in less than 10 s", async () => {
  const stop = new AbortController();
  const at: number[] = [];
  const begun = performance.now();
  const { rounds, samples, failures } = roundsOf(
    range(500),
    async (target) => {
      if (target % 25 === 3) {
        return never();
      }
      await sleep(systemClock, 100);
      at.push(performance.now() - begun);
      return target;
    },
    { limitMs: 3_000 },
  );
  await rounds.round(stop.signal);
  const took = performance.now() - begun;
  expect([samples.length, failures.length]).toEqual([480, 20]);
  expect(took).toBeLessThan(10_000);
  // The second time those that hang have lanes of their own: the others are through as if there were none.
  at.length = 0;
  const again = performance.now();
  const second = rounds.round(stop.signal);
  while (samples.length < 960 && performance.now() - again < 20_000) {
    await sleep(systemClock, 20);
  }
  expect(performance.now() - again).toBeLessThan(5_000);
  stop.abort();
  await second;
}, 240_000);

test("no more than 32 are sampled concurrently", async () => {
  let [now, most] = [0, 0];
  const { rounds, samples } = roundsOf(range(200), async (target) => {
    now += 1;
    most = Math.max(most, now);
    await sleep(systemClock, 2);
    now -= 1;
    return target;
  });
  await rounds.round(new AbortController().signal);
  expect([samples.length, most]).toEqual([200, 32]);
});

/** Targets below 100 are acme's, the others umbrella's. */
const organizationOf = (target: number) => (target < 100 ? "acme" : "umbrella");

// Shows: docs/databases-metrics.md#how-it-is-sampled: many of one organization do not delay those of others
test("forty of one organization that hang delay nobody else's", async () => {
  const clock = new FakeClock();
  const { rounds, samples } = roundsOf(
    [...range(40), 100, 101],
    (target) => (target < 100 ? never() : Promise.resolve(target)),
    { clock, organizationOf },
  );
  const stop = new AbortController();
  const round = rounds.round(stop.signal);
  await clock.advance(1);
  expect(samples).toEqual([100, 101]);
  stop.abort();
  await round;
});

// Shows: docs/databases-metrics.md#how-it-is-sampled: many of one organization do not delay those of others
test("nine of one organization that did not answer delay nobody else's that answers again", async () => {
  const clock = new FakeClock();
  let isBack = false;
  const { rounds, samples, failures } = roundsOf(
    [...range(9), 100],
    (target) => (target === 100 && isBack ? Promise.resolve(target) : never()),
    { clock, organizationOf },
  );
  const stop = new AbortController();
  const first = rounds.round(stop.signal);
  await clock.advance(10_000);
  await first;
  expect(failures).toHaveLength(10);
  isBack = true;
  const second = rounds.round(stop.signal);
  await clock.advance(1);
  expect(samples).toEqual([100]);
  stop.abort();
  await second;
});

test("rounds begin a period apart, and who still hangs is not sampled twice at a time", async () => {
  const clock = new FakeClock();
  const asked: [number, number][] = [];
  const aborted: number[] = [];
  const { rounds, failures } = roundsOf(
    [0, 1],
    (target, signal) => {
      asked.push([target, clock.monotonic() / 1_000]);
      signal.addEventListener("abort", () => aborted.push(clock.monotonic() / 1_000));
      return target === 0 ? Promise.resolve(0) : never();
    },
    { clock, limitMs: 70_000 },
  );
  const stop = new AbortController();
  const running = rounds.run(stop.signal);
  await clock.advance(125_000);
  expect(asked).toEqual([
    [0, 0],
    [1, 0],
    [0, 60],
    [0, 120],
    [1, 120],
  ]);
  expect([failures, aborted]).toEqual([[[1, "TookTooLong"]], [70]]);
  stop.abort();
  await running;
  expect(aborted).toEqual([70, 125]);
  expect(clock.pending).toBe(0);
});

test("a failure is reported, and the next round queries again", async () => {
  let fails = true;
  const { rounds, samples, failures } = roundsOf([7], async (target) => {
    if (fails) {
      throw new RangeError("no");
    }
    return target;
  });
  const { signal } = new AbortController();
  await rounds.round(signal);
  fails = false;
  await rounds.round(signal);
  expect([samples, failures]).toEqual([[7], [[7, "RangeError"]]]);
});
