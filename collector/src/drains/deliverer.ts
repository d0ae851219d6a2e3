import {
  type Store as AnalyticsStore,
  drainHorizon,
  drainPage,
  nextStored,
  organizationsWithLines,
  skippedLines,
} from "@slipway/analytics";
import type { LogDrain } from "@slipway/crds";
import { type Clock, ConcurrencyLimiter, sleep, systemClock } from "@slipway/process";
import type { Log } from "../sender.ts";
import { BOUNDS, type DrainBounds } from "./bounds.ts";
import type { Drain } from "./drain.ts";
import { DrainSet } from "./drain-set.ts";
import type { LineSource } from "./line-source.ts";
import type { DrainMetrics } from "./metrics.ts";
import { observe } from "./observe.ts";
import { OpenReceivers } from "./open-receivers.ts";
import { Positions } from "./positions.ts";
import { DeliveryError, type Receiver } from "./receiver.ts";
import { StoreClock } from "./store-clock.ts";

/** Milliseconds between rounds. */
const ROUND_MS = 1_000;
/** Milliseconds in which turns end after the last round. */
const LAST_TURNS_MS = 5_000;

export interface DelivererOptions {
  store: AnalyticsStore;
  /** Creates or migrates the tables; called until it succeeds. */
  prepare: () => Promise<void>;
  /** The drains that are there now. */
  drains: () => readonly LogDrain[];
  /** @throws DeliveryError for what the drain is configured with */
  open: (drain: LogDrain) => Promise<Receiver>;
  /** A project's name; its id where it is deleted. */
  nameOf: (organization: string, project: string) => string;
  /** Reports what a drain's status should say. Never rejects. */
  report: (drain: Drain, lagMs: number) => void;
  metrics: DrainMetrics;
  log: Log;
  bounds?: DrainBounds;
  clock?: Clock;
}

/**
 * Delivers lines of all drains, in rounds: it reads up to where the store has everything, starts turns of the drains that are behind, and saves
 * the positions that others reached meanwhile. What is not saved when it is killed is sent again.
 */
export class Deliverer {
  readonly #options: DelivererOptions;
  readonly #clock: Clock;
  readonly #storeClock = new StoreClock();
  readonly #positions: Positions;
  readonly #receivers: OpenReceivers;
  readonly #drains: DrainSet;
  readonly #turns = new Set<Promise<void>>();
  /** Turns of drains whose receivers take lines, and of those whose last attempt failed or took long: these wait for each other alone. */
  readonly #healthy = new ConcurrencyLimiter({ total: 48, perKey: 2 });
  readonly #failing = new ConcurrencyLimiter({ total: 16, perKey: 1 });
  /** Queries of the store, so that drains keep others from none. */
  readonly #queries = new ConcurrencyLimiter({ total: 4, perKey: 1 });

  constructor(options: DelivererOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#positions = new Positions(options.store, () => this.#wallMs());
    this.#drains = new DrainSet(options.bounds ?? BOUNDS);
    this.#receivers = new OpenReceivers(options.open, () => this.#clock.monotonic());
  }

