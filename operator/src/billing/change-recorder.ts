/**
 * Records changes of what is billed: in the status of the project, in the write that reports what else the change has changed, and from there in the
 * ledger. While the ledger is away only that waits, and the finalizers of deleted projects: docs/adr/0032-recorded-changes.md.
 */

import { type ObjectRef, type Store, WaitingError as Waiting } from "@slipway/controller-runtime";
import {
  BILLABLE_CHANGES_LISTED,
  type BillableState,
  type BillableStatusChange,
  type Project,
  type ProjectStatus,
} from "@slipway/crds";
import {
  type BillableChangeRow,
  type NumberedChange,
  type RecordedBillableChange,
  recordInParts,
} from "@slipway/ledger";
import { type Clock, type Logger, sleep } from "@slipway/process";
import { type KnownRecord, renumbered, withState } from "./billable-changes.ts";
import { batchOf, hasEnded, inOrder, type PendingChanges, pendingOf } from "./pending-changes.ts";
import { SlowProjects } from "./slow-projects.ts";

/** The ledger's changes. Each call may throw when the ledger is unavailable. */
export interface ChangeLedger {
  record(changes: readonly BillableChangeRow[]): Promise<readonly RecordedBillableChange[]>;
  /** The last change of each project that has one. */
  last(projectUids: readonly string[]): Promise<ReadonlyMap<string, NumberedChange>>;
}

/**
 * `renumbered`: of a status that had lost its list, and goes on after what the ledger has. `ended`: the ledger has the end of a project that exists,
 * after which nothing can be recorded of it.
 */
export type ChangeOutcome = RecordedBillableChange["outcome"] | "renumbered" | "refused" | "ended";

export interface ChangeRecorderOptions {
  ledger: ChangeLedger;
  projects: Store<Project>;
  /** Where plans are not metered any more: only ends of histories that have begun are reported and recorded. */
  endsOnly?: boolean | undefined;
  /** Whether the projects of a namespace are this shard's. */
  owns: (namespace: string | undefined) => boolean;
  /** One that throws while it may not be acted on. */
  clock: Clock;
  log: Logger;
  onOutcome?: (outcome: ChangeOutcome, changes: number) => void;
}

/** Changes of one transaction, and the least time between two of them, in milliseconds. */
const BATCH = 500;
const PACE_MS = 1_000;
/** Pause after a failure, in milliseconds. */
const RETRY_MS = 5_000;
/** Pause of a project whose changes the ledger does not take, in milliseconds. */
const REFUSED_MS = 60_000;
/** After this everything is compared again, in milliseconds. */
const LONGEST_MS = 600_000;

export class ChangeRecorder {
  readonly #options: ChangeRecorderOptions;
  /** By uid. Empty at first: what the statuses list is sent again then, and changes nothing. */
  readonly #known = new Map<string, KnownRecord>();
  /** Those whose changes were not taken, by uid, until when they are left out, by the monotonic clock. */
  readonly #refused = new Map<string, number>();
  readonly #slow = new SlowProjects();
  #wakeProject: (project: ObjectRef) => void = () => {};
  #wake: AbortController | undefined;

  constructor(options: ChangeRecorderOptions) {
    this.#options = options;
  }

  /** Sets what has a project reconciled soon. */
  onRecorded(wakeProject: (project: ObjectRef) => void): void {
    this.#wakeProject = wakeProject;
  }

  /** False where only ends are reported. */
  get isOn(): boolean {
    return !this.#options.endsOnly;
  }

  /**
   * Reports in a status what a project has now.
   * @returns milliseconds after which to call again; undefined when there is no need to
   */
  report(project: Project, status: ProjectStatus, state: BillableState): number | undefined {
    return this.isOn ? this.#report(project, status, state) : undefined;
  }

  /** Reports in a status that a project is deleted, where a history has begun. */
  reportDeletion(project: Project, status: ProjectStatus): number | undefined {
    return status.billing && this.#report(project, status, undefined);
  }

  #report(project: Project, status: ProjectStatus, state: BillableState | undefined): number | undefined {
    const { uid = "", deletionTimestamp = "" } = project.metadata;
    const listed = status.billing?.changes ?? [];
    const known = this.#known.get(uid);
    const instant = () => (state === undefined ? new Date(deletionTimestamp) : this.#options.clock.now());
    let changes: readonly BillableStatusChange[];
    try {
      changes = withState(listed, state, { at: instant, known });
    } catch (error) {
      // What this process's clock says may not be charged by.
      if (error instanceof Waiting) {
        return RETRY_MS;
      }
      throw error;
    }
    if (changes !== listed) {
      status.billing = { changes: [...changes] };
    }
    return undefined;
  }

  /** Whether a project's status lists changes that the ledger may not have. */
  hasPending(project: Project): boolean {
    return this.#pendingOf(project).length > 0;
  }

