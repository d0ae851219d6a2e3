import type { KubeConfig } from "@kubernetes/client-node";
import {
  type Check,
  type Clock,
  type Logger,
  type Random,
  sleep,
  startOpsServer,
  systemClock,
} from "@slipway/process";
import type { Tracing } from "@slipway/process/tracing";
import { Registry } from "prom-client";
import type { Indexer } from "../cache/index-table.ts";
import { NamespaceReflectors, namesOf, type WatchedNamespaces } from "../cache/namespace-reflectors.ts";
import { Reflector, type ReflectorEvents, type ReflectorOptions } from "../cache/reflector.ts";
import { Store } from "../cache/store.ts";
import { KubeClient } from "../client/client.ts";
import { createKubeMetrics, type KubeMetrics } from "../client/metrics.ts";
import { traceRequests } from "../client/traced-requests.ts";
import type { KubernetesObject, Resource } from "../client/types.ts";
import { Controller, type ControllerOptions } from "../controller/controller.ts";
import type { ControllerTracing } from "../controller/traced-changes.ts";
import { ApiEventRecorder, type EventRecorder } from "../status/events.ts";
import { ClockGuard, type ClockReference } from "./clock-guard.ts";
import { LeaderElector } from "./leader-elector.ts";
import { leadWhileHeld, untilAborted } from "./leadership.ts";
import { createRuntimeMetrics, DEFAULT_TELEMETRY_PREFIX, type RuntimeMetrics } from "./runtime-metrics.ts";

export interface ManagerOptions {
  /** Where the cluster is; or a client made elsewhere. */
  cluster: KubeConfig | { url: string };
  log: Logger;
  /** Traces of reconciles that act on what was traced before, and of their writes; none without it. */
  tracing?: Tracing;
  /** Annotation with the `traceparent` of what last wrote an object, such as `example.com/traceparent`. */
  traceparentAnnotation?: string;
  /** Such as `example.com/website-operator`: the reporting controller of events, and the user agent. */
  name: string;
  /** What metrics and span attributes begin with that are not of controller-runtime: `controller_runtime` unless given. */
  telemetryPrefix?: string;
  /** Unique name of this process: the pod's. */
  identity: string;
  /** Without it, this process acts alone. */
  leaderElection?: {
    namespace: string;
    name: string;
    leaseDurationMs?: number;
    renewDeadlineMs?: number;
    retryPeriodMs?: number;
  };
  /** Port of `/metrics`, `/healthz`, `/readyz`; 0 picks one, absent serves none. */
  port?: number;
  host?: string;
  /** How long reconciles under way may take to end on stop: 20,000. */
  gracePeriodMs?: number;
  registry?: Registry;
  clock?: Clock;
  /** Clocks that this process's must agree with for it to lead; it trusts its own without them. */
  clockReferences?: (client: KubeClient) => readonly ClockReference[];
  /** From which difference on it does not lead, in milliseconds: 30,000. */
  clockSkewLimitMs?: number;
  random?: Random;
  /** Ends the process when the lease is lost; `process.exit` unless given. */
  exit?: (code: number) => void;
}

export interface StoreRequest<T extends KubernetesObject> {
  namespace?: string;
  /** Reads in these alone, in each for itself: for what the process may not read in all namespaces. */
  namespaces?: WatchedNamespaces;
  labelSelector?: string;
  fieldSelector?: string;
  /** Nothing but `metadata` is read, for objects whose content is large or secret. */
  metadataOnly?: boolean;
  indexers?: Record<string, Indexer<T>>;
  transform?: (object: T) => T;
}

/** Fills a store, from one watch or several. */
interface StoreKeeper {
  readonly store: { readonly hasSynced: boolean };
  run(signal: AbortSignal): Promise<void>;
}

