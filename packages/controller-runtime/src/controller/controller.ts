import { randomUUID } from "node:crypto";
import type { Clock, Logger, Random } from "@slipway/process";
import { type ObjectRef, parseKey, refKey } from "../client/types.ts";
import type { RuntimeMetrics } from "../manager/runtime-metrics.ts";
import type { IsOwnKey } from "../manager/shards.ts";
import { type Outcome, outcomeOfError, outcomeOfResult, type Result } from "./outcome.ts";
import type { BackoffOptions, BucketOptions } from "./rate-limiters.ts";
import type { Source } from "./sources.ts";
import { type ControllerTracing, TracedChanges, type TracedObjects } from "./traced-changes.ts";
import { WorkQueue } from "./work-queue.ts";

/** What a reconciler is given beside its key. */
export interface ReconcileContext {
  /** Aborts when the time limit is over or the process stops; give it to every call. */
  readonly signal: AbortSignal;
  /** Has the controller, the key and a `reconcileID` as fields. */
  readonly log: Logger;
  readonly clock: Clock;
}

/** Reconciles one object. Throws one of the three reconcile errors, or anything for a defect. */
export type Reconciler = (ref: ObjectRef, context: ReconcileContext) => Promise<Result | undefined>;

export interface ControllerOptions {
  name: string;
  reconcile: Reconciler;
  sources: readonly Source[];
  /** Keys that are reconciled concurrently: 4 unless given. */
  workers?: number;
  /** Time limit of one reconcile: 60,000 unless given. */
  timeoutMs?: number;
  backoff?: BackoffOptions;
  bucket?: BucketOptions;
  /** Of an operator with shards: whether this one reconciles a key. By the key's namespace unless given. */
  isOwnKey?: IsOwnKey;
  /**
   * The objects of a key whose last change its next reconcile acts on, for traces. Whatever is left alone for now is left out.
   */
  traced?: TracedObjects;
}

/** What runs a controller gives it; the `Manager` does. */
export interface ControllerDependencies {
  clock: Clock;
  random: Random;
  log: Logger;
  metrics: RuntimeMetrics;
  /** Whether this process reconciles what is in a namespace, or in none; all unless given. */
  owns?: (namespace: string | undefined) => boolean;
  /** Called before every reconcile: false while this process may not act (its lease ran out). */
  mayAct?: () => boolean;
  tracing?: ControllerTracing;
}

/** Feeds keys to a reconciler through a work queue, with N workers. What one key does cannot harm another. */
export class Controller {
  readonly name: string;
  readonly queue: WorkQueue;
  readonly #options: ControllerOptions;
  readonly #deps: ControllerDependencies;
  readonly #traces: TracedChanges | undefined;

  constructor(options: ControllerOptions, deps: ControllerDependencies) {
    this.name = options.name;
    this.#options = options;
    this.#deps = deps;
    this.#traces =
      deps.tracing && options.traced
        ? new TracedChanges(deps.tracing, options.name, options.traced)
        : undefined;
    this.queue = new WorkQueue({
      name: options.name,
      clock: deps.clock,
      random: deps.random,
      metrics: deps.metrics,
      ...(options.backoff ? { backoff: options.backoff } : {}),
      ...(options.bucket ? { bucket: options.bucket } : {}),
    });
    deps.metrics.initController(options.name);
    deps.metrics.maxConcurrent.set({ controller: options.name }, this.#workers);
  }

  /** Whether every source is filled. */
  hasSynced(): boolean {
    return this.#options.sources.every((source) => source.hasSynced());
  }

  /** Requests a reconcile of one object, unless another shard reconciles it. */
  enqueue(ref: ObjectRef, afterMs = 0): void {
    this.#add(refKey(ref), afterMs);
  }

  #add(key: string, afterMs = 0): void {
    if (this.#isOwn(key)) {
      this.queue.addAfter(key, afterMs);
    }
  }

