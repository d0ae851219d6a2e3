/** Records what plans cost, once it cannot change any more: computed from recorded histories and prices by date, docs/billing.md. */

import type { Store } from "@slipway/controller-runtime";
import { checkpointOf, originOf, type PriceList, type Project, planCharges } from "@slipway/crds";
import {
  isDeadlock,
  isTooSlow,
  type MeteredHistory,
  type MeteredProject,
  type MeteredWindow,
  type RecordedPlanCharges,
  recordInParts,
} from "@slipway/ledger";
import { type Clock, type Logger, sleep } from "@slipway/process";
import { projectRefOf } from "../projects/quotas/reaper.ts";
import { changesOf } from "./billable-changes.ts";
import type { ChangeRecorder } from "./change-recorder.ts";
import { adjustCharges } from "./late-changes.ts";
import type { PlanChargeLedger, PlanChargeOutcome } from "./plan-charge-ledger.ts";
import { SlowProjects } from "./slow-projects.ts";
import { inTurns } from "./turns.ts";

export interface PlanMeterOptions {
  ledger: PlanChargeLedger;
  projects: Store<Project>;
  recorder: Pick<ChangeRecorder, "hasPending">;
  owns: (namespace: string | undefined) => boolean;
  /** One that throws while it may not be acted on. */
  clock: Clock;
  log: Logger;
  onOutcome?: (outcome: PlanChargeOutcome, charges: number) => void;
}

const HOUR_MS = 3_600_000;
/** A charge is recorded so long after it is final: changes from before are in the ledger by then, or known to be on their way. */
export const METER_LAG_MS = 600_000;
const PERIOD_MS = 60_000;
/** The least time between two transactions that write, in milliseconds. */
const PACE_MS = 1_000;
/** Histories that are read together, and about as many charges are written together. */
const PROJECTS = 200;
const CHARGES = 2_000;
/** Changes since its checkpoint that are read of a project, and after how many another one is noted. */
const CHANGES = 500;
const CHANGES_OF_CHECKPOINT = 50;
/** Most changes of a project within an hour: all of them are read together. */
const CHANGES_OF_HOUR = 100_000;
/** Longest window of a project: what an outage delayed comes in several. */
const LONGEST_WINDOW_MS = 7 * 24 * HOUR_MS;
/** Projects that are adjusted to late changes before the next windows. */
const LATE_PROJECTS = 20;
/** Pause of a project for which the ledger takes too long, or whose adjustments it refuses, in milliseconds. */
const LEFT_OUT_MS = 60_000;

interface Due {
  project: MeteredProject;
  /** Number of the last change that the cluster knows; undefined for one that is gone. */
  number: number | undefined;
}

/** What a window of a project costs, with what has to be known of the history that it was computed from. */
interface Computed {
  one: Due;
  window: MeteredWindow;
  origin: number | undefined;
  /** Changes since the checkpoint. */
  changes: number;
}

