/** Charges persistent storage of jobs: exactly one entry for each started hour. */

import type { Store } from "@slipway/controller-runtime";
import { type Catalog, organizationOfNamespace, type Project } from "@slipway/crds";
import { type RecordedStorageHour, recordInParts, type StorageHour } from "@slipway/ledger";
import { type Clock, type Logger, sleep } from "@slipway/process";
import {
  hourStart,
  hoursOf,
  isAccepted,
  isMetered,
  lastStartedHour,
  pricePerGbHour,
} from "./storage-hours.ts";

/** The ledger's hours of storage. Each call may throw when the ledger is unavailable. */
export interface StorageLedger {
  record(rows: readonly StorageHour[]): Promise<readonly RecordedStorageHour[]>;
  /** The last hour that is charged; undefined when none is. */
  last(key: { organizationId: string; projectUid: string }): Promise<number | undefined>;
}

export interface StorageMeterOptions {
  ledger: StorageLedger;
  projects: Store<Project>;
  /** Whether the projects of a namespace are this shard's; all are unless given. */
  owns?: (namespace: string | undefined) => boolean;
  catalog: () => Pick<Catalog, "storagePlans">;
  clock: Clock;
  log: Logger;
  /** Called with the number of hours by outcome; `differs`: the ledger has them with other values. */
  onRecorded?: (outcome: "recorded" | "differs" | "refused", hours: number) => void;
}

/** Hours that a project owes. */
interface Due {
  project: Project;
  hours: StorageHour[];
}

/** Hours of one write. */
const BATCH = 500;
/** Pause after a failure, in milliseconds. */
const RETRY_MS = 15_000;
/** Longest pause: clocks jump. */
const LONGEST_MS = 600_000;

/** Knows, for each project, the next hour to charge; queries the ledger once for each and then only when an hour is due. */
export class StorageMeter {
  readonly #options: StorageMeterOptions;
  /** By project uid. */
  readonly #next = new Map<string, number>();
  /** Those that had no hour in the ledger and were not accepted when it was queried. */
  readonly #idle = new Set<string>();
  #wake: AbortController | undefined;

  constructor(options: StorageMeterOptions) {
    this.#options = options;
  }

