import { setTimeout as sleep } from "node:timers/promises";
import type { GitEvent } from "@slipway/git";
import {
  dropGitDelivery,
  finishGitDelivery,
  type GitDelivery,
  type HeldDelivery,
  holdGitDeliveries,
  type Ledger,
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
  hold(bounds: { most: number; perOrganization: number; holdMs: number }): Promise<HeldDelivery[]>;
  /** Records that it was processed; a repeat is a duplicate from then on. */
  finish(held: HeldDelivery): Promise<void>;
  /** Drops it; the server may send it again. */
  drop(held: HeldDelivery): Promise<void>;
  postpone(held: HeldDelivery, afterMs: number): Promise<void>;
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
    hold: (bounds) => withLedgerErrors(() => holdGitDeliveries(ledger, bounds)),
    finish: (held) => withLedgerErrors(() => finishGitDelivery(ledger, held)),
    drop: (held) => withLedgerErrors(() => dropGitDelivery(ledger, held)),
    postpone: (held, afterMs) => withLedgerErrors(() => postponeGitDelivery(ledger, held, afterMs)),
  };
}

export interface DeliveryWorkerOptions {
  /** Deliveries that one replica works at, and those of one organization that all replicas work at. */
  maxConcurrent: number;
  perOrganization: number;
  /** How often the queue is polled while nothing is due. */
  pollMs: number;
  /** How long a delivery is leased: then another replica processes it. */
  holdMs: number;
  /** Attempts at a delivery until it is dropped, and the pause after the first; each is twice as long as the one before. */
  tries: number;
  retryMs: number;
}

const OPTIONS: DeliveryWorkerOptions = {
  maxConcurrent: 16,
  perOrganization: 4,
  pollMs: 500,
  holdMs: 120_000,
  tries: 10,
  retryMs: 2_000,
};
/** The longest pause between two tries. */
const LONGEST_PAUSE_MS = 600_000;

/** Works off the deliveries of hooks; every replica has one. */
export class DeliveryWorker {
  readonly #queue: DeliveryQueue;
  readonly #work: (delivery: HeldDelivery, event: GitEvent) => Promise<void>;
  readonly #logger: Logger;
  readonly #options: DeliveryWorkerOptions;
  readonly #stop = new AbortController();
  readonly #underWay = new Set<Promise<void>>();
  #loop: Promise<void> | undefined;

  /** @param work starts what the event starts; it may come twice, when a replica is killed in the middle */
  constructor(
    queue: DeliveryQueue,
    work: (delivery: HeldDelivery, event: GitEvent) => Promise<void>,
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
    const { maxConcurrent, perOrganization, holdMs } = this.#options;
    const most = maxConcurrent - this.#underWay.size;
    if (most <= 0) {
      return 0;
    }
    const held = await this.#queue.hold({ most, perOrganization, holdMs });
    for (const one of held) {
      const done = this.#attempt(one).finally(() => this.#underWay.delete(done));
      this.#underWay.add(done);
    }
    return held.length;
  }

  /** Never rejects: a delivery whose outcome cannot be recorded is processed again once its lease has expired. */
  async #attempt(held: HeldDelivery): Promise<void> {
    const { organizationId, connectionId: connection, deliveryId: delivery, attempts } = held;
    const { tries, retryMs } = this.#options;
    const about = { organizationId, connection, delivery, attempts };
    try {
      if (attempts > tries) {
        // No attempt has ended: each crashed its process.
        this.#logger.warn(about, "a Git delivery is dropped: no attempt at it has ended");
        return await this.#queue.drop(held);
      }
      try {
        await this.#work(held, JSON.parse(held.event) as GitEvent);
      } catch (error) {
        if (attempts >= tries) {
          this.#logger.warn({ ...about, err: error }, "a Git delivery is dropped");
          return await this.#queue.drop(held);
        }
        this.#logger.info({ ...about, err: error }, "a Git delivery is tried again");
        const pauseMs = Math.min(retryMs * 2 ** (attempts - 1), LONGEST_PAUSE_MS);
        return await this.#queue.postpone(held, pauseMs);
      }
      await this.#queue.finish(held);
    } catch (error) {
      this.#logger.warn({ ...about, err: error }, "what became of a Git delivery cannot be noted");
    }
  }
}
