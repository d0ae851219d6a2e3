import { randomBytes } from "node:crypto";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type LogEvent, MAX_LOG_TEXT_BYTES } from "@slipway/analytics";
import { systemClock } from "@slipway/process";
import { afterEach, beforeEach, expect, test } from "vitest";
import { FakeContainerLog } from "../../test/kit/analytics/fake-kubelet.ts";
import { Collector } from "./collector.ts";
import { realDisk } from "./disk.ts";
import { LogBounds, type LogBoundsOptions } from "./log-bounds.ts";
import { CollectorMetrics } from "./metrics.ts";
import type { LoggingPod } from "./pod-owners.ts";
import { ProjectLogs } from "./project-logs.ts";
import { Spool } from "./spool.ts";

let folder: string;
let podLogs: string;
let pods: Map<string, LoggingPod>;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "collector-"));
  podLogs = join(folder, "pod-logs");
  await mkdir(podLogs);
  pods = new Map([
    ["uid1", { organization: "o1", project: "loud", container: "app" }],
    ["uid2", { organization: "o2", project: "quiet", container: "database" }],
  ]);
});
afterEach(() => rm(folder, { recursive: true, force: true }));

const rate = (linesPerSecond: number) => ({ linesPerSecond, bytesPerSecond: 1_000_000_000 });
const plenty = { project: rate(1e9), organization: rate(1e9), burstSeconds: 1 };

async function open(bounds: LogBoundsOptions = plenty, bufferBytes = 1e9) {
  const spool = await Spool.open<LogEvent>(realDisk, join(folder, "state"), Date.now);
  const metrics = new CollectorMetrics();
  const shared = { metrics, clock: systemClock };
  const input = new ProjectLogs({
    ...shared,
    find: (uid) => pods.get(uid),
    bounds: new LogBounds(bounds),
    days: 8,
  });
  const log = { info: () => {}, warn: () => {}, error: () => {} };
  const quota = { remainingBytes: async () => bufferBytes - spool.bytes };
  const collector = new Collector({ ...shared, podLogs, input, spool, quota, log });
  const events: LogEvent[] = [];
  const take = async () => void events.push(...(await drain(spool)).flat());
  /** What is read until no more comes, as the collector ends. */
  const all = async () => {
    while ((await collector.step()) === 0) {
      await take();
    }
    const ended = new AbortController();
    ended.abort();
    await collector.run(ended.signal);
    await take();
    return events;
  };
  return { collector, spool, events, take, all };
}

/** The batches that wait on the disk, which are removed from there. */
async function drain(spool: Spool<LogEvent>): Promise<LogEvent[][]> {
  const batches: LogEvent[][] = [];
  for (let oldest = spool.oldest; oldest; oldest = spool.oldest) {
    batches.push((await spool.read(oldest)).events);
    await spool.done(oldest);
  }
  return batches;
}

const logOf = async (pod: string, container: string) => {
  const log = new FakeContainerLog(podLogs, pod, container);
  await log.start();
  return log;
};

test("each piece of a line of either output is an event, whose place in its file identifies it", async () => {
  const log = await logOf("slipway-org-o1_loud-1_uid1", "app");
  await logOf("slipway-org-o1_loud-1_uid1", "sidecar").then((other) => other.write(["not the project's"]));
  await logOf("slipway-org-o1_run-1_uid9", "app").then((other) => other.write(["of no known pod"]));
  await log.write(["one"]);
  await log.write(["ERROR: two"], "stderr");
  await log.writePieces("[error] ab", 8);
  await log.write(["three"], "stderr");
  const { all } = await open();
  const events = await all();
  expect(events.map(({ text, stream, level, continues }) => [text, stream, level, continues])).toEqual([
    ["one", "stdout", null, false],
    ["ERROR: two", "stderr", "error", false],
    ["[error] ", "stdout", "error", true],
    ["ab", "stdout", "error", false],
    ["three", "stderr", null, false],
  ]);
  expect(events[0]).toMatchObject({
    ...{ organization: "o1", project: "loud", instance: "loud-1", container: "app" },
    at: `${Date.parse("2026-11-22T04:42:09Z")}000001`,
    file: expect.stringMatching(/^[0-9a-f]{16}$/),
  });
  expect(new Set(events.map(({ file, offset }) => `${file} ${offset}`)).size).toBe(5);
});

// Shows: docs/logs.md#over-v1: what is over the bounds is counted, per instance, together with what was kept
test("lines over the bounds are counted where they were, and another project's are kept", async () => {
  const loud = await logOf("slipway-org-o1_loud-1_uid1", "app");
  const quiet = await logOf("slipway-org-o2_quiet-0_uid2", "database");
  await loud.write(Array.from({ length: 20_000 }, (_, index) => `line ${index}`));
  await quiet.write(["LOG:  checkpoint"]);
  const { all } = await open({ project: rate(100), organization: rate(100), burstSeconds: 1 });
  const events = await all();
  const [lines, records] = [
    events.filter(({ omittedLines }) => omittedLines === 0),
    events.filter(({ omittedLines }) => omittedLines > 0),
  ];
  expect(lines.filter(({ project }) => project === "loud")).toHaveLength(100);
  expect(lines.filter(({ project }) => project === "quiet")).toMatchObject([{ level: "info" }]);
  expect(records.every(({ project }) => project === "loud")).toBe(true);
  expect(records.reduce((sum, { omittedLines }) => sum + omittedLines, 0)).toBe(19_900);
});

