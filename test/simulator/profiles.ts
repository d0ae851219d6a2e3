/** Ready settings of a simulation: with every fault, or with none. */

import { NO_CALL_FAULTS } from "./connection.ts";
import type { SimulationOptions } from "./simulation.ts";

const NEVER = Number.POSITIVE_INFINITY;
const MINUTE = 60_000;

/** Every fault happens at times. */
export function stormy(seed: number, occurrences: number, projects = 200): SimulationOptions {
  const maxSkewMs = 2_000;
  // Seeds differ in how long a run may last: short limits are met more often.
  const limitSeconds = [300, 600, 3_600][Math.abs(seed) % 3] as number;
  return {
    seed,
    occurrences,
    nodes: Math.max(4, Math.round(projects / 10)),
    limitSeconds,
    windowSeconds: 120,
    startDeadlineSeconds: 600,
    maxSkewMs,
    manager: { usualMs: [5, 250], late: 0.01, lateMs: [1_000, 100_000], crashes: 0.002 },
    imageFaults: {
      neverScheduled: 0.003,
      slowPull: 0.01,
      neverPulled: 0.003,
      startError: 0.01,
      endless: 0.004,
    },
    users: { projects, cancels: 0.06, backdated: 0.2, everyMs: 25 * MINUTE },
    chaos: {
      nodeFailsMs: 4 * MINUTE,
      managerStopsMs: 50 * MINUTE,
      ledgerStopsMs: 40 * MINUTE,
      clockStepsMs: 10 * MINUTE,
      priceChangesMs: 15 * MINUTE,
      containerFaults: 0.05,
      maxSkewMs,
    },
    replicas: {
      // A replica that waits costs as much as one that leads: every other seed has one.
      count: 1 + (Math.abs(seed) % 2),
      faults: {
        killBefore: 2e-4,
        killCommitted: 2e-4,
        killAnswered: 2e-4,
        unsent: 0.002,
        unanswered: 0.002,
        refused: 0.002,
        slow: 0.003,
      },
      maxSkewMs,
      freezesMs: 20 * MINUTE,
      outagesMs: 90 * MINUTE,
      clockJumpsMs: 15 * MINUTE,
      watchCutsMs: 10 * MINUTE,
      watchDelayMs: [5, 150],
    },
    ledger: { unanswered: 0.01, refused: 0.01, slow: 0.01 },
    latencyMs: 20_000,
    maxViolations: 1,
  };
}

/** Nothing goes wrong, clocks agree, and users do nothing: every occurrence is run or overlaps. */
export function calm(seed: number, occurrences: number, projects = 40): SimulationOptions {
  const options = stormy(seed, occurrences, projects);
  return {
    ...options,
    maxSkewMs: 0,
    manager: { usualMs: [5, 250], late: 0, lateMs: [0, 0], crashes: 0 },
    imageFaults: { neverScheduled: 0, slowPull: 0, neverPulled: 0, startError: 0, endless: 0 },
    users: { projects, cancels: 0, backdated: 0, everyMs: NEVER },
    chaos: {
      nodeFailsMs: NEVER,
      managerStopsMs: NEVER,
      ledgerStopsMs: NEVER,
      clockStepsMs: NEVER,
      priceChangesMs: NEVER,
      containerFaults: 0,
      maxSkewMs: 0,
    },
    replicas: {
      ...options.replicas,
      count: 1,
      faults: NO_CALL_FAULTS,
      maxSkewMs: 0,
      freezesMs: NEVER,
      outagesMs: NEVER,
      clockJumpsMs: NEVER,
      watchCutsMs: NEVER,
    },
    ledger: { unanswered: 0, refused: 0, slow: 0 },
    latencyMs: 2_000,
  };
}
