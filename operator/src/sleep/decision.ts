/** Whether a project runs, sleeps, or is on its way from one to the other. Pure: the same input always has the same result. */

import type { Sleep } from "@slipway/crds";

/** How long requests that were on their way to an instance have, once the ingress sends new ones to the activator, at the least and at most. */
export const DRAIN_MS = 10_000;
const LONGEST_DRAIN_MS = 60_000;
/** How long instances have been ready before the ingress sends requests to them again: it learns of them apart from their route. */
export const SETTLE_MS = 3_000;
/** The longest time in which the ingress must send requests to the activator; a project whose ingress does not runs on. */
const ENTER_MS = 120_000;
const SECOND_MS = 1_000;

/** What the decision depends on. */
export interface SleepInput {
  /** What the status has. */
  sleep: Sleep | undefined;
  /** Seconds without a request after which the project sleeps; undefined where it may not. */
  afterSeconds: number | undefined;
  /** Seconds since its last request; undefined while that is unknown. */
  idleSeconds: number | undefined;
  /** Its version serves, and nothing of it changes. */
  isSettled: boolean;
  /** A deployment of it is under way, which has to be seen to start. */
  isDeploying: boolean;
  /** A request has come for it since it entered its sleep. */
  isWakeRequested: boolean;
  /** The spec's. */
  generation: number;
  /** Every route that is written leads to the activator. */
  isRouted: boolean;
  /** How long the ingress has sent every host's requests to the activator, in milliseconds; undefined while it does not. */
  confirmedMs: number | undefined;
  /** How long all instances have been ready, in milliseconds; undefined while one is not. */
  readyMs: number | undefined;
  /** Longest time of a rollout, after which requests are no longer kept from an application that does not start. */
  wakeMs: number;
  now: Date;
  /** A new one for each sleep. */
  newId: () => string;
}

export interface SleepDecision {
  /** What the status is to have. */
  sleep: Sleep | undefined;
  /** Milliseconds until the decision is to be made again, in any case. */
  againInMs?: number;
  /** It did not come to sleep, since the ingress does not send requests to the activator. */
  isObstructed?: true;
}

/** Whether requests go to the activator. */
export const isAtActivator = (sleep: Pick<Sleep, "phase"> | undefined): boolean => sleep !== undefined;

/** Whether no instance is to run. */
export const isAsleep = (sleep: Pick<Sleep, "phase"> | undefined): boolean => sleep?.phase === "asleep";

/** Decides. A project that is unknown to be without requests does not enter a sleep; whatever else happens ends one. */
export function decideSleep(input: SleepInput): SleepDecision {
  switch (input.sleep?.phase) {
    case undefined:
      return whileRunning(input);
    case "entering":
      return whileEntering(input, input.sleep);
    case "asleep":
      return whileAsleep(input, input.sleep);
    case "waking":
      return whileWaking(input, input.sleep);
  }
}

function whileRunning(input: SleepInput): SleepDecision {
  const { afterSeconds, idleSeconds, isSettled, isDeploying, generation, newId } = input;
  if (afterSeconds === undefined || !isSettled || isDeploying) {
    return { sleep: undefined };
  }
  const leftMs = (afterSeconds - (idleSeconds ?? 0)) * SECOND_MS;
  if (idleSeconds === undefined || leftMs > 0) {
    return { sleep: undefined, againInMs: Math.max(leftMs, SECOND_MS) };
  }
  return { sleep: enter(input, { id: newId(), phase: "entering", generation }), againInMs: SECOND_MS };
}

/** Its instances still run: nothing is lost where it does not sleep after all. */
function whileEntering(input: SleepInput, sleep: Sleep): SleepDecision {
  const { confirmedMs, now } = input;
  const isLate = confirmedMs === undefined && now.getTime() - Date.parse(sleep.since) > ENTER_MS;
  if (isToRun(input, sleep) || !input.isSettled) {
    // Its instances may have been stopped already, by a reconcile whose status was never written.
    const isStopped = input.readyMs === undefined;
    return { sleep: isStopped ? enter(input, { ...sleep, phase: "waking" }) : undefined };
  }
  if (isLate) {
    return { sleep: undefined, isObstructed: true };
  }
  const leftMs = confirmedMs === undefined ? SECOND_MS : drainMs(input) - confirmedMs;
  return leftMs > 0
    ? { sleep, againInMs: Math.max(leftMs, SECOND_MS / 4) }
    : { sleep: enter(input, { ...sleep, phase: "asleep" }) };
}

function whileAsleep(input: SleepInput, sleep: Sleep): SleepDecision {
  if (!input.isRouted) {
    // Its routes lead to instances: an operator that knows no sleep has started them.
    return { sleep: undefined };
  }
  return isToRun(input, sleep) ? { sleep: enter(input, { ...sleep, phase: "waking" }) } : { sleep };
}

/** The activator keeps its requests, and sends them on, until the ingress knows the instances. */
function whileWaking({ readyMs, now, wakeMs }: SleepInput, sleep: Sleep): SleepDecision {
  const leftMs = Date.parse(sleep.since) + wakeMs - now.getTime();
  if ((readyMs ?? 0) >= SETTLE_MS || leftMs <= 0) {
    return { sleep: undefined };
  }
  return { sleep, againInMs: readyMs === undefined ? leftMs : Math.max(SETTLE_MS - readyMs, SECOND_MS / 4) };
}

/** A tenth of the time without a request, within the bounds. */
const drainMs = ({ afterSeconds = 0 }: SleepInput): number =>
  Math.min(LONGEST_DRAIN_MS, Math.max(DRAIN_MS, afterSeconds * 100));

const isToRun = (
  { afterSeconds, isWakeRequested, isDeploying, generation }: SleepInput,
  sleep: Pick<Sleep, "generation">,
): boolean => afterSeconds === undefined || isWakeRequested || isDeploying || generation !== sleep.generation;

function enter({ now }: SleepInput, sleep: Omit<Sleep, "since">): Sleep {
  return { ...sleep, since: now.toISOString() };
}
