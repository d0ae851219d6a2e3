import { type Clock, sleep } from "@slipway/process";
import { type Answer, isTransient } from "./client.ts";
import { describe, refusal, TestFailure } from "./failure.ts";

/** How long something may take, and what ends it early. */
export interface Budget {
  clock: Clock;
  /** Monotonic time, in milliseconds. */
  deadline: number;
  signal?: AbortSignal;
}

/** One attempt: its result, or what is still missing. */
export type Attempt<T> = { value: T; waiting?: undefined } | { waiting: string };

const EVERY_MS = 2_000;

/**
 * Attempts until there is a result.
 * @param what completes "waited for"
 * @param check what to check when it does not come about
 * @throws TestFailure once the budget is spent, with what was missing last; whatever an attempt throws, immediately
 */
export async function poll<T>(
  { clock, deadline, signal }: Budget,
  { what, check }: { what: string; check: string },
  attempt: () => Promise<Attempt<T>>,
): Promise<T> {
  const start = clock.monotonic();
  for (;;) {
    const result = await attempt();
    if (result.waiting === undefined) {
      return result.value;
    }
    const waited = ((clock.monotonic() - start) / 1_000).toFixed(0);
    if (signal?.aborted) {
      throw new TestFailure(`stopped after ${waited} s of waiting for ${what}`, "who deleted the test's pod");
    }
    if (clock.monotonic() + EVERY_MS > deadline) {
      throw new TestFailure(`waited ${waited} s for ${what}: ${result.waiting}`, check);
    }
    await sleep(clock, EVERY_MS, signal);
  }
}

/**
 * Sends a request until it has the expected status. The caller makes sure that it may be sent again.
 * @throws TestFailure on any other answer that will not change
 */
export function send<T>(
  budget: Budget,
  what: string,
  expected: number,
  request: () => Promise<Answer<T>>,
): Promise<T> {
  const check =
    "whether slipway-api-server has ready pods, what they log, and whether NetworkPolicies admit this pod";
  return poll<T>(budget, { what, check }, async () => {
    const answer = await request();
    if (answer.status === expected) {
      return { value: answer.data as T };
    }
    if (isTransient(answer)) {
      return { waiting: describe(answer) };
    }
    throw refusal(what, answer);
  });
}
