/** How a run ended, and what it costs: from what its pod says in the end. Pure. */

import { billedMinutes, type JobRun, runAmount } from "@slipway/crds";
import { cancelEffectiveAt } from "./cancellation.ts";
import type { ContainerFacts } from "./container.ts";
import type { EndPhase } from "./ports.ts";
import { CLOCKS_APART_MS } from "./settings.ts";

/** The end of a run whose container has run. */
export interface RunEnd {
  phase: EndPhase;
  startedAt: Date;
  finishedAt: Date;
  billedUntil: Date;
  exitCode?: number;
  reason?: string;
}

type Ended = Extract<ContainerFacts, { state: "ended" }>;

/** What decides beside the pod. */
export interface VerdictContext {
  limitMs: number;
  /** Whether the run was stopped because its time was over. */
  stoppedAtLimit: boolean;
  /** When it was let go: its container has not started before. */
  letGoAt: Date;
  now: Date;
}

/**
 * The end of a run; undefined when its container never ran. Where nobody knows when it finished, it is the last moment at
 * which it was seen running.
 * @param ended what its pod says; undefined when there is no pod any more
 */
export function endOf(run: JobRun, ended: Ended | undefined, context: VerdictContext): RunEnd | undefined {
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
 * A container's times as its node says them. Where that clock is plainly wrong, so that the run would have begun before it was let go or
 * ended in the future, both are moved into the time that the run had: its length is right by any clock.
 */
export function timesOf(
  startedAt: Date | undefined,
  finishedAt: Date | undefined,
  { letGoAt, now }: Pick<VerdictContext, "letGoAt" | "now">,
): { startedAt: Date; finishedAt?: Date } | undefined {
  if (!startedAt) {
    return undefined;
  }
  const [started, ended] = [startedAt.getTime(), (finishedAt ?? startedAt).getTime()];
  const ahead = ended - now.getTime();
  const behind = letGoAt.getTime() - started;
  if (ahead <= CLOCKS_APART_MS && behind <= CLOCKS_APART_MS) {
    return { startedAt, ...(finishedAt ? { finishedAt } : {}) };
  }
  const moved = ahead > CLOCKS_APART_MS ? -ahead : behind;
  const start = latest(letGoAt, new Date(started + moved));
  return { startedAt: start, ...(finishedAt ? { finishedAt: earliest(new Date(ended + moved), now) } : {}) };
}

/** Minutes and amount of a run, exact. */
export function chargeOf(
  { startedAt, billedUntil }: Pick<RunEnd, "startedAt" | "billedUntil">,
  pricePerMinute: string,
): { billedMinutes: number; amount: string } {
  const minutes = billedMinutes(startedAt, billedUntil);
  return { billedMinutes: minutes, amount: runAmount(pricePerMinute, minutes) };
}

function phaseOf(
  startedAt: Date,
  finishedAt: Date,
  ended: Ended | undefined,
  { limitMs, stoppedAtLimit }: VerdictContext,
): EndPhase {
  const failed = ended?.exitCode !== 0;
  const ranMs = finishedAt.getTime() - startedAt.getTime();
  const stopped = stoppedAtLimit && failed && ranMs >= limitMs - CLOCKS_APART_MS;
  if (ranMs >= limitMs || stopped) {
    return "deadline_exceeded";
  }
  return failed ? "failed" : "succeeded";
}

/** A moment of a status. */
export function dateOf(text: string | undefined): Date | undefined {
  return text === undefined ? undefined : new Date(text);
}

const secondOf = (at: Date) => Math.floor(at.getTime() / 1_000);
const latest = (a: Date, b: Date) => (a > b ? a : b);
const earliest = (a: Date, b: Date) => (a < b ? a : b);
