/** How a run ended, and what it costs, by the final state of its pod. Pure. */

import { billedMinutes, type JobRun, runAmount } from "@slipway/crds";
import type { ContainerFacts } from "./cluster.ts";
import type { EndPhase } from "./ports.ts";
import { dateOf } from "./run.ts";
import { MAX_CLOCK_SKEW_MS } from "./settings.ts";

/** The end of a run whose container has run. */
export interface Completion {
  phase: EndPhase;
  startedAt: Date;
  finishedAt: Date;
  billedUntil: Date;
  exitCode?: number;
  reason?: string;
}

type Ended = Extract<ContainerFacts, { state: "ended" }>;

/** What the completion depends on in addition to the pod. */
export interface CompletionContext {
  limitMs: number;
  /** Whether the run was stopped because its time was over. */
  stoppedAtLimit: boolean;
  /** When it was admitted: its container cannot have started before. */
  admittedAt: Date;
  now: Date;
}

/**
 * The end of a run; undefined when its container never ran. Where the time of its end is unknown, it is the last moment at
 * which it was observed running.
 * @param ended state by its pod; undefined when the pod does not exist any more
 */
export function completionOf(
  run: JobRun,
  ended: Ended | undefined,
  context: CompletionContext,
): Completion | undefined {
  const { status } = run;
  const times = timesOf(ended?.startedAt ?? dateOf(status?.startedAt), ended?.finishedAt, context);
  if (!times) {
    return undefined;
  }
  const { startedAt } = times;
  const seen = dateOf(status?.lastObservedRunningAt) ?? startedAt;
  const finishedAt = latest(startedAt, times.finishedAt ?? seen);
  const cancelAt = cancelEffectiveAt(run, context.now);
  const sure = ended?.finishedAt !== undefined;
  const cancelled = cancelAt !== undefined && (!sure || secondOf(finishedAt) >= secondOf(cancelAt));
  const { exitCode, reason } = ended ?? {};
  return {
    phase: cancelled ? "cancelled" : phaseOf(startedAt, finishedAt, ended, context),
    startedAt,
    finishedAt,
    billedUntil: cancelled ? latest(startedAt, earliest(cancelAt, finishedAt)) : finishedAt,
    ...(exitCode === undefined ? {} : { exitCode: exitCode & 0xff }),
    ...(reason === undefined || reason === "" ? {} : { reason: reason.slice(0, 64) }),
  };
}

/**
 * A container's times by its node. Where that clock is plainly wrong, so that the run would have started before its admission
 * or ended in the future, both are shifted into the possible interval: the duration is right by any clock.
 */
export function timesOf(
  startedAt: Date | undefined,
  finishedAt: Date | undefined,
  { admittedAt, now }: Pick<CompletionContext, "admittedAt" | "now">,
): { startedAt: Date; finishedAt?: Date } | undefined {
  if (!startedAt) {
    return undefined;
  }
  const [started, ended] = [startedAt.getTime(), (finishedAt ?? startedAt).getTime()];
  const ahead = ended - now.getTime();
  const behind = admittedAt.getTime() - started;
  if (ahead <= MAX_CLOCK_SKEW_MS && behind <= MAX_CLOCK_SKEW_MS) {
    return { startedAt, ...(finishedAt ? { finishedAt } : {}) };
  }
  const moved = ahead > MAX_CLOCK_SKEW_MS ? -ahead : behind;
  const start = latest(admittedAt, new Date(started + moved));
  return { startedAt: start, ...(finishedAt ? { finishedAt: earliest(new Date(ended + moved), now) } : {}) };
}

/**
 * The moment that a request to cancel counts from; undefined without one. It is the time in the request, within bounds:
 * the run was observed without the request at `lastObservedRunningAt`, so it is not earlier, and it is not in the future.
 * Once it is in the status it stays, whatever is observed of the run later.
 */
export function cancelEffectiveAt({ spec, status }: JobRun, now: Date): Date | undefined {
  const requested = dateOf(spec.cancelRequestedAt);
  if (!requested) {
    return undefined;
  }
  const recorded = dateOf(status?.cancelEffectiveAt);
  if (recorded) {
    return recorded;
  }
  const observed = dateOf(status?.lastObservedRunningAt);
  if (observed && observed.getTime() - requested.getTime() > MAX_CLOCK_SKEW_MS) {
    return new Date(observed.getTime() - MAX_CLOCK_SKEW_MS);
  }
  return requested.getTime() - now.getTime() > MAX_CLOCK_SKEW_MS ? now : requested;
}

/** Minutes and amount of a run, exact. */
export function chargeOf(
  { startedAt, billedUntil }: Pick<Completion, "startedAt" | "billedUntil">,
  pricePerMinute: string,
): { billedMinutes: number; amount: string } {
  const minutes = billedMinutes(startedAt, billedUntil);
  return { billedMinutes: minutes, amount: runAmount(pricePerMinute, minutes) };
}

function phaseOf(
  startedAt: Date,
  finishedAt: Date,
  ended: Ended | undefined,
  { limitMs, stoppedAtLimit }: CompletionContext,
): EndPhase {
  const failed = ended?.exitCode !== 0;
  const ranMs = finishedAt.getTime() - startedAt.getTime();
  const stopped = stoppedAtLimit && failed && ranMs >= limitMs - MAX_CLOCK_SKEW_MS;
  if (ranMs >= limitMs || stopped) {
    return "deadline_exceeded";
  }
  return failed ? "failed" : "succeeded";
}

const secondOf = (at: Date) => Math.floor(at.getTime() / 1_000);
const latest = (a: Date, b: Date) => (a > b ? a : b);
const earliest = (a: Date, b: Date) => (a < b ? a : b);
