import { type Check, type Clock, type Logger, type Random, sleep, systemClock } from "@slipway/process";
import { Registry } from "prom-client";
import type { Store } from "../cache/store.ts";
import { KubeClient } from "../client/client.ts";
import { createKubeMetrics } from "../client/metrics.ts";
import { traceRequests } from "../client/traced-requests.ts";
import type { KubernetesObject, Resource } from "../client/types.ts";
import { Controller, type ControllerOptions } from "../controller/controller.ts";
import type { ControllerTracing } from "../controller/traced-changes.ts";
import { ApiEventRecorder, type EventRecorder } from "../status/events.ts";
import { ClockGuard } from "./clock-guard.ts";
import { LeaderElector } from "./leader-elector.ts";
import { haveEndedWithin, leadWhileHeld, untilAborted } from "./leadership.ts";
import { ManagedStores } from "./managed-stores.ts";
import { OpsEndpoints } from "./ops-endpoints.ts";
import type { ManagerOptions, Runnable, StoreRequest } from "./options.ts";
import { Runnables } from "./runnables.ts";
import { createRuntimeMetrics, DEFAULT_TELEMETRY_PREFIX, type RuntimeMetrics } from "./runtime-metrics.ts";
import { ONLY_SHARD, ShardMembership } from "./shards.ts";

/** Wires one controller process: stores, leader election, controllers, events, metrics and health. */
export class Manager {
  readonly client: KubeClient;
  readonly recorder: EventRecorder;
  readonly registry: Registry;
  readonly metrics: RuntimeMetrics;
  readonly clock: Clock;
  /** For what acts on the time of day: `now` throws while the clock is not trusted. */
  readonly trustedClock: Clock;
  readonly random: Random;
  readonly log: Logger;
  readonly #options: ManagerOptions;
  readonly #apiRecorder: ApiEventRecorder;
  readonly #stores: ManagedStores;
  readonly #controllers: Controller[] = [];
  readonly #runnables: Runnables;
  readonly #startupChecks: Runnable["run"][] = [];
  #isStarted = false;
  readonly #ops = new OpsEndpoints();
  readonly #clockGuard: ClockGuard;
  readonly #shard: ShardMembership;
  #elector: LeaderElector | undefined;
  #running = false;
  #leads = false;
  /** The port that is served, once `run` listens. */
  port: number | undefined;