  #isOwn(key: string): boolean {
    const { owns } = this.#deps;
    const { isOwnKey = byNamespace } = this.#options;
    return owns === undefined || isOwnKey(parseKey(key), owns);
  }

  /** Works until the signal aborts, and then until what is under way has ended. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    // What sources name while they attach is there already: a change does not wait until all of it has been reconciled.
    let isAttaching = true;
    const detach = this.#options.sources.map((source) =>
      source.attach((key, { afterMs = 0, isUnobserved = false } = {}) => {
        if (isAttaching && afterMs === 0 && !isUnobserved) {
          if (this.#isOwn(key)) {
            this.queue.addWithLowPriority(key);
          }
        } else {
          this.#add(key, afterMs);
        }
      }),
    );
    isAttaching = false;
    const stop = () => this.queue.shutDown();
    if (signal.aborted) {
      stop();
    }
    signal.addEventListener("abort", stop, { once: true });
    await Promise.all(Array.from({ length: this.#workers }, () => this.#work(signal)));
    for (const off of detach) {
      off();
    }
    signal.removeEventListener("abort", stop);
  }

  get #workers(): number {
    return this.#options.workers ?? 4;
  }

  async #work(signal: AbortSignal): Promise<void> {
    for (let key = await this.queue.get(); key !== undefined; key = await this.queue.get()) {
      const labels = { controller: this.name };
      this.#deps.metrics.activeWorkers.inc(labels);
      try {
        await this.#process(key, signal);
      } finally {
        this.#deps.metrics.activeWorkers.dec(labels);
      }
    }
  }

  /** Reconciles one key and decides when it comes back. Never rejects. */
  async #process(key: string, stopping: AbortSignal): Promise<void> {
    const { clock, metrics } = this.#deps;
    if (this.#deps.mayAct?.() === false) {
      this.queue.done(key);
      this.queue.addAfter(key, 1_000);
      return;
    }
    const log = this.#deps.log.child({ controller: this.name, key, reconcileID: randomUUID() });
    const started = clock.monotonic();
    const abort = new AbortController();
    const stop = () => abort.abort(new DOMException("the process stops", "AbortError"));
    stopping.addEventListener("abort", stop, { once: true });
    const running = this.#reconcile(key, { signal: abort.signal, log, clock });
    const timedOut = await this.#limit(running, abort);
    if (timedOut) {
      metrics.timeouts.inc({ controller: this.name });
      log.error({ timeoutMs: this.#timeoutMs }, "reconcile over its time limit");
    }
    const finish = (outcome: Outcome) => {
      stopping.removeEventListener("abort", stop);
      metrics.observeReconcile(this.name, outcome, (clock.monotonic() - started) / 1000);
      this.#requeue(key, outcome);
      this.queue.done(key);
    };
    // A reconcile that ignores its signal frees its worker, but keeps its key: never two concurrently for one key.
    if (timedOut === "stuck") {
      void running.then(finish);
    } else {
      finish(await running);
    }
  }

  #reconcile(key: string, context: ReconcileContext): Promise<Outcome> {
    const work = () => this.#attempt(key, context);
    return this.#traces ? this.#traces.follow(key, work) : work();
  }

  async #attempt(key: string, context: ReconcileContext): Promise<Outcome> {
    try {
      return outcomeOfResult(await this.#options.reconcile(parseKey(key), context));
    } catch (error) {
      const outcome = outcomeOfError(error);
      logOutcome(context.log, outcome, error);
      return outcome;
    }
  }

  /** Waits for the reconcile; aborts it at the time limit and gives it two seconds to notice. */
  #limit(running: Promise<Outcome>, abort: AbortController): Promise<"" | "aborted" | "stuck"> {
    const { clock } = this.#deps;
    return new Promise((resolve) => {
      let over = false;
      let timer = clock.setTimeout(() => {
        over = true;
        abort.abort(new DOMException("over the time limit of a reconcile", "TimeoutError"));
        timer = clock.setTimeout(() => resolve("stuck"), 2_000);
      }, this.#timeoutMs);
      void running.then(() => {
        timer.cancel();
        resolve(over ? "aborted" : "");
      });
    });
  }

  #requeue(key: string, outcome: Outcome): void {
    if (outcome.requeue.type === "backoff") {
      this.queue.addRateLimited(key);
      return;
    }
    this.queue.forget(key);
    if (outcome.requeue.type === "after") {
      this.queue.addAfter(key, outcome.requeue.ms);
    }
  }

  get #timeoutMs(): number {
    return this.#options.timeoutMs ?? 60_000;
  }
}

const byNamespace: IsOwnKey = ({ namespace }, owns) => owns(namespace);

function logOutcome(log: Logger, outcome: Outcome, error: unknown): void {
  const fields = { reason: outcome.reason, err: error };
  if (outcome.kind === "panic") {
    log.error(fields, "reconcile failed by a defect");
  } else if (outcome.kind === "waiting") {
    log.debug(fields, "reconcile waits");
  } else if (outcome.visible) {
    log.warn(fields, "reconcile failed");
  } else {
    log.info(fields, "reconcile will be tried again");
  }
}
