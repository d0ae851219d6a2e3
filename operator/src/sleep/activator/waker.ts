/** Asks the operator to wake projects, each once a sleep, and no organization more often than its share. */

import { isNotFound } from "@slipway/controller-runtime";
import { type Clock, type Logger, sleep } from "@slipway/process";
import type { ActivatorMetrics } from "./metrics.ts";
import type { SleepingProject } from "./projects.ts";

/** Wakes in a minute, of an organization and of all. */
export interface WakeLimits {
  perOrganization: number;
  total: number;
  /** Of an organization, however many those of others are. */
  reserved: number;
}

export const WAKES: WakeLimits = { perOrganization: 30, total: 300, reserved: 3 };
const WINDOW_MS = 60_000;
/** Pause before a wake that failed, or for which there is no share left, is tried again. */
const RETRY_MS = 1_000;

export interface WakerOptions {
  clock: Clock;
  log: Logger;
  metrics: ActivatorMetrics;
  current: (project: SleepingProject) => SleepingProject | undefined;
  requestWake: (project: SleepingProject, signal: AbortSignal) => Promise<void>;
  limits?: WakeLimits;
}

export class Waker {
  readonly #options: Required<WakerOptions>;
  /** Sleeps that are being ended. */
  readonly #pending = new Set<string>();
  #windowAt = Number.NEGATIVE_INFINITY;
  #used = new Map<string, number>();

  constructor(options: WakerOptions) {
    this.#options = { limits: WAKES, ...options };
  }

  /** Has a project woken, unless it runs, or is asked to already. @param isHeld whether a request still waits for it */
  wake(project: SleepingProject, isHeld: () => boolean, signal: AbortSignal): void {
    const key = `${project.uid}/${project.sleepId}`;
    if (!isToWake(project) || this.#pending.has(key)) {
      return;
    }
    this.#pending.add(key);
    void this.#wake(project, isHeld, signal).finally(() => this.#pending.delete(key));
  }

  async #wake(project: SleepingProject, isHeld: () => boolean, signal: AbortSignal): Promise<void> {
    const { clock, current, log, metrics, requestWake } = this.#options;
    while (!signal.aborted && isHeld()) {
      const now = current(project);
      if (now === undefined || now.sleepId !== project.sleepId || !isToWake(now)) {
        return;
      }
      if (this.#take(project.organization)) {
        try {
          await requestWake(now, signal);
          metrics.wakes.inc({ result: "requested" });
          return;
        } catch (error) {
          if (isNotFound(error)) {
            return;
          }
          metrics.wakes.inc({ result: "failed" });
          log.warn({ err: error }, "a project cannot be woken");
        }
      } else {
        metrics.wakes.inc({ result: "limited" });
      }
      await sleep(clock, RETRY_MS, signal).catch(() => {});
    }
  }

  #take(organization: string): boolean {
    const { clock, limits } = this.#options;
    const now = clock.monotonic();
    if (now - this.#windowAt >= WINDOW_MS) {
      this.#windowAt = now;
      this.#used = new Map();
    }
    const own = this.#used.get(organization) ?? 0;
    const all = [...this.#used.values()].reduce((sum, one) => sum + one, 0);
    if (own >= limits.perOrganization || (all >= limits.total && own >= limits.reserved)) {
      return false;
    }
    this.#used.set(organization, own + 1);
    return true;
  }
}

const isToWake = ({ sleepId, wakeRequested }: SleepingProject): boolean =>
  sleepId !== undefined && sleepId !== wakeRequested;