  constructor(options: ManagerOptions) {
    this.#options = options;
    this.clock = options.clock ?? systemClock;
    this.random = options.random ?? Math.random;
    this.log = options.log;
    this.#shard = new ShardMembership(options.leaderElection?.shard ?? ONLY_SHARD);
    this.#runnables = new Runnables(options.log, this.#shard.isFirst);
    this.registry = options.registry ?? new Registry();
    const { tracing, telemetryPrefix = DEFAULT_TELEMETRY_PREFIX } = options;
    this.metrics = createRuntimeMetrics(this.registry, telemetryPrefix);
    const kubeMetrics = createKubeMetrics(this.registry);
    const clientOptions = {
      onRequest: traceRequests(tracing, kubeMetrics.onRequest, { telemetryPrefix, writesOnly: true }),
      clock: this.clock,
      userAgent: options.name,
    };
    this.client =
      "url" in options.cluster
        ? KubeClient.forUrl(options.cluster.url, clientOptions)
        : KubeClient.fromConfig(options.cluster, clientOptions);
    this.#stores = new ManagedStores({
      client: this.client,
      clock: this.clock,
      random: this.random,
      log: this.log,
      metrics: this.metrics,
      reflectorMetrics: kubeMetrics.reflector,
    });
    this.#apiRecorder = new ApiEventRecorder({
      client: this.client,
      clock: this.clock,
      random: this.random,
      log: options.log,
      metrics: this.metrics,
      reportingController: options.name,
      reportingInstance: options.identity,
    });
    this.recorder = this.#apiRecorder;
    this.#clockGuard = new ClockGuard({
      clock: this.clock,
      log: options.log,
      references: options.clockReferences?.(this.client) ?? [],
      limitMs: options.clockSkewLimitMs ?? 30_000,
    });
    this.trustedClock = this.#clockGuard.clock;
    if (options.clockReferences) {
      this.#clockGuard.register(this.registry, telemetryPrefix);
      this.#ops.ready.set("clock", () => this.#clockGuard.trusted);
    }
    this.#ops.ready.set("stores", () => this.#stores.haveSynced);
  }

  /** Whether this process leads, or needs no election. */
  get isLeader(): boolean {
    return this.#options.leaderElection === undefined || this.#elector?.isLeader === true;
  }

  /** Whether this process reconciles what is in a namespace; undefined stands for what is in none. */
  owns(namespace: string | undefined): boolean {
    return this.#shard.owns(namespace);
  }

  /** A store of a resource, kept by a reflector that starts with `run`. */
  store<T extends KubernetesObject>(resource: Resource, request: StoreRequest<T> = {}): Store<T> {
    this.#mustNotRun();
    return this.#stores.add(resource, request);
  }

  /** Adds a controller; it runs while this process leads. */
  addController(options: ControllerOptions): Controller {
    this.#mustNotRun();
    const controller = new Controller(options, {
      clock: this.clock,
      random: this.random,
      log: this.log,
      metrics: this.metrics,
      owns: (namespace) => this.owns(namespace),
      mayAct: () => this.isLeader && this.#clockGuard.trusted,
      tracing: this.#controllerTracing(),
    });
    this.#controllers.push(controller);
    return controller;
  }

  addRunnable(runnable: Runnable): void {
    this.#mustNotRun();
    this.#runnables.add(runnable);
  }

  /**
   * Adds what has to succeed before this process leads. Until then it is alive and not ready. It returns when the signal aborts;
   * throwing ends the process.
   */
  addStartupCheck(name: string, run: (signal: AbortSignal) => Promise<void>): void {
    this.#mustNotRun();
    this.#ops.ready.set("startup", () => this.#isStarted);
    this.#startupChecks.push(async (signal) => {
      await run(signal);
      this.log.debug({ check: name }, "startup check passed");
    });
  }

  /** Adds to `/readyz`. */
  addReadyCheck(name: string, check: Check): void {
    this.#ops.ready.set(name, check);
  }

  /** Adds to `/healthz`. */
  addHealthCheck(name: string, check: Check): void {
    this.#ops.health.set(name, check);
  }

  /**
   * Runs until the signal aborts, then stops in order: controllers, lease, reflectors, server. Standbys keep their
   * stores filled, so that a failover is quick. @throws Error when the port is taken or a runnable failed
   */
  async run(signal: AbortSignal): Promise<void> {
    this.#mustNotRun();
    this.#running = true;
    const { port, host } = this.#options;
    const server = await this.#ops.serve({ registry: this.registry, port, host });
    this.port = server?.port;
    const background = new AbortController();
    const stop = new AbortController();
    const stopLeading = () => stop.abort();
    signal.addEventListener("abort", stopLeading, { once: true });
    if (signal.aborted) {
      stopLeading();
    }
    let failure: { error: unknown } | undefined;
    const fail = (error: unknown) => {
      failure ??= { error };
      stopLeading();
    };
    const running = [
      this.#watchClock(background.signal, fail),
      ...this.#stores.run(background.signal),
      this.#apiRecorder.run(background.signal),
      ...this.#runnables.start("all", background.signal, fail),
    ];
    try {
      for (const check of this.#startupChecks) {
        await check(stop.signal);
      }
      this.#isStarted = true;
      await this.#syncAndLead(stop.signal, fail);
    } finally {
      signal.removeEventListener("abort", stopLeading);
      background.abort();
      await Promise.allSettled(running);
      await server?.close();
      await this.client.close();
    }
    if (failure) {
      throw failure.error;
    }
  }

  async #syncAndLead(signal: AbortSignal, fail: (error: unknown) => void): Promise<void> {
    while (!signal.aborted && !this.#stores.haveSynced) {
      await sleep(this.clock, 50, signal);
    }
    if (signal.aborted) {
      return;
    }
    this.log.info({ stores: this.#stores.count }, "stores are filled");
    if (!(await this.#clockGuard.untilTrusted(signal))) {
      return;
    }
    const election = this.#options.leaderElection;
    if (!election) {
      await this.#lead(signal, fail);
      return;
    }
    const { clock, random, log, client, metrics } = this;
    const { identity, exit = process.exit } = this.#options;
    const elector = new LeaderElector({ client, clock, random, log, identity, ...election });
    this.#elector = elector;
    const work = () => this.#lead(signal, fail);
    await leadWhileHeld({ elector, log, metrics, exit, work }, signal);
  }

  /** A leader whose clock is wrong ends, so that another leads; one that does not lead waits for its clock to be set. */
  async #watchClock(signal: AbortSignal, fail: (error: unknown) => void): Promise<void> {
    let reported = false;
    await this.#clockGuard.run(signal, () => {
      const what = this.#clockGuard.describe();
      if (this.#leads) {
        fail(new Error(what));
      } else if (!reported) {
        this.log.error({ limitMs: this.#options.clockSkewLimitMs }, `${what}; not leading`);
      }
      reported = true;
    });
  }

  /** Runs the controllers until the signal aborts, and then for the grace period at most; true when all have ended. */
  async #lead(signal: AbortSignal, fail: (error: unknown) => void): Promise<boolean> {
    this.#leads = true;
    const running = [
      ...this.#controllers.map((controller) => controller.run(signal)),
      ...this.#runnables.start("leader", signal, fail),
    ];
    await untilAborted(signal);
    return haveEndedWithin(running, this.#options.gracePeriodMs ?? 20_000, this.clock);
  }

  #controllerTracing(): ControllerTracing | undefined {
    const { tracing, traceparentAnnotation, telemetryPrefix = DEFAULT_TELEMETRY_PREFIX } = this.#options;
    return tracing && traceparentAnnotation ? { tracing, traceparentAnnotation, telemetryPrefix } : undefined;
  }

  /** What is added later would never start, silently. */
  #mustNotRun(): void {
    if (this.#running) {
      throw new Error("the manager runs already");
    }
  }
}