  /** Delivers until the signal aborts; turns that are under way are cut off then. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    const { log, metrics } = this.#options;
    let failures = 0;
    let isPrepared = false;
    while (!signal.aborted) {
      try {
        if (!isPrepared) {
          await this.#options.prepare();
          isPrepared = true;
        }
        await this.round(signal);
        failures = 0;
      } catch (error) {
        failures += 1;
        metrics.failures.inc({ step: "read" });
        if (failures === 1 || failures % 60 === 0) {
          log.warn({ err: error, failures }, "the store cannot be read for log drains");
        }
      }
      await sleep(this.#clock, ROUND_MS, signal);
    }
    // Each ends by the signal; another process must not wait for one that does not.
    await Promise.race([Promise.all(this.#turns), sleep(this.#clock, LAST_TURNS_MS)]);
    await this.#positions.save(this.#drains.all).catch(() => {});
    this.#receivers.closeAll();
  }

  #wallMs(): number {
    return this.#clock.now().getTime();
  }

  /** One round; turns that it starts continue behind it. @throws StoreUnavailable */
  async round(signal: AbortSignal): Promise<void> {
    const { store } = this.#options;
    const { added, removed } = this.#drains.compare(this.#options.drains());
    for (const drain of removed) {
      drain.end();
      this.#receivers.close(drain.uid);
    }
    this.#drains.take(added, await this.#positions.read(added.map(({ uid }) => uid)));
    if (this.#drains.size === 0) {
      this.#observe(0);
      return;
    }
    const asked = this.#clock.monotonic();
    const { now, horizon } = await drainHorizon(store);
    this.#drains.rewind(now, horizon, this.#storeClock.setBackWithin(now, asked, this.#clock.monotonic()));
    await this.#passIdle(horizon);
    for (const drain of this.#drains.all) {
      const hasWork = drain.isBehind(horizon) && drain.storedAt < horizon;
      if ((hasWork || drain.readiness !== "configured") && drain.isDue(this.#clock.monotonic())) {
        this.#start(drain, horizon, signal);
      }
    }
    await this.#positions.save(this.#drains.all);
    this.#observe(horizon);
  }

  #observe(horizon: number): void {
    const { metrics, report } = this.#options;
    metrics.round.set({}, this.#wallMs() / 1000);
    observe(this.#drains.all, { horizon, now: this.#clock.monotonic() }, metrics, report);
  }

  /** Drains that had nothing to send, and have nothing now: one query for all of them. */
  async #passIdle(horizon: number): Promise<void> {
    const idle = [...this.#drains.all].filter(
      (drain) => !drain.isBusy && drain.caughtUpTo > 0 && drain.isBehind(horizon),
    );
    // One that was caught up, and is behind since, is at the moment at which it was.
    const caughtUp = idle.filter(
      (drain) => drain.storedAt === drain.caughtUpTo && drain.position.length === 1,
    );
    if (caughtUp.length === 0) {
      return;
    }
    const since = caughtUp.reduce((least, drain) => Math.min(least, drain.caughtUpTo), horizon);
    const organizations = [...new Set(caughtUp.map(({ organization }) => organization))];
    const withLines = await organizationsWithLines(this.#options.store, organizations, [since, horizon]);
    for (const drain of caughtUp) {
      if (!drain.isBusy && !withLines.has(drain.organization)) {
        drain.passIdle(horizon);
      }
    }
  }

  #start(drain: Drain, horizon: number, signal: AbortSignal): void {
    drain.queue(this.#clock.monotonic());
    const until = AbortSignal.any([signal, drain.signal]);
    const turn = (drain.waitsApart ? this.#failing : this.#healthy)
      .run(drain.organization, () => this.#turn(drain, horizon, until))
      .catch((error: unknown) => {
        if (!until.aborted) {
          drain.backOff(this.#clock.monotonic());
          this.#options.metrics.failures.inc({ step: "read" });
          this.#options.log.warn({ err: error }, "a turn of a log drain failed");
        }
      })
      .finally(() => {
        drain.isBusy = false;
        this.#turns.delete(turn);
      });
    this.#turns.add(turn);
  }

  async #turn(drain: Drain, horizon: number, signal: AbortSignal): Promise<void> {
    const { metrics, nameOf } = this.#options;
    drain.begin();
    if (signal.aborted) {
      return;
    }
    if (!(await this.#isConfigured(drain)) || drain.storedAt >= horizon) {
      return;
    }
    const { delivered, refused, skipped, failure } = await drain.deliver(
      {
        source: this.#sourceOf(drain),
        receiver: () => this.#receivers.of(drain),
        horizon,
        nameOf: (project) => nameOf(drain.organization, project),
        now: () => this.#clock.monotonic(),
      },
      signal,
    );
    metrics.lines.inc({ result: "delivered" }, delivered);
    metrics.lines.inc({ result: "refused" }, refused);
    metrics.lines.inc({ result: "skipped" }, skipped);
    if (failure !== undefined || delivered + refused > 0) {
      metrics.deliveries.inc({ result: failure?.reason ?? "Delivered" });
    }
    if (failure !== undefined) {
      this.#receivers.close(drain.uid);
    }
  }

  async #isConfigured(drain: Drain): Promise<boolean> {
    try {
      await this.#receivers.of(drain);
      return true;
    } catch (error) {
      if (!(error instanceof DeliveryError)) {
        throw error;
      }
      drain.fail(error, this.#clock.monotonic());
      return false;
    }
  }

  #sourceOf({ organization, resource }: Drain): LineSource {
    const { store } = this.#options;
    const project = resource.spec.projectRef?.name;
    const selection = { organization, ...(project === undefined ? {} : { project }) };
    const query = <T>(work: () => Promise<T>) => this.#queries.run(organization, work);
    return {
      page: (after, to, most, signal) =>
        query(() => drainPage(store, { ...selection, ...most, after, to }, signal)),
      next: (after, to) => query(() => nextStored(store, { ...selection, after, to })),
      count: (after, to) => query(() => skippedLines(store, { ...selection, after, to })),
    };
  }
}