// Shows: docs/logs.md#over-v1: a long log delays no other
test("a line of a quiet instance is in the first batch, however much another has written", async () => {
  const loud = await logOf("slipway-org-o1_loud-1_uid1", "app");
  for (let round = 0; round < 20; round += 1) {
    await loud.write(Array.from({ length: 5_000 }, () => "x".repeat(100)));
  }
  const quiet = await logOf("slipway-org-o2_quiet-0_uid2", "database");
  await quiet.write(["LOG:  checkpoint"]);
  const { collector, spool, take, events } = await open();
  for (let step = 0; step < 10 && spool.count === 0; step += 1) {
    await collector.step();
  }
  await take();
  expect(events.some(({ project }) => project === "quiet")).toBe(true);
  expect(events.length).toBeLessThan(10_000);
});

test("files that are removed before they are read are in the log as lost", async () => {
  const log = await logOf("slipway-org-o1_loud-1_uid1", "app");
  await log.write(["one"]);
  const first = await open();
  await first.all();
  await log.write(["lost"]);
  for (let rotations = 0; rotations < 4; rotations += 1) {
    await log.rotate();
    await log.write([`file ${rotations}`]);
  }
  const { all } = await open();
  const events = await all();
  expect(events.reduce((sum, { lostFiles }) => sum + lostFiles, 0)).toBeGreaterThan(0);
  expect(events.filter(({ lostFiles }) => lostFiles > 0)).toMatchObject([{ project: "loud", text: "" }]);
});

test("lost files are counted once, however often a process begins that may read nothing yet", async () => {
  const log = await logOf("slipway-org-o1_loud-1_uid1", "app");
  await log.write(["one"]);
  await open().then((first) => first.all());
  for (let rotations = 0; rotations < 4; rotations += 1) {
    await log.rotate();
    await log.write([`file ${rotations}`]);
  }
  const events: LogEvent[] = [];
  for (let time = 0; time < 3; time += 1) {
    const { collector, all } = await open(plenty, 0);
    await collector.step();
    events.push(...(await all()));
  }
  const { collector, take, events: found } = await open();
  const last = () => found.some(({ text }) => text === "file 3");
  // The file before the last one is waited for.
  for (let step = 0; step < 100 && !last(); step += 1) {
    await sleep(await collector.step());
    await take();
  }
  events.push(...found);
  expect(events.filter(({ lostFiles }) => lostFiles > 0)).toMatchObject([{ lostFiles: 1 }]);
  expect(events.map(({ text }) => text).filter((text) => text !== "")).toEqual(["file 1", "file 2", "file 3"]);
});

// Shows: docs/logs.md#over-v1: an organization that fills its share of the buffer leaves room for others
test("while the store is away, one organization fills no more than a quarter of the buffer, and another's lines are read", async () => {
  const bufferBytes = 8_000_000;
  const { collector, spool, events, take } = await open(plenty, bufferBytes);
  const loud = await logOf("slipway-org-o1_loud-1_uid1", "app");
  const quiet = await logOf("slipway-org-o2_quiet-0_uid2", "database");
  // What cannot be compressed.
  for (let round = 0; round < 4; round += 1) {
    await loud.write(Array.from({ length: 1_000 }, () => randomBytes(4_500).toString("base64")));
  }
  let idle = 0;
  for (let step = 0; step < 2_000 && idle < 3; step += 1) {
    const pause = await collector.step();
    idle = pause === 0 ? 0 : idle + 1;
    await sleep(pause);
  }
  expect(spool.bytes).toBeGreaterThan(bufferBytes / 5);
  expect(spool.bytes).toBeLessThan(bufferBytes / 1.5);
  await quiet.write(["LOG:  checkpoint"]);
  await expect
    .poll(
      async () => {
        await collector.step();
        return spool.unsentBytesOf("o2");
      },
      { timeout: 10_000 },
    )
    .toBeGreaterThan(0);
  // Once the store takes batches again, the others' lines come, each once.
  for (let step = 0; step < 2_000 && events.length < 4_001; step += 1) {
    await take();
    await sleep(await collector.step());
  }
  await take();
  expect(new Set(events.map(({ offset, project }) => `${project} ${offset}`)).size).toBe(4_001);
  expect(events).toHaveLength(4_001);
}, 60_000);

test("a batch is bounded in the bytes that its JSON has, whatever the lines are made of", async () => {
  const log = await logOf("slipway-org-o1_loud-1_uid1", "app");
  await log.write(Array.from({ length: 300 }, () => "\u0001".repeat(10_000)));
  const { collector, spool } = await open();
  const batches: LogEvent[][] = [];
  for (let step = 0; step < 100 && batches.flat().length < 300; step += 1) {
    await sleep(await collector.step());
    batches.push(...(await drain(spool)));
  }
  expect(batches.flat()).toHaveLength(300);
  const bytes = batches.map((events) => Buffer.byteLength(JSON.stringify(events)));
  expect(Math.max(...bytes)).toBeLessThan(4.5 * 1024 * 1024);
});

test("what is no text is kept as far as it is, and a piece is bounded", async () => {
  const log = await logOf("slipway-org-o1_loud-1_uid1", "app");
  await log.write(["y".repeat(MAX_LOG_TEXT_BYTES + 5)]);
  await log.writeRaw("no line of a container's log\n");
  const { all } = await open();
  const events = await all();
  expect(events.find(({ text }) => text !== "")?.text).toBe("y".repeat(MAX_LOG_TEXT_BYTES));
  expect(events.filter(({ text }) => text === "")).toMatchObject([{ omittedLines: 1, omittedBytes: 5 }]);
});
