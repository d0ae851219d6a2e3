import { setTimeout as sleep } from "node:timers/promises";
import { type KubeClient, KubeError } from "@slipway/controller-runtime";
import type { ConcurrencyLimiter } from "@slipway/process";
import type { Logger } from "pino";
import { eventText } from "../http/event-streams.ts";
import type { ApiProject } from "../projects/api-project.ts";
import type { Projects } from "../projects/store.ts";
import { type Pod, type Run, runsOf } from "./instance-log.ts";
import {
  lineEvent,
  type NamedLine,
  type Position,
  parseLog,
  positionAfter,
  sinceTime,
  skipUntil,
  wholeLines,
} from "./lines.ts";
import { TextQueue } from "./queue.ts";
import { listInstances, MAX_LINES, nameOf } from "./read.ts";

/** Follows the logs of a project's instances, for one client. */

export interface FollowLimits {
  /** How often instances are listed. */
  pollIntervalMs: number;
  /** How long a node may take until it answers. */
  nodeTimeoutMs: number;
  /** Bytes buffered for a client that reads slowly; nodes are not read meanwhile. */
  maxBytes: number;
  /** Logs of instances that are open at nodes, for all clients; a quarter of them for one organization. */
  maxInstances: number;
}

export interface FollowingOptions {
  kube: KubeClient;
  projects: Pick<Projects, "find">;
  logger: Logger;
  limits: FollowLimits;
  /** Logs that are open at nodes, of all clients of the process, by organization. */
  open: ConcurrencyLimiter;
  project: ApiProject;
  instance: string | undefined;
  /** The position up to which each instance was read already, by uid. */
  positions: Map<string, Position | undefined>;
  /** The newest time of the lines that the client has; zero without any. */
  newest: bigint;
}

interface Names {
  instances: string[];
  unavailable: string[];
}

/** An instance that is followed. */
interface Followed {
  pod: Pod;
  position: Position | undefined;
  /** Numbers of runs that were read to their end. */
  ended: Set<number>;
  isReading: boolean;
  isAvailable: boolean;
}

/** One client's stream of the log of one project. */
export class Following {
  readonly #options: FollowingOptions;
  readonly #queue: TextQueue;
  readonly #followed = new Map<string, Followed>();
  #newest: bigint;
  #lastNames = "";

  constructor(options: FollowingOptions) {
    this.#options = options;
    this.#queue = new TextQueue(options.limits.maxBytes);
    this.#newest = options.newest;
  }

  /** All events, beginning with the lines that were read already. Ends its streams at nodes when the signal aborts. */
  async *events(
    first: readonly NamedLine[],
    names: Names,
    signal: AbortSignal,
  ): AsyncGenerator<string, void> {
    const done = new AbortController();
    const stopped = AbortSignal.any([signal, done.signal]);
    stopped.addEventListener("abort", () => this.#queue.end(), { once: true });
    if (signal.aborted) {
      this.#queue.end();
    }
    try {
      yield this.#names(names) + this.#lines(first);
      void this.#poll(stopped);
      for (let text = await this.#queue.take(); text !== undefined; text = await this.#queue.take()) {
        yield text;
      }
    } finally {
      done.abort();
    }
  }

  /** Lists instances again and again until the project is deleted. Never rejects. */
  async #poll(signal: AbortSignal): Promise<void> {
    const { kube, logger, limits, project, instance } = this.#options;
    while (!signal.aborted) {
      try {
        if (await this.#isGone()) {
          await this.#queue.put(eventText("end", { reason: "deleted" }));
          return this.#queue.end();
        }
        const pods = (await listInstances(kube, project, signal)).filter(
          (pod) => instance === undefined || nameOf(pod) === instance,
        );
        this.#take(pods, signal);
        await this.#queue.put(this.#names(this.#now()));
      } catch (error) {
        if (!signal.aborted) {
          logger.debug({ err: error, project: project.id }, "instances cannot be found");
        }
      }
      await sleep(limits.pollIntervalMs, undefined, { signal }).catch(() => undefined);
    }
  }

