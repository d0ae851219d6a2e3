import { setTimeout as sleep } from "node:timers/promises";
import type { GitEvent } from "@slipway/git";
import {
  dropGitDelivery,
  finishGitDelivery,
  type GitDelivery,
  type LeasedDelivery,
  type Ledger,
  leaseGitDeliveries,
  postponeGitDelivery,
  queueGitDelivery,
} from "@slipway/ledger";
import type { Logger } from "pino";
import { failures } from "../errors/catalog.ts";
import { withLedgerErrors } from "../ledger/availability.ts";

/** Queues deliveries of Git hooks in the ledger, and processes them in the background. */

/** Deliveries that wait: an organization's own fill its own queue alone. */
const LIMITS = { perOrganization: 1_000, perConnection: 250 };

/** Deliveries of hooks from their answer until they are processed. Everything throws Failure 503 when the ledger is unavailable. */
export interface DeliveryQueue {
  /** @throws Failure 503 when too many wait */
  queue(delivery: GitDelivery, event: GitEvent): Promise<"queued" | "duplicate">;
  /** Leases those that are due, the organization first of which fewest are being processed. */
  lease(bounds: { most: number; perOrganization: number; leaseMs: number }): Promise<LeasedDelivery[]>;
  /** Records that it was processed; a repeat is a duplicate from then on. */
  finish(leased: LeasedDelivery): Promise<void>;
  /** Drops it; the server may send it again. */
  drop(leased: LeasedDelivery): Promise<void>;
  postpone(leased: LeasedDelivery, afterMs: number): Promise<void>;
}

/** The ledger's. */
export function ledgerDeliveries(ledger: Ledger): DeliveryQueue {
  return {
    queue: async (delivery, event) => {
      const text = JSON.stringify(event);
      const queued = await withLedgerErrors(() => queueGitDelivery(ledger, delivery, text, LIMITS));
      if (queued === "full") {
        throw failures.serverBusy();
      }
      return queued;
    },
    lease: (bounds) => withLedgerErrors(() => leaseGitDeliveries(ledger, bounds)),
    finish: (leased) => withLedgerErrors(() => finishGitDelivery(ledger, leased)),
    drop: (leased) => withLedgerErrors(() => dropGitDelivery(ledger, leased)),
    postpone: (leased, afterMs) => withLedgerErrors(() => postponeGitDelivery(ledger, leased, afterMs)),
  };
}

export interface DeliveryWorkerOptions {
  /** Deliveries that one replica works at, and those of one organization that all replicas work at. */
  maxConcurrent: number;
  perOrganization: number;
  /** How often the queue is polled while nothing is due. */
  pollMs: number;
  /** How long a delivery is leased: then another replica processes it. */
  leaseMs: number;
  /** Attempts at a delivery until it is dropped, and the pause after the first; each is twice as long as the one before. */
  tries: number;
  retryMs: number;
}

const OPTIONS: DeliveryWorkerOptions = {
  maxConcurrent: 16,
  perOrganization: 4,
  pollMs: 500,
  leaseMs: 120_000,
  tries: 10,
  retryMs: 2_000,
};
/** The longest pause between two tries. */
const LONGEST_PAUSE_MS = 600_000;

/** Works off the deliveries of hooks; every replica has one. */
export class DeliveryWorker {
  readonly #queue: DeliveryQueue;
  readonly #work: (delivery: LeasedDelivery, event: GitEvent) => Promise<void>;
  readonly #logger: Logger;
  readonly #options: DeliveryWorkerOptions;
  readonly #stop = new AbortController();
  readonly #underWay = new Set<Promise<void>>();
  #loop: Promise<void> | undefined;

  /** @param work starts what the event starts; it may come twice, when a replica is killed in the middle */
  constructor(
    queue: DeliveryQueue,
    work: (delivery: LeasedDelivery, event: GitEvent) => Promise<void>,
    logger: Logger,
    options: Partial<DeliveryWorkerOptions> = {},
  ) {
    this.#queue = queue;
    this.#work = work;
    this.#logger = logger;
    this.#options = { ...OPTIONS, ...options };
  }

  start(): void {
    this.#loop ??= this.#run();
  }

  /** Leases no more, and resolves when those in progress have ended. */
  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#loop;
    await Promise.all(this.#underWay);
  }

  async #run(): Promise<void> {
    const { signal } = this.#stop;
    const { pollMs } = this.#options;
    while (!signal.aborted) {
      const taken = await this.#take().catch((error: unknown) => {
        this.#logger.warn({ err: error }, "the queue of Git deliveries cannot be read");
        return 0;
      });
      if (taken > 0) {
        continue;
      }
      const pause = sleep(pollMs, undefined, { signal }).catch(() => undefined);
      // The next of a connection may be leased as soon as the one before has ended.
      await Promise.race([pause, ...this.#underWay]);
    }
  }

  async #take(): Promise<number> {
    const { maxConcurrent, perOrganization, leaseMs } = this.#options;
    const most = maxConcurrent - this.#underWay.size;
    if (most <= 0) {
      return 0;
    }
    const leased = await this.#queue.lease({ most, perOrganization, leaseMs });
    for (const one of leased) {
      const done = this.#attempt(one).finally(() => this.#underWay.delete(done));
      this.#underWay.add(done);
    }
    return leased.length;
  }

  /** Never rejects: a delivery whose outcome cannot be recorded is processed again once its lease has expired. */
  async #attempt(leased: LeasedDelivery): Promise<void> {
    const { organizationId, connectionId: connection, deliveryId: delivery, attempts } = leased;
    const { tries, retryMs } = this.#options;
    const about = { organizationId, connection, delivery, attempts };
    try {
      if (attempts > tries) {
        // No attempt has ended: each crashed its process.
        this.#logger.warn(about, "a Git delivery is dropped: no attempt at it has ended");
        return await this.#queue.drop(leased);
      }
      try {
        await this.#work(leased, JSON.parse(leased.event) as GitEvent);
      } catch (error) {
        if (attempts >= tries) {
          this.#logger.warn({ ...about, err: error }, "a Git delivery is dropped");
          return await this.#queue.drop(leased);
        }
        this.#logger.info({ ...about, err: error }, "a Git delivery is tried again");
        const pauseMs = Math.min(retryMs * 2 ** (attempts - 1), LONGEST_PAUSE_MS);
        return await this.#queue.postpone(leased, pauseMs);
      }
      await this.#queue.finish(leased);
    } catch (error) {
      this.#logger.warn({ ...about, err: error }, "the result of a Git delivery cannot be recorded");
    }
  }
}
