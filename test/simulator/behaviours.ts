/** What the images of the model do. Every project has a habit, and breaks it at times. */

import type { Behaviour } from "./container.ts";
import type { Chance } from "./random.ts";

const HABITS = {
  blink: [20, 950],
  short: [1_000, 20_000],
  minute: [35_000, 100_000],
  long: [120_000, 500_000],
} as const;
export type Habit = keyof typeof HABITS;

/** How often images, nodes and users' programs fail; each is a probability of one run. */
export interface Troubles {
  neverScheduled: number;
  slowPull: number;
  neverPulled: number;
  startError: number;
  /** It runs on until it is stopped. */
  endless: number;
}

/** A project's habit. */
export function drawHabit(chance: Chance): Habit {
  return chance.weighted({ blink: 3, short: 5, minute: 2, long: 1 });
}

/** What the next container of a project does. */
export function drawBehaviour(chance: Chance, habit: Habit, troubles: Troubles): Behaviour {
  const kind = chance.happens(0.1) ? drawHabit(chance) : habit;
  const [least, most] = HABITS[kind];
  const exitCode = chance.happens(0.8) ? 0 : 1 + chance.below(255);
  return {
    scheduleMs: chance.happens(troubles.neverScheduled) ? Number.POSITIVE_INFINITY : chance.between(5, 200),
    pullMs: drawPull(chance, troubles),
    startError: chance.happens(troubles.startError),
    runMs: chance.happens(troubles.endless) ? Number.POSITIVE_INFINITY : chance.between(least, most),
    exitCode,
    reason: exitCode === 0 ? "Completed" : "Error",
    stopMs: chance.pick([5, chance.between(0, 5_000), chance.between(0, 40_000), Number.POSITIVE_INFINITY]),
    stopCode: chance.pick([143, 143, 0, 1]),
  };
}

function drawPull(chance: Chance, { slowPull, neverPulled }: Troubles): number {
  if (chance.happens(neverPulled)) {
    return Number.POSITIVE_INFINITY;
  }
  if (chance.happens(slowPull)) {
    return chance.between(10_000, 700_000);
  }
  return chance.happens(0.9) ? 0 : chance.between(200, 4_000);
}