export class PlanMeter {
  readonly #options: PlanMeterOptions;
  /** When something of a project can be final next, and its last change when that was computed. By uid. */
  readonly #next = new Map<string, { at: number; number: number | undefined }>();
  /** Until when projects are left out, by the monotonic clock. By uid. */
  readonly #leftOut = new Map<string, number>();
  /** Longest windows of projects whose longer ones took the ledger too long, in milliseconds. By uid. */
  readonly #longest = new Map<string, number>();
  readonly #slow = {
    reads: new SlowProjects(),
    windows: new SlowProjects(),
    adjustments: new SlowProjects(),
  };

  constructor(options: PlanMeterOptions) {
    this.#options = options;
  }

  /** Records what is final until the signal aborts, what an outage delayed, too. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, log } = this.#options;
    this.#next.clear();
    while (!signal.aborted) {
      let isMore = false;
      try {
        isMore = await this.meter(signal);
      } catch (error) {
        if (!signal.aborted) {
          log.warn({ err: error }, "plans could not be charged");
        }
      }
      await sleep(clock, isMore ? PACE_MS : PERIOD_MS, signal);
    }
  }

  /**
   * Records what is final of projects that are due, and then adjusts some to changes that came late.
   * @returns whether some were left for another window
   * @throws what the ledger throws: some may be recorded by then
   */
  async meter(signal: AbortSignal): Promise<boolean> {
    const { ledger, clock } = this.#options;
    const until = clock.now().getTime() - METER_LAG_MS;
    for (const [uid, leftOutUntil] of this.#leftOut) {
      if (leftOutUntil <= clock.monotonic()) {
        this.#leftOut.delete(uid);
      }
    }
    const lists = await ledger.prices();
    if (lists.length === 0) {
      return false;
    }
    const due = (await ledger.toMeter()).flatMap((project) => this.#dueOf(project, until));
    let isMore = false;
    for (let start = 0; start < due.length; start += PROJECTS) {
      const some = due.slice(start, start + PROJECTS);
      const histories = await this.#recent(some);
      let batch: Computed[] = [];
      const write = async () => {
        signal.throwIfAborted();
        const isLeft = await this.#record(batch, until, signal);
        isMore ||= isLeft;
        batch = [];
        await sleep(clock, PACE_MS, signal);
      };
      for (const one of some) {
        const computed = await this.#computed(one, histories.get(one.project.projectUid), lists, until);
        if (computed === undefined) {
          continue;
        }
        batch.push(computed);
        if (batch.reduce((sum, { window: { charges } }) => sum + charges.length, 0) >= CHARGES) {
          await write();
        }
      }
      if (batch.length > 0) {
        await write();
      }
    }
    const isLate = due.some(({ project }) => project.late) && (await this.#adjust(lists, until, signal));
    return isMore || isLate;
  }

  /** What came of projects since their checkpoints, without those for which the ledger takes too long. */
  async #recent(some: readonly Due[]): Promise<Map<string, MeteredHistory>> {
    const { ledger } = this.#options;
    const failed = ({ project }: Due, error: Error): readonly MeteredHistory[] => {
      this.#noteUnread(project, error);
      return [];
    };
    const read = await recordInParts(some, {
      record: (part) =>
        ledger.recent(
          part.map(({ project }) => project.projectUid),
          CHANGES,
        ),
      refused: failed,
      tooSlow: failed,
    });
    for (const { projectUid, readUntil } of read.flat()) {
      if (readUntil === undefined) {
        this.#slow.reads.succeeded(projectUid);
      }
    }
    return new Map(read.flat().map((history) => [history.projectUid, history]));
  }

  /** A project's next window. Where more changes are in it than were read, all that there are are read, of this project alone. */
  async #computed(
    one: Due,
    recent: MeteredHistory | undefined,
    lists: readonly PriceList[],
    latest: number,
  ): Promise<Computed | undefined> {
    const { project } = one;
    let history = recent;
    if (history?.readUntil !== undefined && history.readUntil <= sinceOf(project, history)) {
      try {
        [history] = await this.#options.ledger.recent([project.projectUid], CHANGES_OF_HOUR);
        this.#slow.reads.succeeded(project.projectUid);
      } catch (error) {
        if (!isTooSlow(error)) {
          throw error;
        }
        this.#noteUnread(project, error);
        return undefined;
      }
    }
    const window = history && this.#windowOf(one, history, lists, latest);
    return window && history
      ? { one, window, origin: originOf(history), changes: history.changes.length }
      : undefined;
  }

  #noteUnread({ projectId, projectUid }: MeteredProject, error: Error): void {
    const { log, onOutcome } = this.#options;
    this.#leaveOut(projectUid);
    const isCounted = !isTooSlow(error) || this.#slow.reads.failed(projectUid);
    if (isCounted) {
      onOutcome?.("refused", 1);
    }
    const level = isCounted ? "error" : "warn";
    log[level]({ err: error, project: projectId, projectUid }, "the history of a plan cannot be read");
  }

  #leaveOut(projectUid: string): void {
    this.#leftOut.set(projectUid, this.#options.clock.monotonic() + LEFT_OUT_MS);
  }

  /** A project of this shard of which something may be final, and all of whose changes are in the ledger. */
  #dueOf(project: MeteredProject, until: number): Due[] {
    const { projects, recorder, owns } = this.#options;
    const ref = projectRefOf(project);
    if (!owns(ref.namespace) || this.#leftOut.has(project.projectUid)) {
      return [];
    }
    const live = projects.get(ref.namespace, ref.name);
    const isIt = live?.metadata.uid === project.projectUid;
    const last = isIt ? changesOf(live).at(-1) : undefined;
    const isEnding = live?.metadata.deletionTimestamp !== undefined && last?.state !== undefined;
    if (isIt && (isEnding || recorder.hasPending(live))) {
      return [];
    }
    const next = this.#next.get(project.projectUid);
    const isDue =
      next === undefined || project.late !== undefined || next.at < until || next.number !== last?.number;
    return isDue ? [{ project, number: last?.number }] : [];
  }

  /**
   * Adjusts some projects to changes that came late, as they are after their windows; organizations take turns.
   * @returns whether others wait
   */
  async #adjust(lists: readonly PriceList[], latest: number, signal: AbortSignal): Promise<boolean> {
    const { ledger, clock } = this.#options;
    const due = (await ledger.toMeter()).flatMap((one) => this.#dueOf(one, latest));
    const late = due.flatMap(({ project: { until, late, ...project } }) =>
      until === undefined || late === undefined ? [] : [{ ...project, until, late }],
    );
    const turns = inTurns(late, ({ organizationId }) => organizationId);
    for (const project of turns.slice(0, LATE_PROJECTS)) {
      signal.throwIfAborted();
      if (!(await adjustCharges({ project, lists }, { ...this.#options, slow: this.#slow.adjustments }))) {
        this.#leaveOut(project.projectUid);
      }
      await sleep(clock, PACE_MS, signal);
    }
    return turns.length > LATE_PROJECTS;
  }

  #windowOf(
    { project, number }: Due,
    history: MeteredHistory,
    lists: readonly PriceList[],
    latest: number,
  ): MeteredWindow | undefined {
    const { log, onOutcome } = this.#options;
    const { projectId, projectUid } = project;
    const origin = originOf(history) ?? history.deletedAt ?? latest;
    // One that is gone without an end gets one, from when it is.
    const isEndless = history.deletedAt === undefined && history.readUntil === undefined;
    if (origin >= latest || (number === undefined && isEndless)) {
      return undefined;
    }
    const since = project.until?.getTime();
    const until = Math.min(
      latest,
      (since ?? origin) + (this.#longest.get(projectUid) ?? LONGEST_WINDOW_MS),
      history.readUntil ?? Number.POSITIVE_INFINITY,
    );
    if (until <= (since ?? origin)) {
      // One that is late has no checkpoint until it is adjusted.
      if (history.readUntil !== undefined && until === history.readUntil && project.late === undefined) {
        onOutcome?.("refused", 1);
        log.error({ project: projectId, projectUid }, "a plan has too many changes to be charged");
      }
      return undefined;
    }
    try {
      const charges = planCharges(history, lists, { since, until }).filter(({ finalAt }) => finalAt < until);
      const ended = history.deletedAt !== undefined && history.deletedAt < until;
      const { organizationId, arrivals } = project;
      const checkpoint = ended ? undefined : checkpointOf(history, lists, until);
      const window = { until: new Date(until), ended, arrivals, checkpoint, charges };
      return { organizationId, projectId, projectUid, ...window };
    } catch (error) {
      onOutcome?.("refused", 1);
      log.error({ err: error, project: projectId, projectUid }, "a plan cannot be charged");
      return undefined;
    }
  }

  /** @returns whether a window ended before the latest instant */
  async #record(batch: readonly Computed[], latest: number, signal: AbortSignal): Promise<boolean> {
    const { clock, log, onOutcome } = this.#options;
    const isLeft = await recordInParts(batch, {
      record: (part) => this.#recordPart(part, latest),
      refused: ({ window: { projectId, charges } }, error) => {
        onOutcome?.("refused", charges.length);
        log.error({ err: error, project: projectId }, "charges of a plan are refused");
        return false;
      },
      tooSlow: (one, error) => this.#noteSlow(one, error),
      pause: async () => {
        await sleep(clock, PACE_MS, signal);
        signal.throwIfAborted();
      },
    });
    return isLeft.includes(true);
  }

  /** Its next window is shorter, down to an hour. */
  #noteSlow({ one, window, origin = 0 }: Computed, error: Error): false {
    const { log, onOutcome } = this.#options;
    const { projectId, projectUid } = window;
    const length = window.until.getTime() - (one.project.until?.getTime() ?? origin);
    if (this.#slow.windows.failed(projectUid) && length <= HOUR_MS) {
      onOutcome?.("refused", 1);
    }
    this.#longest.set(projectUid, Math.max(HOUR_MS, Math.floor(length / 2)));
    this.#leaveOut(projectUid);
    log.warn({ err: error, project: projectId, projectUid }, "charges of a plan take the ledger too long");
    return false;
  }

  /** Records windows; where an adjustment is recorded beside them so that each waits for the other, all of them are to be computed again. */
  async #written(windows: readonly MeteredWindow[]): Promise<RecordedPlanCharges> {
    try {
      return await this.#options.ledger.record(windows);
    } catch (error) {
      if (!isDeadlock(error)) {
        throw error;
      }
      this.#options.log.warn({ err: error }, "windows are computed again");
      return { recorded: 0, differing: [], stale: windows.map(({ projectUid }) => projectUid) };
    }
  }

  async #recordPart(batch: readonly Computed[], latest: number): Promise<boolean> {
    const { log, onOutcome } = this.#options;
    // What has no charge, and has not ended, need not be noted yet: it is computed again, unless that would be of many changes.
    const written = batch.filter(
      ({ window: { charges, ended, until }, changes }) =>
        charges.length > 0 || ended || until.getTime() < latest || changes > CHANGES_OF_CHECKPOINT,
    );
    let stale: readonly string[] = [];
    if (written.length > 0) {
      const result = await this.#written(written.map(({ window }) => window));
      const { recorded, differing } = result;
      stale = result.stale;
      onOutcome?.("recorded", recorded);
      if (differing.length > 0) {
        onOutcome?.("differs", differing.length);
        log.error({ keys: differing.slice(0, 10) }, "plans are charged otherwise than they should be");
      }
    }
    let isLeft = false;
    for (const { one, window, origin: begin } of batch) {
      if (stale.includes(window.projectUid)) {
        this.#next.delete(window.projectUid);
        continue;
      }
      this.#slow.windows.succeeded(window.projectUid);
      const until = window.until.getTime();
      const origin = begin ?? until;
      if (until < latest) {
        this.#next.delete(one.project.projectUid);
        isLeft = true;
        continue;
      }
      this.#longest.delete(window.projectUid);
      if (window.ended) {
        this.#next.delete(one.project.projectUid);
      } else {
        const at = origin + Math.ceil((until - origin) / HOUR_MS) * HOUR_MS;
        this.#next.set(one.project.projectUid, { at, number: one.number });
      }
    }
    return isLeft;
  }
}

/** In milliseconds: where a project's next window begins. */
const sinceOf = ({ until }: MeteredProject, history: MeteredHistory): number =>
  until?.getTime() ?? originOf(history) ?? 0;
