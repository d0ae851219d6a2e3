/** How a run ended, and what it costs: from what its pod says in the end. Pure. */

import { billedMinutes, type JobRun, runAmount } from "@slipway/crds";
import type { ContainerFacts } from "./container.ts";
import type { EndPhase } from "./ports.ts";

/** The end of a run whose container has run. */
export interface RunEnd {
  phase: EndPhase;
  startedAt: Date;
  finishedAt: Date;
  billedUntil: Date;
  exitCode?: number;
  reason?: string;
}

/**
 * By how much the clocks of node and operator may differ: what was stopped at its limit and ended so much earlier by its
 * node's clock has ended by itself, and only its node was silent.
 */
const CLOCKS_APART_MS = 10_000;

type Ended = Extract<ContainerFacts, { state: "ended" }>;

/** What decides beside the pod. */
export interface VerdictContext {
  limitMs: number;
  /** Whether the run was stopped because its time was over. */
  stoppedAtLimit: boolean;
}

/**
 * The end of a run; undefined when its container never ran. Where nobody knows when it finished, it is the last moment at
 * which it was seen running.
 * @param ended what its pod says; undefined when there is no pod any more
 */
export function endOf(
  { spec, status }: JobRun,
  ended: Ended | undefined,
  context: VerdictContext,
): RunEnd | undefined {
  const startedAt = ended?.startedAt ?? dateOf(status?.startedAt);
  if (!startedAt) return undefined;
  const seen = dateOf(status?.lastObservedRunningAt) ?? startedAt;
  const finishedAt = latest(startedAt, ended?.finishedAt ?? seen);
  const cancelAt = dateOf(spec.cancelRequestedAt);
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
  if (ranMs >= limitMs || stopped) return "deadline_exceeded";
  return failed ? "failed" : "succeeded";
}

/** A moment of a status. */
export function dateOf(text: string | undefined): Date | undefined {
  return text === undefined ? undefined : new Date(text);
}

const secondOf = (at: Date) => Math.floor(at.getTime() / 1_000);
const latest = (a: Date, b: Date) => (a > b ? a : b);
const earliest = (a: Date, b: Date) => (a < b ? a : b);
