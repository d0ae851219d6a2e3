import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { LogEvent } from "@slipway/analytics";
import { type Clock, systemClock } from "@slipway/process";
import { Collector } from "../../../collector/src/collector.ts";
import { realDisk } from "../../../collector/src/disk.ts";
import { LogBounds, type LogBoundsOptions } from "../../../collector/src/log-bounds.ts";
import { CollectorMetrics } from "../../../collector/src/metrics.ts";
import type { LoggingPod } from "../../../collector/src/pod-owners.ts";
import { ProjectLogs } from "../../../collector/src/project-logs.ts";
import { Spool } from "../../../collector/src/spool.ts";
import { FakeContainerLog } from "./fake-kubelet.ts";

const rate = (linesPerSecond: number) => ({ linesPerSecond, bytesPerSecond: 1_000_000_000 });
/** Bounds that no test reaches. */
export const plenty: LogBoundsOptions = {
  ...{ project: rate(1e9), organization: rate(1e9), burstSeconds: 1 },
  organizationBytesPerDay: 1e12,
};
/** The same lines of a project as of its organization, within a second. */
export const atMost = (lines: number): LogBoundsOptions => ({
  ...plenty,
  project: rate(lines),
  organization: rate(lines),
});

export interface NodeOptions {
  bounds?: LogBoundsOptions;
  /** What may wait on the disk. */
  bufferBytes?: number;
  clock?: Clock;
}

/** A node with two projects' pods, whose logs are read in this process: `uid1` is `loud` of `o1`, `uid2` `quiet` of `o2`. */
export class LogsNode {
  readonly pods = new Map<string, LoggingPod>([
    ["uid1", { organization: "o1", project: "loud", container: "app" }],
    ["uid2", { organization: "o2", project: "quiet", container: "database" }],
  ]);
  readonly #folder: string;
  readonly #podLogs: string;
  readonly #ends: (() => Promise<unknown>)[] = [];

  private constructor(folder: string) {
    this.#folder = folder;
    this.#podLogs = join(folder, "pod-logs");
  }

  static async open(): Promise<LogsNode> {
    const node = new LogsNode(await mkdtemp(join(tmpdir(), "collector-")));
    await mkdir(node.#podLogs);
    return node;
  }

  async close(): Promise<void> {
    for (const end of this.#ends) {
      await end();
    }
    await rm(this.#folder, { recursive: true, force: true });
  }

  async logOf(pod: string, container: string): Promise<FakeContainerLog> {
    const log = new FakeContainerLog(this.#podLogs, pod, container);
    await log.start();
    return log;
  }

  /** A collector that continues where the one before has stopped. */
  async collect({ bounds = plenty, bufferBytes = 1e9, clock = systemClock }: NodeOptions = {}) {
    const spool = await Spool.open<LogEvent>(realDisk, join(this.#folder, "state"), Date.now);
    const metrics = new CollectorMetrics();
    const shared = { metrics, clock };
    const find = (uid: string) => this.pods.get(uid);
    const input = new ProjectLogs({ ...shared, find, bounds: new LogBounds(bounds), days: 8 });
    const log = { info: () => {}, warn: () => {}, error: () => {} };
    const quota = { remainingBytes: async () => bufferBytes - spool.bytes };
    const collector = new Collector({ ...shared, podLogs: this.#podLogs, input, spool, quota, log });
    const events: LogEvent[] = [];
    const take = async () => void events.push(...(await drain(spool)).flat());
    /** Ends it, and gives all events that it has read. */
    const end = async () => {
      const ended = new AbortController();
      ended.abort();
      await collector.run(ended.signal);
      await take();
      return events;
    };
    this.#ends.push(end);
    /** What is read until no more comes, as the collector ends. */
    const all = async () => {
      while ((await collector.step()) === 0) {
        await take();
      }
      return end();
    };
    return { collector, spool, metrics, events, take, end, all };
  }
}

/** The batches that wait on the disk, which are removed from there. */
export async function drain(spool: Spool<LogEvent>): Promise<LogEvent[][]> {
  const batches: LogEvent[][] = [];
  for (let oldest = spool.oldest; oldest; oldest = spool.oldest) {
    batches.push((await spool.read(oldest)).events);
    await spool.done(oldest);
  }
  return batches;
}
