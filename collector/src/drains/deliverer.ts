import {
  type Store as AnalyticsStore,
  drainHorizon,
  drainPage,
  nextStored,
  organizationsWithLines,
  type SavedPosition,
  savedPositions,
  savePositions,
  skippedLines,
} from "@slipway/analytics";
import { type LogDrain, organizationOfNamespace } from "@slipway/crds";
import { ConcurrencyLimiter, sleep, systemClock } from "@slipway/process";
import type { Log } from "../sender.ts";
import { BOUNDS, Drain, type DrainBounds, type LineSource } from "./drain.ts";
import type { DrainMetrics, State } from "./metrics.ts";
import { DeliveryError, type Receiver } from "./receiver.ts";

/** Milliseconds between rounds. */
const ROUND_MS = 1_000;
/** Milliseconds by which a clock that was set back is passed again. */
const REWIND_MS = 5_000;
/** Milliseconds after which a receiver is opened again, with the Secret as it is then. */
const RECEIVER_MS = 60_000;

export interface DelivererOptions {
  store: AnalyticsStore;
  /** Creates or migrates the tables; called until it succeeds. */
  prepare: () => Promise<void>;
  /** The drains that are there now. */
  drains: () => readonly LogDrain[];
  /** @throws DeliveryError SecretNotFound, SecretInvalid */
  open: (drain: LogDrain) => Promise<Receiver>;
  /** A project's name; its id where it is deleted. */
  nameOf: (organization: string, project: string) => string;
  /** Reports what a drain's status should say. Never rejects. */
  report: (drain: Drain, lagMs: number) => void;
  metrics: DrainMetrics;
  log: Log;
  bounds?: DrainBounds;
  now?: () => number;
}

/**
 * Delivers lines of all drains, in rounds: it reads up to where the store has everything, starts turns of the drains that are behind, and saves
 * the positions that others reached meanwhile. What is not saved when it is killed is sent again.
 */
export class Deliverer {
  readonly #options: DelivererOptions;
  readonly #bounds: DrainBounds;
  readonly #now: () => number;
  readonly #drains = new Map<string, Drain>();
  readonly #receivers = new Map<
    string,
    { receiver: Receiver; generation: number | undefined; openedAt: number }
  >();
  readonly #turns = new Set<Promise<void>>();
  /** Turns of drains whose receivers take lines, and of those whose last attempt failed or took long: these wait for each other alone. */
  readonly #healthy = new ConcurrencyLimiter({ total: 48, perKey: 2 });
  readonly #failing = new ConcurrencyLimiter({ total: 16, perKey: 1 });
  /** Queries of the store, so that drains keep others from none. */
  readonly #queries = new ConcurrencyLimiter({ total: 4, perKey: 1 });
  #lastNow = 0;
  #version = 0;

  constructor(options: DelivererOptions) {
    this.#options = options;
    this.#bounds = options.bounds ?? BOUNDS;
    this.#now = options.now ?? Date.now;
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
      await sleep(systemClock, ROUND_MS, signal);
    }
    await Promise.all(this.#turns);
    await this.#save().catch(() => {});
    for (const { receiver } of this.#receivers.values()) {
      receiver.close();
    }
  }

