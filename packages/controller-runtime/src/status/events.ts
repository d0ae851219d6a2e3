import { type Clock, type Logger, type Random, sleep } from "@slipway/process";
import type { KubeClient } from "../client/client.ts";
import { isNetworkError, isNotFound } from "../client/errors.ts";
import { resources } from "../client/resources.ts";
import { apiVersionOf, type KubernetesObject, type Resource } from "../client/types.ts";
import { TokenBucket } from "../controller/rate-limiters.ts";
import type { RuntimeMetrics } from "../manager/runtime-metrics.ts";

/** A fact to report to the owner of an object. */
export interface EventInput {
  type: "Normal" | "Warning";
  /** The reason of the condition that changed. */
  reason: string;
  /** For people; cut at 1,024 characters. */
  note: string;
  /** What was being done; `Reconcile` unless given. */
  action?: string;
}

/** Records Kubernetes Events, on a best-effort basis: it never throws, never blocks and never floods. */
export interface EventRecorder {
  event(regarding: KubernetesObject, resource: Resource, input: EventInput): void;
}

export interface EventRecorderOptions {
  client: KubeClient;
  clock: Clock;
  random: Random;
  log: Logger;
  metrics: RuntimeMetrics;
  /** Such as `example.com/website-operator`. */
  reportingController: string;
  /** The pod's name. */
  reportingInstance: string;
}

/** `events.k8s.io/v1`. */
interface EventObject extends KubernetesObject {
  metadata: { name: string; namespace: string };
  eventTime: string;
  reportingController: string;
  reportingInstance: string;
  action: string;
  reason: string;
  regarding: Record<string, string | undefined>;
  note: string;
  type: string;
  series?: { count: number; lastObservedTime: string };
}

interface Known {
  event: EventObject;
  count: number;
  lastSeen: number;
  /** Monotonic time of the last write. */
  written: number;
  /** Whether the apiserver has it. */
  created: boolean;
}

/** A repetition within this time is counted in the same event's series. */
const SERIES_MS = 6 * 60_000;
/** A series is written at its second occurrence, then at most this often. */
const SERIES_WRITE_MS = 60_000;
const MAX_QUEUED = 1_000;
const MAX_TRIES = 5;

/** The recorder that writes to the apiserver, one event after another, until the signal aborts. */
export class ApiEventRecorder implements EventRecorder {
  readonly #options: EventRecorderOptions;
  readonly #known = new Map<string, Known>();
  readonly #perObject = new Map<string, TokenBucket>();
  readonly #all: TokenBucket;
  readonly #queue: Known[] = [];
  #wake: () => void = () => {};
  #sequence = 0;

  constructor(options: EventRecorderOptions) {
    this.#options = options;
    this.#all = new TokenBucket({ perSecond: 10, burst: 200 }, options.clock.monotonic());
  }

  event(regarding: KubernetesObject, resource: Resource, input: EventInput): void {
    const now = this.#options.clock.monotonic();
    this.#forgetOld(now);
    const note = input.note.slice(0, 1024);
    const key = [regarding.metadata?.uid, input.type, input.reason, input.action, note].join("\n");
    const known = this.#known.get(key);
    if (known) {
      known.count += 1;
      known.lastSeen = now;
      if (known.count > 2 && now - known.written < SERIES_WRITE_MS) {
        this.#count("merged");
        return;
      }
    }
    if (!this.#admit(regarding.metadata?.uid ?? "", now)) {
      this.#count("dropped");
      return;
    }
    const entry = known ?? {
      event: this.#build(regarding, resource, { ...input, note }),
      count: 1,
      lastSeen: now,
      written: now,
      created: false,
    };
    entry.written = now;
    this.#known.set(key, entry);
    this.#queue.push(entry);
    this.#wake();
  }

  /** Writes what is recorded until the signal aborts. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    signal.addEventListener("abort", () => this.#wake(), { once: true });
    while (!signal.aborted) {
      const entry = this.#queue.shift();
      if (entry) {
        await this.#send(entry, signal);
      } else {
        await new Promise<void>((resolve) => (this.#wake = resolve));
      }
    }
  }

  async #send(entry: Known, signal: AbortSignal): Promise<void> {
    const { clock, client, random, log } = this.#options;
    for (let attempt = 0; attempt < MAX_TRIES && !signal.aborted; attempt += 1) {
      try {
        if (entry.count > 1) {
          entry.event.series = { count: entry.count, lastObservedTime: microTime(clock.now()) };
        }
        if (entry.created) {
          await this.#patchSeries(entry.event, signal);
        } else {
          await client.create(resources.events, entry.event, { signal });
        }
        entry.created = true;
        this.#count("recorded");
        return;
      } catch (error) {
        if (!isNetworkError(error)) {
          log.debug({ err: error }, "event refused");
          break;
        }
        await sleep(clock, 2_000 * (1 + random()), signal);
      }
    }
    this.#count("failed");
  }

  async #patchSeries(event: EventObject, signal: AbortSignal): Promise<void> {
    const { client } = this.#options;
    try {
      await client.patch(resources.events, event.metadata, { series: event.series }, { signal });
    } catch (error) {
      // The event outlived its time in the cluster.
      if (!isNotFound(error)) {
        throw error;
      }
      await client.create(resources.events, event, { signal });
    }
  }

  #build(regarding: KubernetesObject, resource: Resource, input: EventInput): EventObject {
    const { name = "", namespace = "default", uid, resourceVersion } = regarding.metadata ?? {};
    const { clock, reportingController, reportingInstance } = this.#options;
    this.#sequence += 1;
    const unique = `${clock.now().getTime().toString(16)}${this.#sequence.toString(16)}`;
    return {
      apiVersion: "events.k8s.io/v1",
      kind: "Event",
      metadata: { name: `${name.slice(0, 220)}.${unique}`, namespace },
      eventTime: microTime(clock.now()),
      reportingController,
      reportingInstance: reportingInstance.slice(0, 128),
      action: input.action ?? "Reconcile",
      reason: input.reason,
      regarding: {
        apiVersion: apiVersionOf(resource),
        kind: resource.kind,
        name,
        uid,
        resourceVersion,
        ...(regarding.metadata?.namespace ? { namespace } : {}),
      },
      note: input.note,
      type: input.type,
    };
  }

  /** One object may cause 25 events in a burst and one each 5 minutes after that; all together 10 a second. */
  #admit(uid: string, now: number): boolean {
    if (this.#queue.length >= MAX_QUEUED) {
      return false;
    }
    let own = this.#perObject.get(uid);
    if (!own) {
      own = new TokenBucket({ perSecond: 1 / 300, burst: 25 }, now);
      this.#perObject.set(uid, own);
    }
    return own.tryTake(now) && this.#all.tryTake(now);
  }

  #forgetOld(now: number): void {
    for (const [key, known] of this.#known) {
      if (now - known.lastSeen > SERIES_MS) {
        this.#known.delete(key);
      }
    }
    // A bucket that was dropped starts full again: bounded memory is worth 25 events.
    if (this.#perObject.size > 10_000) {
      this.#perObject.clear();
    }
  }

  #count(result: string): void {
    this.#options.metrics.events.inc({ result });
  }
}

/** RFC 3339 with microseconds, as Kubernetes writes `metav1.MicroTime`. */
export function microTime(time: Date): string {
  return `${time.toISOString().slice(0, -1)}000Z`;
}
