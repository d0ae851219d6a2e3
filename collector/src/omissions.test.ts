import { setTimeout as sleep } from "node:timers/promises";
import type { LogEvent } from "@slipway/analytics";
import { afterEach, beforeEach, expect, test } from "vitest";
import { atMost, LogsNode } from "../../test/kit/analytics/logs-node.ts";

let node: LogsNode;
beforeEach(async () => {
  node = await LogsNode.open();
});
afterEach(() => node.close());

// Shows: docs/logs.md#over-v1: what is over the bounds is counted, per instance, together with what was kept
test("lines over the bounds are counted where they were, and another project's are kept", async () => {
  const loud = await node.logOf("slipway-org-o1_loud-1_uid1", "app");
  const quiet = await node.logOf("slipway-org-o2_quiet-0_uid2", "database");
  await loud.write(Array.from({ length: 20_000 }, (_, index) => `line ${index}`));
  await quiet.write(["LOG:  checkpoint"]);
  const { all } = await node.collect({ bounds: atMost(100) });
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

test("files that are removed before they are read are in the log as lost", async () => {
  const log = await node.logOf("slipway-org-o1_loud-1_uid1", "app");
  await log.write(["one"]);
  const first = await node.collect();
  await first.all();
  await log.write(["lost"]);
  for (let rotations = 0; rotations < 4; rotations += 1) {
    await log.rotate();
    await log.write([`file ${rotations}`]);
  }
  const { all } = await node.collect();
  const events = await all();
  expect(events.reduce((sum, { lostFiles }) => sum + lostFiles, 0)).toBeGreaterThan(0);
  // Behind the last line that was read, also by a process that has not read it.
  expect(events.filter(({ lostFiles }) => lostFiles > 0)).toMatchObject([
    { project: "loud", text: "", at: `${Date.parse("2026-11-22T04:42:09Z")}000001` },
  ]);
});

test("what is left out of several minutes is in each of them, though it is read at the same time", async () => {
  const log = await node.logOf("slipway-org-o1_loud-1_uid1", "app");
  const minutes = ["2026-11-22T04:42", "2026-11-22T04:43", "2026-11-22T05:10"];
  for (const [index, minute] of minutes.entries()) {
    log.second = `${minute}:09`;
    await log.write(Array.from({ length: 10 + index }, () => "x"));
  }
  await log.writeRaw("no line of a container's log\n");
  const { all } = await node.collect({ bounds: atMost(4) });
  const records = (await all()).filter(({ omittedLines }) => omittedLines > 0);
  expect(
    records.map(({ at, omittedLines }) => [
      new Date(Number(at.slice(0, -6))).toISOString().slice(0, 16),
      omittedLines,
    ]),
  ).toEqual([
    [minutes[0], 6],
    [minutes[1], 7],
    [minutes[2], 9],
  ]);
});

test("lost files are counted once, however often a process begins that may read nothing yet", async () => {
  const log = await node.logOf("slipway-org-o1_loud-1_uid1", "app");
  await log.write(["one"]);
  await node.collect().then((first) => first.all());
  for (let rotations = 0; rotations < 4; rotations += 1) {
    await log.rotate();
    await log.write([`file ${rotations}`]);
  }
  const events: LogEvent[] = [];
  for (let time = 0; time < 3; time += 1) {
    const { collector, all } = await node.collect({ bufferBytes: 0 });
    await collector.step();
    events.push(...(await all()));
  }
  const { collector, take, events: found } = await node.collect();
  const last = () => found.some(({ text }) => text === "file 3");
  // The file before the last one is waited for.
  for (let step = 0; step < 100 && !last(); step += 1) {
    await sleep(await collector.step());
    await take();
  }
  events.push(...found);
  expect(events.filter(({ lostFiles }) => lostFiles > 0)).toMatchObject([{ lostFiles: 1 }]);
  expect(events.map(({ text }) => text).filter((text) => text !== "")).toEqual([
    "file 1",
    "file 2",
    "file 3",
  ]);
});
