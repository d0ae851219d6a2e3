import { MAX_LOG_TEXT_BYTES } from "@slipway/analytics";
import { afterEach, beforeEach, expect, test } from "vitest";
import { atMost, LogsNode } from "../../test/kit/analytics/logs-node.ts";

let node: LogsNode;
beforeEach(async () => {
  node = await LogsNode.open();
});
afterEach(() => node.close());

test("each piece of a line of either output is an event, whose place in its file identifies it", async () => {
  const log = await node.logOf("slipway-org-o1_loud-1_uid1", "app");
  await node
    .logOf("slipway-org-o1_loud-1_uid1", "sidecar")
    .then((other) => other.write(["not the project's"]));
  await node.logOf("slipway-org-o1_run-1_uid9", "app").then((other) => other.write(["of no known pod"]));
  await log.write(["one"]);
  await log.write(["ERROR: two"], "stderr");
  await log.writePieces("[error] ab", 8);
  await log.write(["three"], "stderr");
  const { all } = await node.collect();
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

// Shows: docs/logs.md#over-v1: a long log delays no other
test("a line of a quiet instance is in the first batch, however much another has written", async () => {
  const loud = await node.logOf("slipway-org-o1_loud-1_uid1", "app");
  for (let round = 0; round < 20; round += 1) {
    await loud.write(Array.from({ length: 5_000 }, () => "x".repeat(100)));
  }
  const quiet = await node.logOf("slipway-org-o2_quiet-0_uid2", "database");
  await quiet.write(["LOG:  checkpoint"]);
  const { collector, spool, take, events } = await node.collect();
  for (let step = 0; step < 10 && spool.count === 0; step += 1) {
    await collector.step();
  }
  await take();
  expect(events.some(({ project }) => project === "quiet")).toBe(true);
  expect(events.length).toBeLessThan(10_000);
});

test("what is no text is kept as far as it is, and a piece is bounded", async () => {
  const log = await node.logOf("slipway-org-o1_loud-1_uid1", "app");
  await log.write(["y".repeat(MAX_LOG_TEXT_BYTES + 5)]);
  await log.writeRaw("no line of a container's log\n");
  const { all } = await node.collect();
  const events = await all();
  expect(events.find(({ text }) => text !== "")?.text).toBe("y".repeat(MAX_LOG_TEXT_BYTES));
  expect(events.filter(({ text }) => text === "")).toMatchObject([{ omittedLines: 1, omittedBytes: 5 }]);
});

test("a line whose pieces are left out gives its level to no other", async () => {
  const log = await node.logOf("slipway-org-o1_loud-1_uid1", "app");
  // The second piece is over the bounds.
  await log.writePieces("[error] ab", 8);
  log.second = "2026-11-22T04:42:10";
  await log.write(["first"]);
  // And here the first one is.
  await log.writePieces("[error] ab", 8, 1);
  log.second = "2026-11-22T04:42:11";
  await log.writeRaw(`${log.second}.1Z stdout F ERROR: in the middle\n`);
  log.second = "2026-11-22T04:42:12";
  await log.write(["ERROR: last"]);
  const { all } = await node.collect({ bounds: atMost(1) });
  const lines = (await all()).filter(({ omittedLines }) => omittedLines === 0);
  expect(lines.map(({ text, level }) => [text, level])).toEqual([
    ["[error] ", "error"],
    ["first", null],
    ["ERROR: in the middle", null],
    ["ERROR: last", "error"],
  ]);
});

test("a process that begins within a line takes no level from the middle of it", async () => {
  const log = await node.logOf("slipway-org-o1_loud-1_uid1", "app");
  await log.writePieces("a beginning and its end", 11, 1);
  await node.collect().then((first) => first.all());
  await log.writeRaw("2026-11-22T04:42:10.1Z stdout F ERROR: in the middle\n");
  await log.write(["ERROR: last"]);
  const { all } = await node.collect();
  expect((await all()).map(({ text, level }) => [text, level])).toEqual([
    ["ERROR: in the middle", null],
    ["ERROR: last", "error"],
  ]);
});