/** Something else that runs as long as the process, or as long as it leads. */
export interface Runnable {
  name: string;
  /** Only on the leader; true unless given. */
  leaderOnly?: boolean;
  /** Returns when the signal aborts. Throwing ends the process: what must continue catches its own errors. */
  run(signal: AbortSignal): Promise<void>;
}

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
  readonly #kubeMetrics: KubeMetrics;
  readonly #apiRecorder: ApiEventRecorder;
  readonly #reflectors: StoreKeeper[] = [];
  readonly #controllers: Controller[] = [];
  readonly #runnables: Runnable[] = [];
  readonly #startupChecks: Runnable["run"][] = [];
  #isStarted = false;
  readonly #health = new Map<string, Check>([["ping", () => true]]);
  readonly #ready = new Map<string, Check>();
  readonly #clockGuard: ClockGuard;
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
    this.registry = options.registry ?? new Registry();
    const { tracing, telemetryPrefix = DEFAULT_TELEMETRY_PREFIX } = options;
    this.metrics = createRuntimeMetrics(this.registry, telemetryPrefix);
    this.#kubeMetrics = createKubeMetrics(this.registry);
    const clientOptions = {
      onRequest: traceRequests(tracing, this.#kubeMetrics.onRequest, { telemetryPrefix, writesOnly: true }),
      clock: this.clock,
      userAgent: options.name,
    };
    this.client =
      "url" in options.cluster
        ? KubeClient.forUrl(options.cluster.url, clientOptions)
        : KubeClient.fromConfig(options.cluster, clientOptions);
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
      this.#ready.set("clock", () => this.#clockGuard.trusted);
    }
    this.#ready.set("stores", () => this.#reflectors.every((reflector) => reflector.store.hasSynced));
  }

  /** Whether this process leads, or needs no election. */
  get isLeader(): boolean {
    return this.#options.leaderElection === undefined || this.#elector?.isLeader === true;
  }

  /** A store of a resource, kept by a reflector that starts with `run`. */
  store<T extends KubernetesObject>(resource: Resource, request: StoreRequest<T> = {}): Store<T> {
    this.#mustNotRun();
    const { indexers, transform, namespaces, ...selection } = request;
    const store = new Store<T>({
      indexers,
      transform,
      namespaces: namespaces && (() => namesOf(namespaces)),
      clock: this.clock,
      onHandlerError: (error) => {
        this.metrics.handlerErrors.inc({ resource: resource.plural });
        this.log.error({ err: error, resource: resource.plural }, "event handler threw");
      },
    });
    const metrics = this.#kubeMetrics.reflector;
    const options = {
      ...selection,
      client: this.client,
      resource,
      store,
      clock: this.clock,
      random: this.random,
      events: {
        ...metrics,
        onError: (info: Parameters<NonNullable<ReflectorEvents["onError"]>>[0]) => {
          metrics.onError(info);
          const fields = { err: info.error, resource: resource.plural, delayMs: info.delayMs };
          this.log.warn(fields, "list or watch failed; trying again");
        },
      },
    } satisfies ReflectorOptions<T>;
    this.#reflectors.push(
      namespaces ? new NamespaceReflectors<T>(options, namespaces) : new Reflector<T>(options),
    );
    return store;
  }

  /** Adds a controller; it runs while this process leads. */
  addController(options: ControllerOptions): Controller {
    this.#mustNotRun();
    const controller = new Controller(options, {
      clock: this.clock,
      random: this.random,
      log: this.log,
      metrics: this.metrics,
      mayAct: () => this.isLeader && this.#clockGuard.trusted,
      tracing: this.#controllerTracing(),
    });
    this.#controllers.push(controller);
    return controller;
  }

  addRunnable(runnable: Runnable): void {
    this.#mustNotRun();
    this.#runnables.push(runnable);
  }

  /**
   * Adds what has to succeed before this process leads. Until then it is alive and not ready. It returns when the signal aborts;
   * throwing ends the process.
   */
  addStartupCheck(name: string, run: (signal: AbortSignal) => Promise<void>): void {
    this.#mustNotRun();
    this.#ready.set("startup", () => this.#isStarted);
    this.#startupChecks.push(async (signal) => {
      await run(signal);
      this.log.debug({ check: name }, "startup check passed");
    });
  }

  /** Adds to `/readyz`. */
  addReadyCheck(name: string, check: Check): void {
    this.#ready.set(name, check);
  }

  /** Adds to `/healthz`. */
  addHealthCheck(name: string, check: Check): void {
    this.#health.set(name, check);
  }

  /**
   * Runs until the signal aborts, then stops in order: controllers, lease, reflectors, server. Standbys keep their
   * stores filled, so that a failover is quick. @throws Error when the port is taken or a runnable failed
   */
  async run(signal: AbortSignal): Promise<void> {
    this.#mustNotRun();
    this.#running = true;
    const server = await this.#serve();
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
      ...this.#reflectors.map((reflector) => reflector.run(background.signal)),
      this.#apiRecorder.run(background.signal),
      ...this.#start((runnable) => runnable.leaderOnly === false, background.signal, fail),
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
    while (!signal.aborted && !this.#reflectors.every((reflector) => reflector.store.hasSynced)) {
      await sleep(this.clock, 50, signal);
    }
    if (signal.aborted) {
      return;
    }
    this.log.info({ stores: this.#reflectors.length }, "stores are filled");
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
    await leadWhileHeld({ elector, name: election.name, log, metrics, exit, work }, signal);
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
      ...this.#start((runnable) => runnable.leaderOnly !== false, signal, fail),
    ];
    await untilAborted(signal);
    const grace = new AbortController();
    const late = sleep(this.clock, this.#options.gracePeriodMs ?? 20_000, grace.signal);
    const ended = Promise.allSettled(running).then(() => true);
    const inTime = await Promise.race([ended, late.then(() => false)]);
    grace.abort();
    return inTime;
  }

  #start(
    which: (runnable: Runnable) => boolean,
    signal: AbortSignal,
    fail: (error: unknown) => void,
  ): Promise<void>[] {
    return this.#runnables.filter(which).map(async (runnable) => {
      try {
        await runnable.run(signal);
      } catch (error) {
        this.log.error({ err: error, runnable: runnable.name }, "runnable failed");
        fail(error);
      }
    });
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

  async #serve(): Promise<{ close(): Promise<void> } | undefined> {
    const { port, host } = this.#options;
    if (port === undefined) {
      return undefined;
    }
    const server = await startOpsServer({
      registry: this.registry,
      port,
      ...(host ? { host } : {}),
      health: this.#health,
      ready: this.#ready,
    });
    this.port = server.port;
    return server;
  }
}