  /** Whether the ledger has the end of a deleted project, or there is no history. */
  hasEnded(project: Project): boolean {
    return hasEnded(project, this.#known.get(project.metadata.uid ?? ""));
  }

  /** Records what statuses list until the signal aborts, at most one transaction in a second. */
  async run(signal: AbortSignal): Promise<void> {
    const { projects, log } = this.#options;
    this.#known.clear();
    this.#refused.clear();
    const unsubscribe = projects.subscribe(({ type, object }) => {
      const uid = object.metadata.uid ?? "";
      if (type === "delete") {
        this.#known.delete(uid);
        this.#refused.delete(uid);
        this.#slow.succeeded(uid);
      } else if (this.#pendingOf(object).length > 0) {
        this.#wake?.abort();
      }
    });
    while (!signal.aborted) {
      const wake = new AbortController();
      this.#wake = wake;
      let pauseMs = RETRY_MS;
      try {
        pauseMs = (await this.recordPending(signal)) ? 0 : this.#idleMs();
      } catch (error) {
        if (!signal.aborted) {
          log.warn({ err: error }, "changes of projects could not be recorded");
        }
        await this.#pause(RETRY_MS, signal);
        continue;
      }
      await this.#pause(pauseMs, AbortSignal.any([signal, wake.signal]));
      // A change interrupts the pause before, and not this one.
      await this.#pause(PACE_MS, signal);
    }
    unsubscribe();
  }

  /**
   * Records a batch of what statuses list.
   * @returns whether there is more
   * @throws what the ledger throws: some may be recorded by then
   */
  async recordPending(signal: AbortSignal): Promise<boolean> {
    const pending = this.#pending();
    const batch = batchOf(pending, BATCH);
    signal.throwIfAborted();
    if (batch.length > 0) {
      await this.#record(batch, signal);
    }
    return batch.length < pending.length;
  }

  #pending(): PendingChanges[] {
    const { projects, owns } = this.#options;
    const now = this.#monotonic();
    for (const [uid, until] of this.#refused) {
      if (until <= now) {
        this.#refused.delete(uid);
      }
    }
    const pending = projects
      .list()
      .filter(({ metadata }) => owns(metadata.namespace) && !this.#refused.has(metadata.uid ?? ""))
      .map((project) => ({ project, rows: this.#pendingOf(project) }))
      .filter(({ rows }) => rows.length > 0);
    return inOrder(pending);
  }

  #pendingOf(project: Project): BillableChangeRow[] {
    if (this.#options.endsOnly && project.metadata.deletionTimestamp === undefined) {
      return [];
    }
    return pendingOf(project, this.#known.get(project.metadata.uid ?? ""));
  }

  async #record(batch: readonly PendingChanges[], signal: AbortSignal): Promise<void> {
    await recordInParts(batch, {
      record: (part) => this.#recordPart(part),
      refused: (one, error) => this.#noteRefused(one, error),
      tooSlow: (one, error) => this.#noteSlow(one, error),
      pause: async () => {
        await this.#pause(PACE_MS, signal);
        signal.throwIfAborted();
      },
    });
  }

  async #noteRefused(one: PendingChanges, error: Error): Promise<void> {
    if (await this.#isEnded(one)) {
      return;
    }
    const { log, onOutcome } = this.#options;
    this.#leaveOut(one.project);
    onOutcome?.("refused", one.rows.length);
    log.error({ err: error, project: one.project.metadata.name }, "changes of a project are refused");
  }

  /** It is left out for a while, so that what comes after it is recorded. */
  #noteSlow({ project, rows }: PendingChanges, error: Error): void {
    const { log, onOutcome } = this.#options;
    const { uid = "", name } = project.metadata;
    this.#leaveOut(project);
    const isCounted = this.#slow.failed(uid);
    if (isCounted) {
      onOutcome?.("refused", rows.length);
    }
    log[isCounted ? "error" : "warn"](
      { err: error, project: name },
      "changes of a project take the ledger too long",
    );
  }

  async #recordPart(given: readonly PendingChanges[]): Promise<void> {
    const { ledger, onOutcome } = this.#options;
    const lost = await this.#lostOf(given);
    await this.#follow(lost.map((one) => ({ project: one.project, differing: one.rows.length })));
    const batch = given.filter((one) => !lost.includes(one));
    const outcomes = await ledger.record(batch.flatMap(({ rows }) => rows));
    const byUid = Map.groupBy(outcomes, ({ projectUid }) => projectUid);
    for (const [outcome, found] of Map.groupBy(outcomes, (one) => one.outcome)) {
      if (outcome !== "differs") {
        onOutcome?.(outcome, found.length);
      }
    }
    for (const { project } of batch) {
      this.#slow.succeeded(project.metadata.uid ?? "");
      this.#note(project, byUid.get(project.metadata.uid ?? "") ?? []);
    }
    await this.#follow(
      batch.flatMap(({ project }) => {
        const own = byUid.get(project.metadata.uid ?? "") ?? [];
        const differing = own.filter(({ outcome }) => outcome === "differs").length;
        return differing > 0 ? [{ project, differing }] : [];
      }),
    );
  }

  /**
   * Those whose status had lost its list, and lists more than the ledger has by now: the ledger would take the last of these numbers, and refuse the
   * first ones.
   */
  async #lostOf(batch: readonly PendingChanges[]): Promise<PendingChanges[]> {
    const uidOf = ({ project }: PendingChanges) => project.metadata.uid ?? "";
    const isFirst = ({ rows }: PendingChanges) => rows.length > 1 && rows[0]?.number === 1;
    const some = batch.filter((one) => isFirst(one) && !this.#known.has(uidOf(one)));
    const last = some.length > 0 ? await this.#options.ledger.last(some.map(uidOf)) : undefined;
    return some.filter((one) => isLater(one.project, last?.get(uidOf(one))));
  }

  /** Notes what the ledger has, and has the project reconciled where that waits for it. */
  #note({ metadata, status }: Project, outcomes: readonly RecordedBillableChange[]): void {
    const { uid = "", namespace, name, deletionTimestamp } = metadata;
    if (differs(outcomes)) {
      return;
    }
    const ahead = outcomes.filter(({ outcome }) => outcome === "ahead").map(({ number }) => number);
    const recorded = outcomes.map(({ number }) => number).filter((number) => number < Math.min(...ahead));
    if (ahead.length > 0) {
      this.#leaveOut({ metadata } as Project);
    }
    if (recorded.length === 0) {
      return;
    }
    this.#known.set(uid, { number: Math.max(...recorded) });
    const isFull = (status?.billing?.changes.length ?? 0) >= BILLABLE_CHANGES_LISTED - 1;
    if (deletionTimestamp !== undefined || isFull) {
      this.#wakeProject({ namespace, name });
    }
  }

  /** The cluster went back to an earlier state, or statuses lost their lists: histories go on after what the ledger has. */
  async #follow(batch: readonly { project: Project; differing: number }[]): Promise<void> {
    if (batch.length === 0) {
      return;
    }
    const { ledger, log, onOutcome } = this.#options;
    const last = await ledger.last(batch.map(({ project }) => project.metadata.uid ?? ""));
    for (const { project, differing } of batch) {
      const { uid = "", namespace, name } = project.metadata;
      const goesOnAfter = last.get(uid);
      const isLost = isLater(project, goesOnAfter);
      onOutcome?.(isLost ? "renumbered" : "differs", differing);
      if (goesOnAfter !== undefined) {
        this.#known.set(uid, { number: goesOnAfter.number, goesOnAfter });
        if (goesOnAfter.state === undefined) {
          this.#noteEnded(project);
        } else if (isLost) {
          log.warn({ project: name, namespace }, "a status that lost its changes goes on after the ledger's");
        } else {
          log.error(
            { project: name, namespace },
            "the ledger has another history of a project, which goes on",
          );
        }
        this.#wakeProject({ namespace, name });
      }
    }
  }

  /** Whether a project's changes are refused because the ledger has its end. */
  async #isEnded({ project }: PendingChanges): Promise<boolean> {
    const { uid = "", namespace, name } = project.metadata;
    const end = (await this.#options.ledger.last([uid])).get(uid);
    if (end === undefined || end.state !== undefined) {
      return false;
    }
    this.#known.set(uid, { number: end.number, goesOnAfter: end });
    this.#noteEnded(project);
    this.#wakeProject({ namespace, name });
    return true;
  }

  /** Where it exists and is not being deleted, nothing is billed any more: only a new project is. */
  #noteEnded({ metadata: { namespace, name, deletionTimestamp } }: Project): void {
    if (deletionTimestamp === undefined) {
      this.#options.onOutcome?.("ended", 1);
      this.#options.log.error(
        { project: name, namespace },
        "the ledger has the end of a project that exists",
      );
    }
  }

  #leaveOut({ metadata }: Project): void {
    this.#refused.set(metadata.uid ?? "", this.#monotonic() + REFUSED_MS);
  }

  #idleMs(): number {
    const next = Math.min(...this.#refused.values()) - this.#monotonic();
    return Math.min(LONGEST_MS, Math.max(next, PACE_MS));
  }

  #monotonic(): number {
    return this.#options.clock.monotonic();
  }

  #pause(ms: number, signal: AbortSignal): Promise<void> {
    return sleep(this.#options.clock, ms, signal);
  }
}

/** Whether all that a status lists was observed after what the ledger has last, which it has then under numbers of its own. */
function isLater({ status }: Project, last: NumberedChange | undefined): boolean {
  const listed = status?.billing?.changes ?? [];
  return last !== undefined && renumbered(listed, last).length === listed.length;
}

const differs = (outcomes: readonly RecordedBillableChange[] = []): boolean =>
  outcomes.some(({ outcome }) => outcome === "differs");