  /** One round; turns that it starts continue behind it. @throws StoreUnavailable */
  async round(signal: AbortSignal): Promise<void> {
    const { store, metrics } = this.#options;
    await this.#reload();
    if (this.#drains.size === 0) {
      metrics.round.set({}, this.#now() / 1000);
      this.#observe(0);
      return;
    }
    const { now, horizon } = await drainHorizon(store);
    this.#checkClock(now, horizon);
    await this.#passIdle(horizon);
    for (const drain of this.#drains.values()) {
      const hasWork = drain.isBehind(horizon) && drain.storedAt < horizon;
      if ((hasWork || drain.readiness !== "configured") && drain.isDue(this.#now())) {
        this.#start(drain, horizon, signal);
      }
    }
    await this.#save();
    metrics.round.set({}, this.#now() / 1000);
    this.#observe(horizon);
  }

  /** Takes over drains that are new, changed or gone. */
  async #reload(): Promise<void> {
    const { drains, store } = this.#options;
    const alive = drains().flatMap((resource) => {
      const organization = organizationOfNamespace(resource.metadata.namespace ?? "");
      const { deletionTimestamp, uid } = resource.metadata;
      return organization === undefined || deletionTimestamp !== undefined || uid === undefined
        ? []
        : [{ resource, organization, uid }];
    });
    const uids = new Set(alive.map(({ uid }) => uid));
    for (const uid of [...this.#drains.keys()].filter((one) => !uids.has(one))) {
      this.#drains.delete(uid);
      this.#closeReceiver(uid);
    }
    const added = alive.filter(({ uid }) => !this.#drains.has(uid));
    const saved = new Map<string, SavedPosition>();
    // A query takes no statement of any length.
    for (let start = 0; start < added.length; start += 500) {
      const some = added.slice(start, start + 500).map(({ uid }) => uid);
      for (const one of await savedPositions(store, some)) {
        saved.set(one.drain, one);
      }
    }
    for (const { resource, organization, uid } of alive) {
      const known = this.#drains.get(uid);
      if (known === undefined) {
        this.#drains.set(uid, new Drain(resource, organization, saved.get(uid), this.#bounds));
        continue;
      }
      if (known.resource.metadata.generation !== resource.metadata.generation) {
        known.retryNow();
        known.readiness = undefined;
      }
      known.resource = resource;
    }
  }

  #checkClock(now: number, horizon: number): void {
    const isBack = now < this.#lastNow - 100;
    for (const drain of this.#drains.values()) {
      if (drain.isNew) {
        drain.rewind(now);
      } else if (isBack || drain.storedAt > horizon) {
        drain.rewind(Math.min(now, horizon) - REWIND_MS);
      }
    }
    this.#lastNow = now;
  }

  /** Drains that had nothing to send, and have nothing now: one query for all of them. */
  async #passIdle(horizon: number): Promise<void> {
    const idle = [...this.#drains.values()].filter(
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
    drain.isBusy = true;
    const isFailing = drain.outcome instanceof DeliveryError || drain.readiness instanceof DeliveryError;
    const turn = (isFailing || drain.isSlow ? this.#failing : this.#healthy)
      .run(drain.organization, () => this.#turn(drain, horizon, signal))
      .catch((error: unknown) => {
        if (!signal.aborted) {
          this.#options.metrics.failures.inc({ step: "read" });
          this.#options.log.warn({ err: error }, "lines cannot be read for a log drain");
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
    if (!(await this.#isConfigured(drain)) || drain.storedAt >= horizon) {
      return;
    }
    const { delivered, refused, skipped, failure } = await drain.deliver(
      {
        source: this.#sourceOf(drain),
        receiver: () => this.#receiverOf(drain),
        horizon,
        nameOf: (project) => nameOf(drain.organization, project),
        now: this.#now,
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
      this.#closeReceiver(drain.uid);
    }
  }

  async #isConfigured(drain: Drain): Promise<boolean> {
    try {
      await this.#receiverOf(drain);
      return true;
    } catch (error) {
      if (!(error instanceof DeliveryError)) {
        throw error;
      }
      drain.fail(error, this.#now());
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

  async #receiverOf(drain: Drain): Promise<Receiver> {
    const { generation } = drain.resource.metadata;
    const open = this.#receivers.get(drain.uid);
    if (open && open.generation === generation && this.#now() - open.openedAt < RECEIVER_MS) {
      return open.receiver;
    }
    this.#closeReceiver(drain.uid);
    const receiver = await this.#options.open(drain.resource);
    drain.readiness = "configured";
    this.#receivers.set(drain.uid, { receiver, generation, openedAt: this.#now() });
    return receiver;
  }

  #closeReceiver(uid: string): void {
    this.#receivers.get(uid)?.receiver.close();
    this.#receivers.delete(uid);
  }

  /** Saves the positions of drains that have sent something: all in one insert. @throws StoreUnavailable */
  async #save(): Promise<void> {
    const dirty = [...this.#drains.values()].filter(({ isDirty }) => isDirty);
    if (dirty.length === 0) {
      return;
    }
    const positions = dirty.map(({ uid, position, refused, skipped }) => ({
      drain: uid,
      position,
      refused,
      skipped,
    }));
    for (const drain of dirty) {
      drain.isDirty = false;
    }
    try {
      this.#version = Math.max(this.#version + 1, this.#now());
      await savePositions(this.#options.store, positions, this.#version);
    } catch (error) {
      for (const drain of dirty) {
        drain.isDirty = true;
      }
      throw error;
    }
  }

  /** Metrics, and what statuses should say. */
  #observe(horizon: number): void {
    const { metrics, report } = this.#options;
    const counts: Record<State, number> = { delivering: 0, failing: 0, idle: 0, misconfigured: 0 };
    const lags: Record<State, number> = { delivering: 0, failing: 0, idle: 0, misconfigured: 0 };
    for (const drain of this.#drains.values()) {
      const state = stateOf(drain);
      const lagMs = drain.lagMs(horizon);
      counts[state] += 1;
      lags[state] = Math.max(lags[state], lagMs);
      report(drain, lagMs);
    }
    for (const [state, count] of Object.entries(counts)) {
      metrics.drains.set({ state }, count);
      metrics.lag.set({ state }, lags[state as State] / 1000);
    }
  }
}

function stateOf({ outcome, readiness }: Drain): State {
  if (readiness instanceof DeliveryError) {
    return "misconfigured";
  }
  if (outcome === undefined) {
    return "idle";
  }
  return outcome instanceof DeliveryError ? "failing" : "delivering";
}