  /** Charges what is due until the signal aborts, including what an outage delayed. */
  async run(signal: AbortSignal): Promise<void> {
    const { projects, clock, log } = this.#options;
    const unsubscribe = projects.subscribe(({ type, object }) => {
      const uid = object.metadata.uid ?? "";
      if (type === "delete") {
        this.#next.delete(uid);
        this.#idle.delete(uid);
      } else if (
        this.#isOwn(object) &&
        !this.#next.has(uid) &&
        (isAccepted(object) || !this.#idle.has(uid))
      ) {
        this.#wake?.abort();
      }
    });
    while (!signal.aborted) {
      const wake = new AbortController();
      this.#wake = wake;
      try {
        // A new project interrupts this pause, but not the one after a failure.
        await sleep(clock, await this.chargeDue(signal), AbortSignal.any([signal, wake.signal]));
      } catch (error) {
        if (!signal.aborted) {
          log.warn({ err: error }, "storage could not be charged");
        }
        await sleep(clock, RETRY_MS, signal);
      }
    }
    unsubscribe();
  }

  /**
   * Charges every hour that has begun.
   * @returns milliseconds until the next one
   * @throws what the ledger throws: some hours may be recorded by then
   */
  async chargeDue(signal: AbortSignal): Promise<number> {
    const { projects, clock } = this.#options;
    const metered = projects.list().filter((project) => this.#isOwn(project));
    await this.#charge(metered, signal);
    const now = clock.now().getTime();
    const due = metered
      .filter(({ metadata }) => metadata.deletionTimestamp === undefined)
      .map((project) => [project, this.#next.get(project.metadata.uid ?? "")] as const)
      .flatMap(([project, next]) => (next === undefined ? [] : [hourStart(project, next) - now]));
    // What is due could not be charged yet.
    return due.reduce((soonest, ms) => Math.min(soonest, ms > 0 ? ms : RETRY_MS), LONGEST_MS);
  }

  /**
   * Charges a deleted project's hours up to its deletion.
   * @returns whether all of them are in the ledger; when false, call again
   */
  async close(project: Project, signal: AbortSignal): Promise<boolean> {
    if (!isMetered(project)) {
      return true;
    }
    try {
      await this.#charge([project], signal);
      const next = this.#next.get(project.metadata.uid ?? "");
      // A project that was never accepted never had storage.
      return next === undefined
        ? !isAccepted(project)
        : next > lastStartedHour(project, this.#options.clock.now());
    } catch (error) {
      signal.throwIfAborted();
      this.#options.log.warn({ err: error, project: project.metadata.name }, "storage could not be charged");
      return false;
    }
  }

  #isOwn(project: Project): boolean {
    const { owns = () => true } = this.#options;
    return isMetered(project) && owns(project.metadata.namespace);
  }

  async #charge(projects: readonly Project[], signal: AbortSignal): Promise<void> {
    const price = pricePerGbHour(this.#options.catalog());
    const now = this.#options.clock.now();
    /** Those whose hours the ledger rejects: none of their hours is skipped. */
    const wrong = new Set<Project>();
    let batch: Due[] = [];
    let size = 0;
    for (const project of projects) {
      const next = await this.#nextHour(project);
      const last = lastStartedHour(project, now);
      if (next === undefined || next > last) {
        continue;
      }
      if (price === undefined) {
        throw new Error("the catalog sells no persistent storage, but projects have some");
      }
      for (let first = next; first <= last && !wrong.has(project); first += BATCH) {
        signal.throwIfAborted();
        const hours = hoursOf(project, first, Math.min(last, first + BATCH - 1), price);
        batch.push({ project, hours });
        size += hours.length;
        if (size < BATCH) {
          continue;
        }
        await this.#record(batch, wrong);
        batch = [];
        size = 0;
      }
    }
    if (batch.length > 0) {
      await this.#record(batch, wrong);
    }
  }

  /** The hour to charge next; undefined for a project that was never accepted. */
  async #nextHour(project: Project): Promise<number | undefined> {
    const { namespace = "", uid = "" } = project.metadata;
    const known = this.#next.get(uid);
    if (known !== undefined) {
      return known;
    }
    const organizationId = organizationOfNamespace(namespace);
    if (organizationId === undefined) {
      return undefined;
    }
    // A project that waits for quota has no volume.
    if (this.#idle.has(uid) && !isAccepted(project)) {
      return undefined;
    }
    const last = await this.#options.ledger.last({ organizationId, projectUid: uid });
    if (last === undefined && !isAccepted(project)) {
      this.#idle.add(uid);
      return undefined;
    }
    this.#idle.delete(uid);
    const next = last === undefined ? 0 : last + 1;
    this.#next.set(uid, next);
    return next;
  }

  /** Writes hours, and advances past them. A row that the ledger rejects blocks its own project alone, which is added to `wrong`. */
  async #record(batch: readonly Due[], wrong: Set<Project>): Promise<void> {
    const { log, onRecorded } = this.#options;
    await recordInParts(batch, {
      record: (part) => this.#recordPart(part),
      refused: ({ project, hours }, error) => {
        wrong.add(project);
        // Reported with each attempt, so that the alert lasts as long as the rejection.
        onRecorded?.("refused", hours.length);
        log.error({ err: error, project: project.metadata.name }, "storage cannot be charged");
      },
    });
  }

  async #recordPart(batch: readonly Due[]): Promise<void> {
    const { ledger, log, onRecorded } = this.#options;
    const outcomes = await ledger.record(batch.flatMap(({ hours }) => hours));
    for (const outcome of ["recorded", "differs", "refused"] as const) {
      const found = outcomes.filter((one) => one.outcome === outcome);
      if (found.length > 0) {
        onRecorded?.(outcome, found.length);
      }
      if (found.length > 0 && outcome !== "recorded") {
        log.error({ outcome, hours: found.slice(0, 10) }, "storage is charged otherwise than it should be");
      }
    }
    for (const { project, hours } of batch) {
      this.#next.set(project.metadata.uid ?? "", (hours.at(-1)?.hour_index ?? -1) + 1);
    }
  }
}
