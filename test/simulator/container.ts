/** One container of a run: what its image will do, drawn by chance, and what really happened to it. */

import type { Chance } from "./random.ts";

/** What the container of a pod will do, drawn when the pod is made. */
export interface Behaviour {
  /** Until a node is found; Infinity when none ever is. */
  scheduleMs: number;
  /** Until the image is there; Infinity when it cannot be pulled. */
  pullMs: number;
  /** The runtime cannot start it: no such command. */
  startError: boolean;
  /** How long it runs when nobody stops it. */
  runMs: number;
  exitCode: number;
  /** The runtime's reason of the end: Completed, Error, OOMKilled. */
  reason: string;
  /** How it ends on SIGTERM: after so long, with this code. Over the grace it is killed. */
  stopMs: number;
  stopCode: number;
}

/** A container as it was, regardless of what was reported of it. */
export interface ContainerRecord {
  readonly namespace: string;
  readonly project: string;
  /** Name of the run, which is the Job's. */
  readonly run: string;
  readonly pod: string;
  readonly podUid: string;
  readonly node: string;
  /** True times in milliseconds. */
  startedAt: number;
  endedAt: number | undefined;
  /** What its node reports: whole seconds of the node's clock. */
  readonly reportedStartedAt: string;
  reportedFinishedAt: string | undefined;
  exitCode: number | undefined;
  reason: string | undefined;
  /** Its node never reported its end: it crashed, or the pod was removed. */
  lost: boolean;
  /** Its pod was taken out of the apiserver by force. */
  stripped: boolean;
}

/** What observes containers. */
export interface ContainerObserver {
  containerStarted(record: ContainerRecord): void;
  containerEnded(record: ContainerRecord): void;
}

/** Shortest and longest runs, in milliseconds. Every project has a habit, and breaks it at times. */
const HABITS = {
  blink: [20, 950],
  short: [1_000, 20_000],
  minute: [35_000, 100_000],
  long: [120_000, 500_000],
} as const;
export type Habit = keyof typeof HABITS;

/** How often images, nodes and users' programs fail; each is a probability of one run. */
export interface ImageFaults {
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
export function drawBehaviour(chance: Chance, habit: Habit, imageFaults: ImageFaults): Behaviour {
  const kind = chance.happens(0.1) ? drawHabit(chance) : habit;
  const [least, most] = HABITS[kind];
  const exitCode = chance.happens(0.8) ? 0 : 1 + chance.below(255);
  return {
    scheduleMs: chance.happens(imageFaults.neverScheduled)
      ? Number.POSITIVE_INFINITY
      : chance.between(5, 200),
    pullMs: drawPull(chance, imageFaults),
    startError: chance.happens(imageFaults.startError),
    runMs: chance.happens(imageFaults.endless) ? Number.POSITIVE_INFINITY : chance.between(least, most),
    exitCode,
    reason: exitCode === 0 ? "Completed" : "Error",
    stopMs: chance.pick([5, chance.between(0, 5_000), chance.between(0, 40_000), Number.POSITIVE_INFINITY]),
    stopCode: chance.pick([143, 143, 0, 1]),
  };
}

function drawPull(chance: Chance, { slowPull, neverPulled }: ImageFaults): number {
  if (chance.happens(neverPulled)) {
    return Number.POSITIVE_INFINITY;
  }
  if (chance.happens(slowPull)) {
    return chance.between(10_000, 700_000);
  }
  return chance.happens(0.9) ? 0 : chance.between(200, 4_000);
}