  async #isGone(): Promise<boolean> {
    const { projects, project } = this.#options;
    const now = await projects.find(project.organizationId, project.id);
    return now === undefined || now.resource.metadata.uid !== project.resource.metadata.uid;
  }

  /** Updates the followed instances, and starts to read those that have something to read. */
  #take(pods: readonly Pod[], signal: AbortSignal): void {
    const { positions } = this.#options;
    const present = new Set<string>();
    for (const pod of pods) {
      const key = pod.metadata?.uid ?? nameOf(pod);
      present.add(key);
      const known = this.#followed.get(key);
      const followed: Followed = known ?? {
        pod,
        position: positions.get(key),
        ended: new Set(),
        isReading: false,
        isAvailable: true,
      };
      followed.pod = pod;
      this.#followed.set(key, followed);
      if (!followed.isReading) {
        void this.#read(followed, signal);
      }
    }
    for (const [key, { isReading }] of this.#followed) {
      if (!present.has(key) && !isReading) {
        this.#followed.delete(key);
      }
    }
  }

  /** Reads an instance's runs to their ends, or until its node disconnects: the next poll continues. Never rejects. */
  async #read(followed: Followed, signal: AbortSignal): Promise<void> {
    const { open, logger, project } = this.#options;
    const runs = runsOf(followed.pod).filter(({ number }) => !followed.ended.has(number));
    if (runs.length === 0) {
      return;
    }
    const release = open.tryAcquire(project.organizationId);
    if (!release) {
      followed.isAvailable = false;
      return;
    }
    followed.isReading = true;
    try {
      for (const run of runs) {
        await this.#readRun(followed, run, signal).catch(ignoreNone);
        // A run that continues is read once more when it has ended: its stream may have ended before.
        if (!run.goesOn && !signal.aborted) {
          followed.ended.add(run.number);
        }
      }
      followed.isAvailable = true;
    } catch (error) {
      followed.isAvailable = false;
      if (!signal.aborted) {
        logger.debug({ err: error, project: project.id }, "log cannot be followed");
      }
    } finally {
      followed.isReading = false;
      release();
    }
  }

  async #readRun(followed: Followed, run: Run, signal: AbortSignal): Promise<void> {
    const { kube, limits } = this.#options;
    const { pod, position } = followed;
    const ref = { namespace: pod.metadata?.namespace, name: nameOf(pod) };
    const body = await kube.streamPodLog(ref, {
      container: run.container,
      ...(run.previous ? { previous: true } : {}),
      follow: run.goesOn,
      timestamps: true,
      ...(position === undefined ? { tailLines: MAX_LINES } : { sinceTime: sinceTime(position) }),
      timeoutMs: limits.nodeTimeoutMs,
      signal,
    });
    followed.isAvailable = true;
    const fresh = skipUntil(position);
    for await (const piece of wholeLines(body)) {
      const lines = fresh(parseLog(piece));
      followed.position = positionAfter(lines, followed.position);
      const named = lines.map((line): NamedLine => ({ ...line, instance: ref.name }));
      if (named.length > 0 && !(await this.#queue.put(this.#lines(named)))) {
        return;
      }
    }
  }

  #lines(lines: readonly NamedLine[]): string {
    return lines
      .map((line) => {
        if (line.time > this.#newest) {
          this.#newest = line.time;
        }
        return lineEvent(line, this.#newest);
      })
      .join("");
  }

  #now(): Names {
    const all = [...this.#followed.values()];
    return {
      instances: all.map(({ pod }) => nameOf(pod)).sort(),
      unavailable: all.filter(({ isAvailable }) => !isAvailable).map(({ pod }) => nameOf(pod)),
    };
  }

  /** Empty when the client has them already. */
  #names({ instances, unavailable }: Names): string {
    const text = eventText("instances", {
      instances: [...instances].sort(),
      unavailable_instances: unavailable,
    });
    if (text === this.#lastNames) {
      return "";
    }
    this.#lastNames = text;
    return text;
  }
}

/** 400: the container has not started, or its previous run is deleted. 404: the pod is deleted. */
function ignoreNone(error: unknown): void {
  if (!(error instanceof KubeError) || (error.status !== 400 && error.status !== 404)) {
    throw error;
  }
}
