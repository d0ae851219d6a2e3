import type { Readable } from "node:stream";
import type { KubeClient } from "@slipway/controller-runtime";
import { ConcurrencyLimiter } from "@slipway/process";
import type { Logger } from "pino";
import { failures } from "../errors/catalog.ts";
import type { EventStreams, StreamCaller } from "../http/event-streams.ts";
import type { ApiProject } from "../projects/api-project.ts";
import type { Projects } from "../projects/store.ts";
import { Following, type FollowLimits } from "./following.ts";
import { type NamedLine, newestLines, positionAfter } from "./lines.ts";
import { MAX_BYTES, MAX_LINES, nameOf, readInstances } from "./read.ts";

export interface FollowerOptions {
  kube: KubeClient;
  projects: Pick<Projects, "find">;
  logger: Logger;
  streams: EventStreams;
  limits?: Partial<FollowLimits>;
}

const LIMITS: FollowLimits = {
  pollIntervalMs: 1_000,
  nodeTimeoutMs: 4_000,
  maxBytes: 128 * 1024,
  maxInstances: 512,
};

/** The logs of applications as they are written, for all clients of this process. */
export class LogFollower {
  readonly #options: FollowerOptions;
  readonly #limits: FollowLimits;
  /** Open streams from nodes, for all clients. */
  readonly #open: ConcurrencyLimiter;

  constructor(options: FollowerOptions) {
    this.#options = options;
    this.#limits = { ...LIMITS, ...options.limits };
    const { maxInstances } = this.#limits;
    const perKey = Math.ceil(maxInstances / 4);
    this.#open = new ConcurrencyLimiter({ total: maxInstances, perKey, refuse: failures.serverBusy });
  }

  /** How many logs of instances are open at nodes. */
  get instances(): number {
    return this.#open.inUse;
  }

  /**
   * Events: `instances` with the names of those that are read, whenever they change; `log` for each line, the newest first read
   * and merged by time, then as they come; `end` once the project is deleted. A stream that ends without `end` is to be resumed.
   * @param after the id of the last event that the client has: nanoseconds since 1970. Earlier lines are not sent again.
   * @param recheck rejects once the caller may read no more
   * @throws Failure 404 for an instance that is not the project's, 503 when no node answers or there are too many streams
   */
  async open(
    project: ApiProject,
    instance: string | undefined,
    after: bigint | undefined,
    recheck: StreamCaller["recheck"],
  ): Promise<Readable> {
    const { kube, logger, projects, streams } = this.#options;
    const { pods, logs, unavailable } = await readInstances(kube, logger, project, instance);
    const named = logs.map((lines, at) =>
      lines
        .filter(({ time }) => after === undefined || time > after)
        .map((line): NamedLine => ({ ...line, instance: nameOf(pods[at] ?? {}) })),
    );
    const first = newestLines(named, { maxLines: MAX_LINES, maxBytes: MAX_BYTES });
    // An instance without a known position starts after what the client has.
    const known = after === undefined ? undefined : { time: after, lines: Number.POSITIVE_INFINITY };
    const positions = new Map(
      pods.map(
        (pod, at) => [pod.metadata?.uid ?? nameOf(pod), positionAfter(logs[at] ?? [], known)] as const,
      ),
    );
    return streams.open({ organizationId: project.organizationId, recheck }, (signal) =>
      new Following({
        kube,
        projects,
        logger,
        limits: this.#limits,
        open: this.#open,
        project,
        instance,
        positions,
        newest: after ?? 0n,
      }).events(first, { instances: pods.map(nameOf), unavailable }, signal),
    );
  }
}
